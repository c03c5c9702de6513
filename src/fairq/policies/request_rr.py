"""Request round robin (Nagle, RFC 970, 1985): one job per backlogged flow in turn, in the circular order of flow ids.

Unit of fairness: jobs. Two flows that stay backlogged differ by at most one job. In service they differ by the ratio of
their job sizes: whoever sends longer jobs takes that much more.
"""

from collections.abc import Mapping
from typing import Any

from fairq.core.policy import Time, Unit, Why
from fairq.core.queues import FlowPolicy


class RequestRR(FlowPolicy):
    name = "request-rr"
    unit = Unit.JOBS
    per_flow = ("rounds",)
    memory = ("last",)

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.last = (0, "")  # the round and the flow of the last turn
        self.rounds: dict[str, int] = {}  # in which round a backlogged flow has its next turn

    def rank(self, flow: str) -> tuple[int, str]:
        return self.rounds[flow], flow

    def joined(self, flow: str, now: Time) -> None:
        round_, served = self.last
        self.rounds[flow] = round_ if flow > served else round_ + 1

    def picked(self, flow: str) -> None:
        round_ = self.rounds[flow]
        self.last = (round_, flow)
        self.rounds[flow] = round_ + 1

    def charged(self, flow: str, amount: int) -> None:
        if flow not in self.ranking:
            self.rounds.pop(flow, None)  # a processor charges a job piece by piece

    def why(self, flow: str, rank: tuple[int, str]) -> Why:
        return Why("next-turn", {"round": rank[0]})

    def show(self) -> Mapping[str, Any]:
        return {"rounds": {flow: self.rounds[flow] for flow in sorted(self.ranking)}}
