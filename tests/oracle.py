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
