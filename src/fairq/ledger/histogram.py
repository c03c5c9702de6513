"""Counts in fixed buckets: what a metric keeps of many values. O(log buckets) per value, a few hundred bytes each."""

from bisect import bisect_left
from collections.abc import Sequence

SECOND = 1_000_000_000
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500)
TIMES = tuple(int(seconds * SECOND) for seconds in SECONDS)  # ns
RATIOS = (0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)


class Histogram:
    """
    bounds   upper bounds, inclusive, ascending; one more bucket holds everything above
    counts   of each bucket, not cumulated
    total    sum of all values
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total: float = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts)

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def merge(self, other: "Histogram") -> None:
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    def quantile(self, share: float) -> float | None:
        """An upper bound of the value that `share` (0..1) of all values do not exceed; None when there are none.

        It is the bound of the bucket in which that value lies; values above the last bound count as that bound.
        """
        count = self.count
        if not count:
            return None
        seen = 0
        for bound, inside in zip(self.bounds, self.counts, strict=False):
            seen += inside
            if seen >= share * count:
                return bound
        return self.bounds[-1]
