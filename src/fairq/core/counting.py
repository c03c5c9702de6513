"""What policies with virtual token counters share: the backlogged flow of least counter goes first.

Counters move while requests run. Whoever waits is ranked by what its counter was at some earlier time, which is never
more than it is now; only when such a stale bound comes to the top is it read again. So a jump of the clock costs
nothing, and a choice costs O(log F) amortised.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from fairq.core.counter import Counter
from fairq.core.job import Flow, Generation, Job
from fairq.core.number import Number, of_json, quotient, to_json
from fairq.core.policy import (
    NOTHING_WAITS,
    Cause,
    Decision,
    Layer,
    Need,
    Param,
    Pick,
    Policy,
    Stop,
    Time,
    Unit,
    View,
    Why,
)
from fairq.core.queues import FlowPolicy
from fairq.core.tokens import PROFILES, token_cost

INPUT = Param(name="input", default=1, low=0, text="param.vtc.input")
OUTPUT = Param(name="output", default=2, low=0, text="param.vtc.output")
COST = Param(name="cost", default="weights", choices=("weights", *PROFILES), text="param.vtc.cost")


class Counting(FlowPolicy):
    """h(p, 0) is charged when a request is admitted, h(p, n) - h(p, n-1) for its n-th output token, at the flow's
    weight. A subclass says in `joined` what happens to the counter of a flow that becomes backlogged."""

    unit = Unit.NORMALIZED
    needs = frozenset({Need.TOKENS})
    params: ClassVar[tuple[Param, ...]] = (INPUT, OUTPUT, COST)
    input: int
    output: int
    cost: str

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.h = token_cost(self.cost, self.input, self.output)
        self.flat = not self.h.cross and not self.h.square  # does every output token cost the same?
        self.counters: dict[str, Counter] = {}
        self.began: dict[str, int] = {}  # job that runs -> the clock at which it would have had no token yet
        self.kept: dict[str, int] = {}  # tokens of jobs that were preempted

    def bind(self, layer: Layer) -> None:
        super().bind(layer)
        self.clock = layer.clock

    def counter(self, flow: str) -> Counter:
        counter = self.counters.get(flow)
        if counter is None:
            counter = self.counters[flow] = self.new_counter(self.normalized(flow, 1))
        return counter

    def new_counter(self, unit: Number) -> Counter:
        return Counter(unit)

    def read(self, flow: str) -> Number:
        """The counter of a flow now."""
        counter = self.counters.get(flow)
        return 0 if counter is None else counter.read(self.clock())

    def add(self, flow: str, cost: int) -> None:
        counter = self.counter(flow)
        counter.value += counter.unit * cost
        if cost < 0 and flow in self.ranking:  # a bound must not be more than the counter
            self.ranking.put(flow, self.read(flow))

    def lift(self, flow: str, level: Number) -> None:
        counter, clock = self.counters[flow], self.clock()
        if counter.at != clock:
            counter.settle(clock)
        if level > counter.value:
            counter.value = level

    def rank(self, flow: str) -> Number:
        return self.counters[flow].read(self.clock())

    def ranked(self, flow: str) -> bool:
        return bool(self.ranking.key[flow] <= self.rank(flow))

    # The choice
    def first(self) -> tuple[Number, str] | None:
        """The least (counter, flow) of those that wait."""
        ranking, clock, counters = self.ranking, self.clock(), self.counters
        while (first := ranking.first()) is not None:
            now = counters[first[1]].read(clock)
            if now == first[0]:
                return first
            ranking.put(first[1], now)
        return None

    def select(self, now: Time, view: View) -> Decision:
        first = self.first()
        if first is None:
            return NOTHING_WAITS
        return Pick(self.queues[first[1]][0], self.why(first[1], first[0]))

    def peek(self, now: Time, view: View) -> Job | None:
        if not self.short_peek:
            return Policy.peek(self, now, view)
        first = self.first()
        return None if first is None else self.queues[first[1]][0]

    def take(self, now: Time, view: View) -> Job | None:
        if not self.short_take:
            return Policy.take(self, now, view)
        self.first()
        return FlowPolicy.take(self, now, view)

    def admit(self, now: Time, view: View) -> Job | None:
        if not self.short_admit:
            return Policy.admit(self, now, view)
        first = self.first()
        if first is None or not view.fits(self.queues[first[1]][0]):
            return None
        if not self.short_take:
            return Policy.take(self, now, view)
        self.picked(first[1])
        return self.leave(first[1])

    def fitting(self, now: Time, view: View) -> Pick | None:
        return FlowPolicy.fitting(self, now, view)

    def next_overtaking(self, view: View, before: int) -> int | None:
        """When the first may have been passed by one whose head fits. Only those are looked at whose bound it reaches
        by then, the heap being a tree of bounds."""
        first = self.first()
        if first is None:
            return None
        level, name = first
        clock, ranking, counters = self.clock(), self.ranking, self.counters
        own = counters[name]
        speed, bend = own.unit * (own.speed + 2 * own.bend * (clock - own.at)), own.unit * own.bend
        change = self.change_of_speed(name)
        best = (before if change is None else min(before, change)) - clock
        reached = level + best * (speed + bend * best)
        found, stack = change is not None and change < before, [0]
        while stack:
            at = stack.pop()
            if at >= len(ranking.heap) or ranking.heap[at] > reached:
                continue
            stack += (2 * at + 1, 2 * at + 2)
            bound = ranking.heap[at]
            for flow in ranking.names[bound]:
                if flow == name or ranking.key.get(flow) != bound:
                    continue
                other = counters[flow]
                gains = speed - other.unit * (other.speed + 2 * other.bend * (clock - other.at))
                gains += max(bend - other.unit * other.bend, 0) * best
                if gains <= 0:
                    continue
                ticks = max(-(-(other.read(clock) - level) // gains), 1)
                if ticks < best and view.fits(self.queues[flow][0]):
                    best, found = int(ticks), True
                    reached = level + best * (speed + bend * best)
        return clock + best if found else None

    def change_of_speed(self, flow: str) -> int | None:
        """The reading of the clock at which a counter starts to move faster by itself."""
        return None

    # The charges
    def charge(self, job: Job, amount: int, now: Time) -> None:
        counter, h = self.counters[job.flow], self.h
        counter.value += counter.unit * (h.once + h.input * job.prompt)  # type: ignore[attr-defined]

    def started(self, job: Job, now: Time, given: int = 0) -> None:
        clock, counter, id_ = self.clock(), self.counters[job.flow], job.id
        had = self.kept.pop(id_, 0) if self.kept else 0
        if counter.at != clock:
            counter.settle(clock)
        if self.flat:
            cost = self.h.output
            counter.value += counter.unit * (cost * given)
            counter.speed += cost
        else:
            self._move(counter, job, had, had + given)
        self.began[id_] = clock - had - given

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        began = self.began.pop(job.id, None)
        if began is None:  # it was in prefill
            tokens = self.kept.pop(job.id, 0)
        else:
            clock, counter = self.clock(), self.counters[job.flow]
            tokens = clock - began
            if counter.at != clock:
                counter.settle(clock)
            if self.flat:
                counter.speed -= self.h.output
            else:
                self._hold(counter, job, tokens)
        if reason is Stop.PREEMPTED:
            self.kept[job.id] = tokens
        else:
            self.ended(job, tokens)

    def _move(self, counter: Counter, job: Job, had: int, has: int) -> None:
        """A job begins to move a settled counter, with `has` tokens of which `had` were charged."""
        counter.value += counter.unit * self.price(job, had, has)
        speed, bend = self.pace(job, has)
        counter.speed += speed
        counter.bend += bend

    def _hold(self, counter: Counter, job: Job, has: int) -> None:
        """It moves it no longer."""
        speed, bend = self.pace(job, has)
        counter.speed -= speed
        counter.bend -= bend

    def price(self, job: Job, start: int, end: int) -> int:
        """What its output tokens from `start` to `end` cost."""
        assert isinstance(job, Generation)
        return self.h.tokens(job.prompt, start, end)

    def pace(self, job: Job, has: int) -> tuple[int, int]:
        """Speed and bend of a counter for a job with `has` tokens: its next n cost n * (speed + bend * n)."""
        assert isinstance(job, Generation)
        h = self.h
        return h.output + h.cross * job.prompt + 2 * h.square * has, h.square

    def ended(self, job: Job, tokens: int) -> None:
        """A request has left with so many output tokens."""

    def flow_changed(self, flow: Flow, now: Time) -> None:
        super().flow_changed(flow, now)
        if flow.id in self.counters:
            counter = self.counters[flow.id]
            counter.settle(self.clock())
            counter.unit = self.normalized(flow.id, 1)

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        if job.flow not in self.counters:
            self.counter(job.flow)
        FlowPolicy.arrive(self, job, now, cause)

    # What shells read
    def why(self, flow: str, rank: Number) -> Why:
        return Why("least-counter", {"counter": to_json(rank)})

    def show(self) -> Mapping[str, Any]:
        return {
            "counters": {
                flow: self.layer.tag(quotient(self.read(flow), self.h.scale)) for flow in sorted(self.counters)
            }
        }

    def state(self) -> dict[str, Any]:
        counters = {
            flow: [to_json(one.value), to_json(one.unit), one.at, one.speed, one.bend]
            for flow, one in self.counters.items()
        }
        return super().state() | {"counters": counters, "began": dict(self.began), "kept": dict(self.kept)}

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        for flow, (value, unit, at, speed, bend) in state["counters"].items():
            self.counters[flow] = counter = self.new_counter(of_json(unit))
            counter.value, counter.at, counter.speed, counter.bend = of_json(value), at, speed, bend
        self.began, self.kept = dict(state["began"]), dict(state["kept"])
        super().restore(state, jobs)
