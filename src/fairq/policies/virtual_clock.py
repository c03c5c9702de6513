"""Virtual clock (Zhang, SIGCOMM 1990): every flow as if it had a time-division channel of its own rate.

    VC_i = max(now, VC_i) + L / r_i,   r_i = r * w_i / (sum of w over all flows, busy or not)
    select  the packet of least (VC, flow), stamped when it arrives

Clocks are counted in service of the whole link, time * r, which is time itself on a link of rate 1.

Unit of fairness: none; a guaranteed rate. On a link of constant rate, lengths true, a packet leaves by VC + Lmax / r,
as in WFQ, and a flow that sends less than its rate is protected. But a flow that used idle capacity is punished for it:
its clock has run ahead of the time, and one that comes later may take the link alone until its own clock is there.
"""

from collections.abc import Mapping
from typing import Any

from fairq.core.job import Flow, Job
from fairq.core.number import Number, quotient
from fairq.core.policy import Cause, Layer, Need, Time, Unit, Why
from fairq.core.queues import ONE, FlowPolicy


class VirtualClock(FlowPolicy):
    name = "virtual-clock"
    unit = Unit.SERVICE
    needs = frozenset({Need.SIZE, Need.RATE})
    memory = ("clocks", "stamps", "shares", "total")

    def bind(self, layer: Layer) -> None:
        super().bind(layer)
        self.speed = layer.rate * layer.normalize(1, *ONE)
        self.clocks: dict[str, Number] = {}
        self.stamps: dict[str, Number] = {}  # of waiting packets
        self.shares: dict[str, Number] = {}  # the weights of all flows
        self.total: Number = 0

    def flow_changed(self, flow: Flow, now: Time) -> None:
        super().flow_changed(flow, now)
        share = quotient(*self.weights[flow.id])
        self.total += share - self.shares.get(flow.id, 0)
        self.shares[flow.id] = share

    def forget(self, flow: str) -> None:
        super().forget(flow)
        self.total -= self.shares.pop(flow, 0)

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        flow = job.flow
        length = self.normalized(flow, self.cost_of(job)) * (self.total or 1)
        self.stamps[job.id] = self.clocks[flow] = max(now * self.speed, self.clocks.get(flow, 0)) + length
        super().arrive(job, now, cause)

    def rank(self, flow: str) -> Number:
        return self.stamps[self.head(flow).id]

    def picked(self, flow: str) -> None:
        del self.stamps[self.head(flow).id]

    def cancel(self, job: Job, now: Time) -> None:
        del self.stamps[job.id]
        super().cancel(job, now)

    def why(self, flow: str, rank: Number) -> Why:
        return Why("least-clock", {"clock": self.layer.tag(rank)})

    def show(self) -> Mapping[str, Any]:
        return {"clocks": {flow: self.layer.tag(clock) for flow, clock in sorted(self.clocks.items())}}
