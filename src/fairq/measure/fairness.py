"""How evenly service was shared, over the times at which comparing it means something.

A tenant that asks for little gets little, and that is not unfair. So service is compared only while all of
the compared flows are backlogged (have work *waiting*), and from the start of such an interval on, never in
total.

Service is normalized (service / weight, each charge at the weight of its time) in whatever unit the caller
has: cost units, tokens, bytes. It comes in as `int` or `Fraction`, and all results are exact. Times are any
numbers that never go back. At one instant the order of the calls counts: charge a dispatch before its flow
leaves, for the flow was backlogged when it was chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from msgspec import Struct

from fairq.core.number import Number, quotient

Time = int | float | Fraction


def jain(values: Iterable[Number]) -> Fraction | None:
    """Jain's index (sum x)^2 / (n * sum x^2): 1 when all are equal, 1/n when one has everything.

    None when there are no values or all are zero: the index is undefined then. Without unit. (Jain, Chiu,
    Hawe, DEC TR-301, 1984.)
    """
    listed = list(values)
    squares = sum(value * value for value in listed)
    return Fraction(sum(listed)) ** 2 / (len(listed) * squares) if squares else None


def max_min_fair(
    capacity: Number, demands: Mapping[str, Number | None], weights: Mapping[str, Number]
) -> dict[str, Number]:
    """The weighted max-min fair allocation of `capacity`, by water filling; in the capacity's unit, exact.

        x_i = min(d_i, w_i * level),  with the level at which  sum of x_i = min(capacity, sum of d_i)

    No flow's x_i / w_i can grow without that of a flow that has no more shrinking. demands: None is without end.
    O(n log n).
    """
    order = sorted(demands, key=lambda flow: _full_at(demands[flow], weights[flow]))
    left, weight = Fraction(capacity), sum((Fraction(weights[flow]) for flow in order), Fraction(0))
    found: dict[str, Number] = {}
    for flow in order:
        share = left * weights[flow] / weight
        demand = demands[flow]
        given = share if demand is None else min(Fraction(demand), share)
        found[flow] = quotient(given, 1)
        left, weight = left - given, weight - weights[flow]
    return {flow: found[flow] for flow in demands}


def _full_at(demand: Number | None, weight: Number) -> tuple[bool, Number]:
    """The level of the water at which a flow has all that it asks for."""
    return (True, 0) if demand is None else (False, Fraction(demand) / weight)


def max_min_index(got: Mapping[str, Number], fair: Mapping[str, Number]) -> Fraction | None:
    """min over flows of got_i / fair_i: 1 is max-min fair, 0 is a flow that was due something and got nothing.

    None where nothing was due. Without unit; at most 1 while no more was given than was shared out.
    """
    return min((Fraction(got[flow]) / due for flow, due in fair.items() if due), default=None)


class Interval(Struct, frozen=True):
    """A maximal interval over which the same flows are backlogged.

    service   normalized service of each of the flows inside the interval, zeros included; its keys are the set
    jain      Jain's index of it; None when there was no service
    """

    start: Time
    end: Time
    service: dict[str, Number]

    @property
    def jain(self) -> Fraction | None:
        return jain(self.service.values())

    @property
    def gap(self) -> Number:
        """The largest less the smallest normalized service inside: what SFQ and its kin bound."""
        return max(self.service.values()) - min(self.service.values())

    def max_min(
        self, weights: Mapping[str, Number], capacity: Number | None = None, most: Number | None = None
    ) -> Fraction | None:
        """The max-min index of the interval's service. All of its flows are backlogged, so each wants all it can get.

        capacity  what could be given in all; None: what was given
        most      what one flow can use of it (on m processors a task one of them, so the interval's length)
        """
        got = {flow: service * weights[flow] for flow, service in self.service.items()}
        total = sum(got.values()) if capacity is None else capacity
        return max_min_index(got, max_min_fair(total, dict.fromkeys(got, most), weights))


class BackloggedIntervals:
    """Cuts a run into maximal intervals with one set of backlogged flows. The baseline starts anew at each cut.

    Feed it `enter` and `leave` (whatever the reason: empty queue, pause, cap, a change of weight is a leave
    and an enter) and `charge`, in order of time; then `close`. Intervals without any backlogged flow are
    left out, and so are those of no length in which nothing was charged. Cost: O(size of the set) at each
    change of the set, O(1) at a charge.
    """

    def __init__(self) -> None:
        self.intervals: list[Interval] = []
        self._service: dict[str, Number] = {}
        self._start: Time = 0
        self._charged = False

    def enter(self, flow: str, now: Time) -> None:
        """The flow becomes backlogged. Nothing happens when it is already."""
        if flow not in self._service:
            self._cut(now)
            self._service[flow] = 0

    def leave(self, flow: str, now: Time) -> None:
        """The flow is no longer backlogged. Nothing happens when it was not."""
        if flow in self._service:
            self._cut(now)
            del self._service[flow]

    def charge(self, flow: str, normalized: Number) -> None:
        """The flow got service. Counts only while it is backlogged."""
        if flow in self._service:
            self._service[flow] += normalized
            self._charged = True

    def close(self, now: Time) -> list[Interval]:
        """End the last interval, and return all. The flows stay backlogged: calling it again later is fine."""
        self._cut(now)
        return self.intervals

    def _cut(self, now: Time) -> None:
        if self._service and (self._charged or now > self._start):
            self.intervals.append(Interval(self._start, now, dict(sorted(self._service.items()))))
        self._service = dict.fromkeys(self._service, 0)
        self._start, self._charged = now, False


class Pair(Struct):
    """Two flows over all the times at which both were backlogged.

    gap           the largest |W_i - W_j| over any one stretch of such a time, the quantity that SFQ bounds
    service       normalized service of each, summed over these times
    duration      how long these times are together
    """

    gap: Number = 0
    service: tuple[Number, Number] = (0, 0)
    duration: Time = 0


class _Joint:
    """One time at which both are backlogged: the difference so far, and its extremes."""

    __slots__ = ("difference", "high", "low", "start")

    def __init__(self, start: Time) -> None:
        self.start = start
        self.difference: Number = 0
        self.high: Number = 0
        self.low: Number = 0


class PairGaps:
    """The largest difference of normalized service of each pair of flows, while both are backlogged.

    With D(t) = W_i - W_j since both are backlogged, the largest |D(t2) - D(t1)| over all t1 <= t2 is max D
    - min D, so two numbers per pair suffice. Cost: O(backlogged flows) per call; watch only the flows of
    interest (`flows`) when there are thousands.
    """

    def __init__(self, flows: Iterable[str] | None = None) -> None:
        self.pairs: dict[tuple[str, str], Pair] = {}
        self._watched = None if flows is None else frozenset(flows)
        self._backlogged: set[str] = set()
        self._joint: dict[tuple[str, str], _Joint] = {}

    def enter(self, flow: str, now: Time) -> None:
        """The flow becomes backlogged. Nothing happens when it is already."""
        if flow in self._backlogged or (self._watched is not None and flow not in self._watched):
            return
        for other in self._backlogged:
            self._joint[_key(flow, other)] = _Joint(now)
        self._backlogged.add(flow)

    def leave(self, flow: str, now: Time) -> None:
        """The flow is no longer backlogged. Nothing happens when it was not."""
        if flow in self._backlogged:
            self._backlogged.discard(flow)
            for other in self._backlogged:
                self._end(_key(flow, other), now)

    def charge(self, flow: str, normalized: Number) -> None:
        """The flow got service. Counts only while it is backlogged."""
        if flow not in self._backlogged:
            return
        for other in self._backlogged:
            if other == flow:
                continue
            key = _key(flow, other)
            joint, pair = self._joint[key], self.pairs.setdefault(key, Pair())
            first, second = pair.service
            if key[0] == flow:
                joint.difference += normalized
                pair.service = first + normalized, second
            else:
                joint.difference -= normalized
                pair.service = first, second + normalized
            joint.high = max(joint.high, joint.difference)
            joint.low = min(joint.low, joint.difference)
            pair.gap = max(pair.gap, joint.high - joint.low)

    def close(self, now: Time) -> dict[tuple[str, str], Pair]:
        """End all that is open, and return every pair that was ever backlogged together, smaller id first."""
        for flow in sorted(self._backlogged):
            self.leave(flow, now)
        return self.pairs

    def _end(self, key: tuple[str, str], now: Time) -> None:
        pair = self.pairs.setdefault(key, Pair())
        pair.duration += now - self._joint.pop(key).start


def _key(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)
