"""Independent oracles: what theory says the answer is, computed in the most obvious way. They know nothing of fairq."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction


def max_min(
    capacity: Fraction | int, demands: Mapping[str, Fraction | int], weights: Mapping[str, Fraction | int]
) -> dict[str, Fraction]:
    """The weighted max-min fair division of `capacity`, by filling with water.

    All levels (allocation / weight) rise together. Whoever has what it demands stops rising; the rest goes
    on until the capacity is used up or all demands are met.
    """
    level = Fraction(0)
    rising = {name for name, demand in demands.items() if demand > 0}
    left = Fraction(capacity)
    while rising and left > 0:
        total = sum(Fraction(weights[name]) for name in rising)
        next_full = min(Fraction(demands[name]) / Fraction(weights[name]) for name in rising)
        step = min(next_full - level, left / total)
        level += step
        left -= step * total
        rising = {name for name in rising if demands[name] > level * Fraction(weights[name])}
    return {name: min(Fraction(demands[name]), level * Fraction(weights[name])) for name in demands}


class JointService:
    """For each pair of flows that are both backlogged: how their service differed over any stretch since both are.

    `widest` is the largest |W_i - W_j| over all intervals in which i and j stayed backlogged, of whatever amounts
    `served` was given (normalized ones, usually). O(flows) per call.
    """

    def __init__(self) -> None:
        self.backlogged: set[str] = set()
        self.widest: Fraction | int = 0
        self._pairs: dict[tuple[str, str], list[Fraction | int]] = {}  # difference now, its least, its largest

    def joined(self, flow: str) -> None:
        for other in self.backlogged - {flow}:
            self._pairs[min(flow, other), max(flow, other)] = [0, 0, 0]
        self.backlogged.add(flow)

    def left(self, flow: str) -> None:
        self.backlogged.discard(flow)
        for other in self.backlogged:
            self._pairs.pop((min(flow, other), max(flow, other)), None)

    def served(self, flow: str, amount: Fraction | int) -> None:
        for other in self.backlogged - {flow}:
            pair = self._pairs[min(flow, other), max(flow, other)]
            pair[0] += amount if flow < other else -amount
            pair[1], pair[2] = min(pair[0], pair[1]), max(pair[0], pair[2])
            self.widest = max(self.widest, pair[2] - pair[1])


class FluidLink:
    """Generalized processor sharing, from event to event in rationals.

    packets  (arrival, flow, size), those of one flow in order; at each moment the rate is split over the flows that
             have something left, in proportion to their weights
    finish   when each packet is over, in the order of `packets`
    pieces   (from, until, flow -> its rate): the whole course of the service
    """

    def __init__(
        self,
        packets: Sequence[tuple[int, str, int]],
        weights: Mapping[str, Fraction | int],
        rate: Fraction | int = 1,
    ) -> None:
        self.finish: list[Fraction] = [Fraction(-1)] * len(packets)
        self.pieces: list[tuple[Fraction, Fraction, dict[str, Fraction]]] = []
        coming = sorted(range(len(packets)), key=lambda index: packets[index][0])
        left: dict[str, list[list[Fraction | int]]] = {}  # flow -> [what is left of it, which packet]
        now = Fraction(0)
        while coming or left:
            if not left:
                now = max(now, Fraction(packets[coming[0]][0]))
            while coming and packets[coming[0]][0] <= now:
                index = coming.pop(0)
                left.setdefault(packets[index][1], []).append([Fraction(packets[index][2]), index])
            total = sum(Fraction(weights[flow]) for flow in left)
            rates = {flow: rate * Fraction(weights[flow]) / total for flow in left}
            until = min(now + Fraction(queue[0][0]) / rates[flow] for flow, queue in left.items())
            if coming:
                until = min(until, Fraction(packets[coming[0]][0]))
            self.pieces.append((now, until, rates))
            for flow, given in rates.items():
                left[flow][0][0] -= given * (until - now)
                if not left[flow][0][0]:
                    self.finish[int(left[flow].pop(0)[1])] = until
                if not left[flow]:
                    del left[flow]
            now = until

    def service(self, flow: str, time: Fraction | int) -> Fraction:
        """What the flow has been given until `time`."""
        given = Fraction(0)
        for start, end, rates in self.pieces:
            if start < time:
                given += rates.get(flow, Fraction(0)) * (min(end, Fraction(time)) - start)
        return given


def fluid_drf(
    capacity: Mapping[str, int], demands: Mapping[str, Mapping[str, int]], weights: Mapping[str, Fraction | int]
) -> dict[str, Fraction]:
    """Dominant resource fairness with tasks that can be divided: user -> how many tasks (a rational) it runs.

    All dominant shares rise together, in proportion to the weights. When a resource is used up, whoever demands any of
    it stops; the others go on.
    """
    tasks = {user: Fraction(0) for user in demands}
    left = {resource: Fraction(amount) for resource, amount in capacity.items()}
    rising = set(demands)
    while rising:
        pace = {
            user: Fraction(weights[user]) / max(Fraction(demands[user].get(r, 0), capacity[r]) for r in capacity)
            for user in rising
        }  # tasks for each unit of (dominant share / weight)
        drain = {r: sum((pace[user] * demands[user].get(r, 0) for user in rising), Fraction(0)) for r in capacity}
        step = min(left[r] / drain[r] for r in capacity if drain[r])
        for user in rising:
            tasks[user] += step * pace[user]
        for r in capacity:
            left[r] -= step * drain[r]
        rising = {user for user in rising if all(left[r] or not demands[user].get(r) for r in capacity)}
    return tasks
