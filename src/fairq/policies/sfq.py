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
backlogged with fixed weights; q = the largest normalized charge since the busy period began (plus credit, if any).
"""

from collections.abc import Mapping
from typing import Any

from fairq.core.job import Job
from fairq.core.number import Number, of_json, to_json
from fairq.core.policy import Decision, Param, Pick, Time, Unit, Why
from fairq.core.queues import ONE, FlowPolicy

REBASE_AT = 1 << 62  # tags stay machine integers
KEEP = 1024  # meters of flows at rest that are kept before a sweep


class SFQ(FlowPolicy):
    name = "sfq"
    unit = Unit.NORMALIZED
    params = (Param(name="credit", default=0, low=0, text="param.sfq.credit"),)
    credit: int

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.meters: dict[str, Number] = {}
        self.virtual_time: Number = 0
        self.highest: Number = 0  # max M
        self.origin: Number = 0  # the meter of a flow never seen

    # The rule
    def rank(self, flow: str) -> Number:
        return self.meters[flow]

    def commit(self, decision: Decision, now: Time) -> None:
        if isinstance(decision, Pick):
            self.virtual_time = self.meters[decision.job.flow]
            self.take(decision.job, now)

    def charge(self, job: Job, amount: int, now: Time) -> None:
        meter = self.meters[job.flow] + self.normalized(job.flow, amount)
        self.meters[job.flow] = meter
        if meter > self.highest:
            self.highest = meter
        super().charge(job, amount, now)

    def joined(self, flow: str, now: Time) -> None:
        self.meters[flow] = max(self.meters.get(flow, self.origin), self.floor(flow))

    def idled(self, now: Time) -> None:
        self.virtual_time = max(self.virtual_time, self.highest)
        if self.layer.rebase:
            self.shift()

    def floor(self, flow: str) -> Number:
        """The least meter a flow can join with."""
        return self.virtual_time - self.normalized(flow, self.credit) if self.credit else self.virtual_time

    def why(self, flow: str, rank: Number) -> Why:
        return Why("least-meter", {"meter": to_json(rank), "virtual_time": to_json(self.virtual_time)})

    # Keeping tags small and few: only M - V matters, and a resting flow at its floor is as good as a new one
    def take(self, job: Job, now: Time) -> None:
        super().take(job, now)
        if self.layer.rebase:
            if self.virtual_time > REBASE_AT:
                self.shift()
            elif len(self.meters) > 2 * len(self.queues) + KEEP:
                self.sweep()

    def shift(self) -> None:
        by, self.virtual_time = self.virtual_time, 0
        self.highest -= by
        self.origin -= by
        self.meters = {flow: meter - by for flow, meter in self.meters.items()}
        for flow in self.ranking:
            self.ranking.put(flow, self.meters[flow])
        self.sweep()

    def sweep(self) -> None:
        self.meters = {f: m for f, m in self.meters.items() if f in self.queues or m > self.floor(f)}

    # What shells read
    def lead(self, flow: str) -> int:
        ahead = self.meters.get(flow, self.origin) - self.virtual_time
        unit = self.layer.normalize(1 << 20, *self.weights.get(flow, ONE))
        return int((ahead << 20) // unit) if isinstance(ahead, int) else int(ahead * (1 << 20) // unit)

    def show(self) -> Mapping[str, Any]:
        return {
            "virtual_time": to_json(self.virtual_time),
            "meters": {flow: to_json(meter) for flow, meter in sorted(self.meters.items())},
        }

    def state(self) -> dict[str, Any]:
        tags = {"virtual_time": self.virtual_time, "highest": self.highest, "origin": self.origin}
        return super().state() | {
            "meters": {flow: to_json(meter) for flow, meter in self.meters.items()},
            **{name: to_json(tag) for name, tag in tags.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.meters = {flow: of_json(meter) for flow, meter in state["meters"].items()}
        self.virtual_time = of_json(state["virtual_time"])
        self.highest, self.origin = of_json(state["highest"]), of_json(state["origin"])
        super().restore(state)
