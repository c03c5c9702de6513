"""Weighted fair queueing: packet-by-packet GPS (Demers, Keshav, Shenker 1989; Parekh, Gallager 1993).

    S = max(V(a), F of the flow's packet before),  F = S + L / w      fixed when the packet arrives
    select  the packet of least (F, flow)

V is the virtual time of the fluid system itself (policies/fluid.py says how exactly), not one made from the packets
that still wait. L is what the policy is told of the length, and it is needed before the packet is sent.

Unit of fairness: normalized service. On a link of constant rate r, lengths true: every packet leaves at most Lmax / r
later than in GPS, and no flow's service ever falls more than Lmax behind GPS. It may run far ahead of GPS (see WF2Q).
Where the rate varies V does not, and these bounds are lost (see SFQ). O(log flows) for each packet.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from fairq.core.job import Job
from fairq.core.number import Number, quotient
from fairq.core.policy import Cause, Layer, Need, Time, Unit, Why
from fairq.core.queues import ONE, FlowPolicy
from fairq.policies.fluid import Fluid


class WFQ(FlowPolicy):
    name = "wfq"
    unit = Unit.NORMALIZED
    needs = frozenset({Need.SIZE, Need.RATE})
    memory = ("tags",)
    bits: ClassVar[int | None] = 256  # of the grid of V

    def bind(self, layer: Layer) -> None:
        super().bind(layer)
        self.fluid = Fluid(layer, self.bits)
        self.tags: dict[str, tuple[Number, Number]] = {}  # waiting packet -> S, F

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        if not self._waiting and not self.fluid.ends:
            self.fluid.reset()
        factor = self.fluid.advance(now)
        if factor > 1:
            self.regrid(factor)
        flow = job.flow
        weight = self.weights.get(flow, ONE)
        self.tags[job.id] = self.fluid.enter(flow, self.normalized(flow, self.cost_of(job)), weight)
        super().arrive(job, now, cause)

    def rank(self, flow: str) -> Any:
        return self.tags[self.queues[flow][0].id][1]

    def picked(self, flow: str) -> None:
        del self.tags[self.queues[flow][0].id]

    def cancel(self, job: Job, now: Time) -> None:
        del self.tags[job.id]
        super().cancel(job, now)

    def advance(self, now: Number) -> None:
        self.regrid(self.fluid.advance(now))

    def regrid(self, factor: int) -> None:
        """All tags follow when the grid of V has become finer."""
        if factor > 1:
            self.tags = {id_: (start * factor, end * factor) for id_, (start, end) in self.tags.items()}
            for flow in self.ranking:
                self.ranking.put(flow, self.rank(flow))

    # What shells read
    def virtual_time(self, now: Number) -> int | str:
        """V at `now`; changes nothing."""
        return self.tag(self.fluid.virtual_time_at(now))

    def tag(self, value: Number) -> int | str:
        return self.layer.tag(quotient(value, self.fluid.scale))

    def why(self, flow: str, rank: Any) -> Why:
        return Why("least-finish", {"finish": self.tag(rank)})

    def show(self) -> Mapping[str, Any]:
        heads = {flow: self.tags[self.head(flow).id] for flow in sorted(self.ranking)}
        return {
            "virtual_time": self.tag(self.fluid.virtual_time),
            "start": {flow: self.tag(start) for flow, (start, _) in heads.items()},
            "finish": {flow: self.tag(end) for flow, (_, end) in heads.items()},
        }

    def state(self) -> dict[str, Any]:
        return super().state() | {"fluid": self.fluid.state()}

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        self.fluid.restore(state["fluid"])
        super().restore(state, jobs)
