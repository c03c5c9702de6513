"""Start-time Fair Queueing (Goyal, Vin, Cheng, SIGCOMM 1996), folded to one meter per flow for a router.

    select    i = argmin over backlogged flows of (M_i, id)
    clock     V = M_i
    dispatch  the head of i's FIFO
    charge    M_i = M_i + c / w_i
    join      M_i = max(M_i, V - credit)        a flow becomes backlogged; credit 0: idle time banks nothing
    idle      V = max(V, max M)                 all queues are empty: the next busy period starts level

M_i is the start tag of i's next job, V the start tag of the job dispatched last. The cost of a job has no part in
whether it goes now, only in how long its flow rests afterwards; so an estimate is enough.

Unit of fairness: normalized charged service. For serial decisions and charges fixed at dispatch:
V <= M_i <= V + q for every backlogged flow, and |W_i/w_i - W_j/w_j| <= 2q over every interval in which i and j stay
backlogged with fixed weights; q = the largest normalized charge since the busy period began. With credit B the band is
V - B <= M_i <= V + q, and the difference at most 2(q + B).
"""

from fairq.core.meters import MeterPolicy
from fairq.core.number import Number
from fairq.core.policy import Layer, Param, Time, Unit, Why
from fairq.core.queues import ONE


class SFQ(MeterPolicy):
    name = "sfq"
    unit = Unit.NORMALIZED
    params = (Param(name="credit", default=0, low=0, text="param.sfq.credit"),)
    credit: int

    def bind(self, layer: Layer) -> None:
        super().bind(layer)
        self.right = layer.normalize(self.credit, *ONE)

    # select
    def rank(self, flow: str) -> Number:
        return self.meters[flow]

    def why(self, flow: str, rank: Number) -> Why:
        return Why("least-meter", {"meter": self.tag(rank), "virtual_time": self.tag(self.virtual_time)})

    # clock
    def picked(self, flow: str) -> None:
        meter = self.meters[flow]
        # Only a flow on credit lies behind V. V does not go back to it, or newcomers could lower V one after the other.
        if meter > self.virtual_time:
            self.advance(meter)

    # charge
    def charged(self, flow: str, amount: int) -> None:
        self.meters[flow] = meter = self.meters[flow] + self.normalized(flow, amount)
        if meter > self.highest:
            self.highest = meter

    # join
    def joined(self, flow: str, now: Time) -> None:
        meter, level = self.meters.get(flow), self.virtual_time - self.right
        if meter is None:
            meter = self.remember(flow)
        if meter < level:
            self.meters[flow] = level

    # idle
    def idled(self, now: Time) -> None:
        self.virtual_time = max(self.virtual_time, self.highest)
        if not self.credit:
            self.rebase()  # all are level: there is nothing to carry over
