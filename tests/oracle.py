"""Independent oracles: what theory says the answer is, computed in the most obvious way. They know nothing of fairq."""

from __future__ import annotations

from collections.abc import Mapping
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
