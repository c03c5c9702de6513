"""Shortest request, SJF over the heads of flows: the cheapest one, by the cost told when it became the head.

Unit of fairness: none. It lowers the mean wait where costs are true, starves long requests, and rewards whoever
understates them. A flow keeps its own order (that is the difference from SJF).
"""

from collections.abc import Mapping
from typing import Any

from fairq.core.policy import Need, Unit, Why
from fairq.core.queues import FlowPolicy


class Shortest(FlowPolicy):
    name = "shortest"
    unit = Unit.COMPLETION
    needs = frozenset({Need.SIZE})
    per_flow = ("told",)

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.told: dict[str, tuple[str, int]] = {}  # flow -> its head and that job's cost

    def rank(self, flow: str) -> int:
        job = self.head(flow)
        told = self.told.get(flow)
        if told is None or told[0] != job.id:
            told = self.told[flow] = (job.id, self.layer.cost(job))
        return told[1]

    def why(self, flow: str, rank: int) -> Why:
        return Why("cheapest-head", {"cost": rank})

    def show(self) -> Mapping[str, Any]:
        return {"costs": {flow: self.told[flow][1] for flow in sorted(self.ranking)}}
