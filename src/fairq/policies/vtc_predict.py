"""VTC with length prediction (Sheng et al., OSDI 2024): the answer is charged when it is admitted, and corrected.

    charge   c_i += h(n_p, n^)                      when it is admitted; n^ is the predicted length
             c_i += h(n_p, n) - h(n_p, n-1)         for its n-th token, if n > n^
             c_i -= h(n_p, n^) - h(n_p, n)          when it ends after n < n^ tokens

    predictor   last5     mean of the client's last five answers; nothing for its first request (the paper's text)
                ema       (4 * old + new) / 5 from the first answer on (the authors' artifact, and so their tables)
                oracle    the true length
                oracle50  the true length times a uniform draw from 0.5 to 1.5

Unit of fairness: normalized tokens served. On average service is closer than with VTC; in the worst case no bound is
better (theorem 4.8), and a wrong prediction moves counters while requests end.
"""

from collections import deque
from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import Any

from fairq.core.counter import Counter
from fairq.core.job import Generation, Job
from fairq.core.number import Number, of_json, to_json
from fairq.core.policy import Need, Param, Stop, Time
from fairq.policies.vtc import VTC

GRID = 20  # fractional bits of the moving average


class Prepaid(Counter):
    """A counter that begins to move faster at readings of the clock that are known before: when prepaid tokens end."""

    __slots__ = ("later",)

    def __init__(self, unit: Number = 1) -> None:
        super().__init__(unit)
        self.later: list[tuple[int, str, int, int]] = []  # (clock, job, speed, bend), a heap

    def read(self, clock: int) -> Number:
        if self.later and self.later[0][0] <= clock:
            self.catch_up(clock)
        return super().read(clock)

    def settle(self, clock: int) -> None:
        if self.later and self.later[0][0] <= clock:
            self.catch_up(clock)
        super().settle(clock)

    def catch_up(self, clock: int) -> None:
        while self.later and self.later[0][0] <= clock:
            at, _, speed, bend = heappop(self.later)
            super().settle(at)
            self.speed += speed
            self.bend += bend


class VTCPredict(VTC):
    name = "vtc-predict"
    needs = frozenset({Need.TOKENS, Need.SIZE, Need.RANDOM})
    params = (
        *VTC.params,
        Param(
            name="predictor",
            default="last5",
            choices=("last5", "ema", "oracle", "oracle50"),
            text="param.vtc_predict.predictor",
        ),
    )
    predictor: str
    counters: dict[str, Prepaid]  # type: ignore[assignment]

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.last: dict[str, deque[int]] = {}  # lengths of a client's last answers
        self.average: dict[str, int] = {}
        self.promised: dict[str, int] = {}  # job -> tokens that are paid
        self.draws = 0

    def new_counter(self, unit: Number) -> Counter:
        return Prepaid(unit)

    # The prediction
    def predict(self, job: Generation) -> int:
        if self.predictor == "last5":
            last = self.last.get(job.flow)
            return sum(last) // len(last) if last else 0
        if self.predictor == "ema":
            return self.average.get(job.flow, 0) >> GRID
        true = min(job.size or 0, job.limit)
        if self.predictor == "oracle":
            return true
        assert self.layer.random is not None
        self.draws += 1
        return true * (500 + self.layer.random(self.draws, 1001)) // 1000

    def ended(self, job: Job, tokens: int) -> None:
        self.promised.pop(job.id, None)
        if self.predictor == "last5":
            self.last.setdefault(job.flow, deque(maxlen=5)).append(tokens)
        elif self.predictor == "ema":
            old = self.average.get(job.flow)
            new = tokens << GRID
            self.average[job.flow] = new if old is None else (4 * old + new) // 5

    # The charges
    def charge(self, job: Job, amount: int, now: Time) -> None:
        super().charge(job, amount, now)
        assert isinstance(job, Generation)
        self.promised[job.id] = promised = self.predict(job)
        self.add(job.flow, self.price(job, 0, promised))

    def started(self, job: Job, now: Time, given: int = 0) -> None:
        clock, promised = self.clock(), self.promised[job.id]
        had = self.kept.pop(job.id, 0)
        has = had + given
        counter = self.counters[job.flow]
        counter.settle(clock)
        if has > promised:
            counter.value += counter.unit * self.price(job, max(had, promised), has)
        self.began[job.id] = began = clock - has
        unpaid = max(promised, has)
        heappush(counter.later, (began + unpaid, job.id, *self.pace(job, unpaid)))

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        clock, counter, promised = self.clock(), self.counters[job.flow], self.promised[job.id]
        counter.settle(clock)
        waits = [one for one in counter.later if one[1] == job.id]
        if waits:  # it is still within what is paid: its counter does not move for it
            counter.later.remove(waits[0])
            heapify(counter.later)
            has = clock - self.began.pop(job.id)
            if reason is Stop.PREEMPTED:
                self.kept[job.id] = has
        elif job.id in self.began:
            has = clock - self.began[job.id]
            super().stop(job, now, reason, on)
        else:
            has = self.kept.pop(job.id, 0)
            if reason is Stop.PREEMPTED:
                self.kept[job.id] = has
        if reason is not Stop.PREEMPTED:
            if has < promised:
                self.add(job.flow, -self.price(job, has, promised))
            if job.id in self.promised:
                self.ended(job, has)

    def change_of_speed(self, flow: str) -> int | None:
        later = self.counters[flow].later
        return later[0][0] if later else None

    # What shells read
    def state(self) -> dict[str, Any]:
        return super().state() | {
            "later": {flow: [list(one) for one in counter.later] for flow, counter in self.counters.items()},
            "last": {flow: list(last) for flow, last in self.last.items()},
            "average": {flow: to_json(average) for flow, average in self.average.items()},
            "promised": dict(self.promised),
            "draws": self.draws,
        }

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        self.last = {flow: deque(last, maxlen=5) for flow, last in state["last"].items()}
        self.average = {flow: int(of_json(average)) for flow, average in state["average"].items()}
        self.promised, self.draws = dict(state["promised"]), state["draws"]
        super().restore(state, jobs)
        for flow, later in state["later"].items():
            self.counters[flow].later = [(at, id_, speed, bend) for at, id_, speed, bend in later]
