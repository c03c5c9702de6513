"""How long requests took: percentiles, summaries, TTFT and TPOT.

Times go in and come out in one unit, whichever the caller has (the ledger's nanoseconds, a simulation's
ticks). Percentiles are values that were observed or, where asked for, lie exactly between two of them:
integers in, exact numbers out. The percentage is an `int` or a `Fraction` (99, Fraction("99.9")), for a
float like 99.9 is not 99.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from msgspec import Struct

Time = int | float | Fraction
Percent = int | Fraction


def nearest_rank(values: Sequence[Time], percent: Percent) -> Time:
    """The smallest value that at least `percent` % of all values do not exceed.

    Of n ascending values it is the one at rank max(1, ceil(percent / 100 * n)). An observed value, always.
    `values` must be sorted. ValueError when empty or percent is outside 0..100.
    """
    if not values:
        raise ValueError("no values: there is no percentile")
    if not 0 <= percent <= 100:
        raise ValueError(f"percent = {percent}: must be from 0 to 100")
    rank = -(-percent * len(values) // 100)
    return values[max(1, rank) - 1]


def mean(values: Sequence[Time]) -> Time:
    """Sum / count; exact when every value is. ValueError when empty."""
    if not values:
        raise ValueError("no values: there is no mean")
    total = sum(values)
    return total / len(values) if isinstance(total, float) else Fraction(total) / len(values)


class Summary(Struct, frozen=True):
    """A set of times in one line. Percentiles by nearest rank; numbers of the given values' unit."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    max: float


def summary(values: Iterable[Time]) -> Summary | None:
    """None when there are no values."""
    ordered = sorted(values)
    if not ordered:
        return None
    count = len(ordered)
    if count == 1:
        only = float(ordered[0])
        return Summary(1, only, only, only, only, only)
    p50, p90, p99 = ordered[(count - 1) // 2], ordered[-(-9 * count // 10) - 1], ordered[-(-99 * count // 100) - 1]
    mean = float(sum(ordered) / count)  # int / int rounds correctly
    return Summary(count, mean, float(p50), float(p90), float(p99), float(ordered[-1]))


def flat(measures: Struct) -> dict[str, Any]:
    """Measures in one row: of a summary its mean, p50, p99 and max."""
    row: dict[str, Any] = {}
    for name in measures.__struct_fields__:
        value = getattr(measures, name)
        if isinstance(value, Summary):
            row |= {f"{name} {which}": getattr(value, which) for which in ("mean", "p50", "p99", "max")}
        else:
            row[name] = value
    return row


def ttft(arrival: Time, first_token: Time) -> Time:
    """Time to first token: from a request's arrival at the place of measurement to its first output token."""
    return first_token - arrival


def tpot(first_token: Time, last_token: Time, output_tokens: int) -> Time | None:
    """Time per output token after the first: (last - first) / (output_tokens - 1).

    None for fewer than two tokens: there is no gap to measure. Exact when both times are integers.
    """
    if output_tokens < 2:
        return None
    gap = last_token - first_token
    return gap / (output_tokens - 1) if isinstance(gap, float) else Fraction(gap) / (output_tokens - 1)
