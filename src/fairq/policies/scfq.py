"""Self-clocked fair queueing (Golestani, INFOCOM 1994): WFQ with a clock that costs nothing.

    S = max(V(a), F of the flow's job before),  F = S + c / w
    select  the backlogged flow whose head has the least (F, flow)
    clock   V = F of the job dispatched last; a new busy period starts level

Of a flow that waits, V has no part in the next S; of one that comes back, V is at least its old F. So a flow is its
last F while it waits, and nothing while it does not. c is what the policy is told when a job becomes its flow's head,
and it decides (a cost that turns out otherwise changes nothing: compare SFQ, which charges what was given).

Unit of fairness: normalized service. For any rate, also a varying one: |W_i/w_i - W_j/w_j| <= c_i/w_i + c_j/w_j of
the largest costs, over every interval in which both are backlogged. Delay grows with the number of flows: a packet may
leave sum of Lmax of the other flows / r later than in GPS. O(log flows) for each job.
"""

from collections.abc import Mapping
from typing import Any

from fairq.core.number import Number
from fairq.core.policy import Need, Time, Unit, Why
from fairq.core.queues import FlowPolicy


class SCFQ(FlowPolicy):
    name = "scfq"
    unit = Unit.NORMALIZED
    needs = frozenset({Need.SIZE})
    per_flow = ("start", "finish")
    memory = ("virtual_time",)

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.virtual_time: Number = 0
        self.start: dict[str, Number] = {}  # S of the head of each backlogged flow
        self.finish: dict[str, tuple[str, Number]] = {}  # the head and its F

    def joined(self, flow: str, now: Time) -> None:
        self.start[flow] = self.virtual_time
        self.finish.pop(flow, None)

    def rank(self, flow: str) -> Number:
        head = self.head(flow)
        known = self.finish.get(flow)
        if known is None or known[0] != head.id:
            end = self.start[flow] + self.normalized(flow, self.cost_of(head))
            known = self.finish[flow] = (head.id, end)
        return known[1]

    def picked(self, flow: str) -> None:
        self.virtual_time = self.start[flow] = self.finish.pop(flow)[1]

    def idled(self, now: Time) -> None:
        self.start.clear()
        self.finish.clear()
        if self.layer.rebase:
            self.virtual_time = 0

    def why(self, flow: str, rank: Number) -> Why:
        return Why("least-finish", {"finish": self.layer.tag(rank)})

    def show(self) -> Mapping[str, Any]:
        tag = self.layer.tag
        return {
            "virtual_time": tag(self.virtual_time),
            "start": {flow: tag(self.start[flow]) for flow in sorted(self.ranking)},
            "finish": {flow: tag(self.ranking.key[flow]) for flow in sorted(self.ranking)},
        }
