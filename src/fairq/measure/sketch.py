"""Percentiles of many values in little memory: buckets whose bounds grow by a constant factor.

A value v > 0 lies in bucket ceil(log_g v) with g = (1 + a) / (1 - a); the bucket's middle, 2 g^i / (g + 1), is within
a share `a` of every value in it, and so is any percentile of the value that nearest rank would name. 2,000 buckets
reach from a nanosecond to eleven days at a = 1 %, however many values come. (Masson, Rim, Lee, "DDSketch", VLDB 2019.)
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, log

from fairq.measure.latency import Summary


class Sketch:
    """accuracy: the largest relative error of a percentile. Values of at least 0, in any one unit.

    Count, sum (so the mean), smallest and largest are exact; integers stay integers.
    """

    __slots__ = ("_factor", "accuracy", "buckets", "count", "largest", "smallest", "total", "zeros")

    def __init__(self, accuracy: float = 0.01) -> None:
        self.accuracy = accuracy
        self._factor = log((1 + accuracy) / (1 - accuracy))
        self.buckets: dict[int, int] = {}
        self.count = self.zeros = 0
        self.total: float = 0
        self.smallest: float = 0
        self.largest: float = 0

    def add(self, value: float, times: int = 1) -> None:
        """ValueError for a negative value."""
        if value < 0:
            raise ValueError(f"{value} is negative")
        if not self.count or value < self.smallest:
            self.smallest = value
        if value > self.largest:
            self.largest = value
        self.count += times
        self.total += value * times
        if value:
            bucket = ceil(log(value) / self._factor)
            self.buckets[bucket] = self.buckets.get(bucket, 0) + times
        else:
            self.zeros += times

    def merge(self, other: Sketch) -> None:
        """ValueError when its accuracy is another."""
        if other.accuracy != self.accuracy:
            raise ValueError(f"accuracies {self.accuracy} and {other.accuracy} differ")
        if other.count:
            self.smallest = min(self.smallest, other.smallest) if self.count else other.smallest
            self.largest = max(self.largest, other.largest)
        self.count += other.count
        self.zeros += other.zeros
        self.total += other.total
        for bucket, times in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + times

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    def percentiles(self, percents: Iterable[float]) -> list[float]:
        """By nearest rank, each within `accuracy` of the value there. `percents` ascend. ValueError when empty."""
        if not self.count:
            raise ValueError("no values: there is no percentile")
        growth = (1 + self.accuracy) / (1 - self.accuracy)
        order = iter(sorted(self.buckets.items()))
        value, seen, found = 0.0, self.zeros, []
        for percent in percents:
            rank = max(1, ceil(percent * self.count / 100))
            while seen < rank:
                bucket, times = next(order)
                seen += times
                value = 2 * growth**bucket / (growth + 1)
            found.append(min(max(value, self.smallest), self.largest))
        return found

    def summary(self) -> Summary | None:
        """None when there are no values."""
        if not self.count:
            return None
        p50, p90, p99 = self.percentiles((50, 90, 99))
        return Summary(self.count, self.total / self.count, p50, p90, p99, float(self.largest))
