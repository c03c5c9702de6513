"""Start-time Fair Queueing (Goyal, Vin, Cheng, SIGCOMM 1996), folded to one meter per flow for a router.

    select  i = argmin over backlogged flows of (M_i, id)
    clock   V = M_i
    dispatch the head of i's FIFO
    charge  M_i += c / w_i
    join    M_i = max(M_i, V - credit)          a flow becomes backlogged; credit 0: idle time banks nothing
    idle    V = max(V, max M)                   all queues are empty: the next busy period starts level

M_i is the start tag of i's next job, V the start tag of the job dispatched last. The cost of a job has no part in
whether it goes now, only in how long its flow rests afterwards; so an estimate is enough.

Unit of fairness: normalized charged service. For serial decisions and charges fixed at dispatch:
V <= M_i <= V + q for every backlogged flow, and |W_i/w_i - W_j/w_j| <= 2q over every interval in which i and j stay
backlogged with fixed weights; q = the largest normalized charge since the busy period began. With credit B the band is
V - B <= M_i <= V + q, and the difference at most 2(q + B).
"""

from collections.abc import Mapping
from typing import Any

from fairq.core.job import Job
from fairq.core.number import Number, of_json, to_json
from fairq.core.policy import NOTHING_WAITS, Decision, Layer, Param, Pick, Time, Unit, View, Why
from fairq.core.queues import ONE, FlowPolicy

REBASE_AT = 1 << 62  # tags stay machine integers
KEEP = 1024  # meters of flows at rest that are kept before a sweep


class SFQ(FlowPolicy):
    name = "sfq"
    unit = Unit.NORMALIZED
    params = (Param(name="credit", default=0, low=0, text="param.sfq.credit"),)
    credit: int
    take = FlowPolicy.take

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.meters: dict[str, Number] = {}
        self.virtual_time: Number = 0
        self.highest: Number = 0  # max M
        self.origin: Number = 0  # the meter of a flow never seen
        self.sweep_at = KEEP

    def bind(self, layer: Layer) -> None:
        super().bind(layer)
        self.normalize, self.tag = layer.normalize, layer.tag
        self.right = self.normalize(self.credit, *ONE)

    def rank(self, flow: str) -> Number:
        return self.meters[flow]

    # The rule. Dispatching, the third step, is the queues' own.
    def select(self, now: Time, view: View) -> Decision:
        heap = self.ranking.heap
        if not heap:
            return NOTHING_WAITS
        meter, flow = heap[0]
        tag: Any = self.tag
        virtual_time: Any = self.virtual_time
        if tag is not int:  # the gateway's are integers as they stand
            meter, virtual_time = tag(meter), tag(virtual_time)
        return Pick(self.queues[flow][0], Why("least-meter", {"meter": meter, "virtual_time": virtual_time}))

    def picked(self, flow: str) -> None:
        meter = self.meters[flow]
        # Only a flow on credit lies behind V. V does not go back to it, or newcomers could lower V one after the other.
        if meter > self.virtual_time:
            self.virtual_time = meter
            if meter > REBASE_AT:
                self.rebase()

    def charge(self, job: Job, amount: int, now: Time) -> None:
        flow = job.flow
        above, below = self.weights.get(flow, ONE)
        meters, normalize = self.meters, self.normalize
        meters[flow] = meter = meters[flow] + normalize(amount, above, below)
        if meter > self.highest:
            self.highest = meter
        if flow in self.ranking:
            self.ranking.put(flow, meter)
        if not self._waiting:
            self.idled(now)

    def joined(self, flow: str, now: Time) -> None:
        meter, level = self.meters.get(flow, self.origin), self.virtual_time - self.right
        self.meters[flow] = meter if meter > level else level
        if len(self.meters) > self.sweep_at:
            self.sweep()

    def idled(self, now: Time) -> None:
        self.virtual_time = max(self.virtual_time, self.highest)
        if not self.credit:
            self.rebase()  # all are level: there is nothing to carry over

    # Keeping tags small and few: only M - V matters, and who rests below where it would join is as good as new
    def rebase(self) -> None:
        if not self.layer.rebase:
            return
        by, self.virtual_time = self.virtual_time, 0
        self.highest -= by
        self.origin -= by
        self.meters = {flow: meter - by for flow, meter in self.meters.items()}
        self.sweep()
        for flow in self.ranking:
            self.ranking.put(flow, self.meters[flow])

    def sweep(self) -> None:
        if self.layer.rebase:
            joins_at = self.virtual_time - self.right
            self.meters = {f: m for f, m in self.meters.items() if m > joins_at or f in self.queues}
        self.sweep_at = 2 * len(self.meters) + KEEP  # so that a sweep is paid for by the joins before it

    # What shells read
    def lead(self, flow: str) -> int:
        ahead = self.meters.get(flow, self.origin) - self.virtual_time
        unit = self.normalize(1 << 20, *self.weights.get(flow, ONE))
        return int((ahead << 20) // unit) if isinstance(ahead, int) else int(ahead * (1 << 20) // unit)

    def show(self) -> Mapping[str, Any]:
        return {
            "virtual_time": self.tag(self.virtual_time),
            "meters": {flow: self.tag(meter) for flow, meter in sorted(self.meters.items())},
        }

    def state(self) -> dict[str, Any]:
        tags = {"virtual_time": self.virtual_time, "highest": self.highest, "origin": self.origin}
        return super().state() | {
            "meters": {flow: to_json(meter) for flow, meter in self.meters.items()},
            "sweep_at": self.sweep_at,
            **{name: to_json(tag) for name, tag in tags.items()},
        }

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        self.meters = {flow: of_json(meter) for flow, meter in state["meters"].items()}
        self.virtual_time = of_json(state["virtual_time"])
        self.highest, self.origin = of_json(state["highest"]), of_json(state["origin"])
        self.sweep_at = state["sweep_at"]
        super().restore(state, jobs)
