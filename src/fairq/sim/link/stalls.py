"""When a link does not work. Work is counted in the ticks that it takes; during a stall it stands still."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from fairq.core.number import Number
from fairq.core.policy import Draw

Stall = tuple[int, int]
"""From, until."""


class Stalls:
    """In order of time and not overlapping, perhaps without end: looked at only as far as somebody asks."""

    def __init__(self, stalls: Iterable[Stall]) -> None:
        self._coming = iter(stalls)
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._worked: list[int] = []  # when each starts
        self._lost = [0]  # the first n of them together

    def works_from(self, time: int) -> int:
        """The first moment from `time` on at which the link works."""
        last = self._last(time)
        while last >= 0 and self._starts[last] <= time < self._ends[last]:
            time = self._ends[last]
            last = self._last(time)
        return time

    def worked(self, time: Number) -> Number:
        """How long the link has worked until `time`."""
        last = self._last(time)
        if last >= 0 and time < self._ends[last]:
            return self._worked[last]
        return time - self._lost[last + 1]

    def when(self, worked: Number) -> Number:
        """The earliest time until which the link has worked for so long."""
        while (not self._worked or self._worked[-1] < worked) and self._more():
            pass
        return worked + self._lost[bisect_left(self._worked, worked)]

    def _last(self, time: Number) -> int:
        """The index of the last stall that starts at `time` or before, -1 for none."""
        while (not self._starts or self._starts[-1] <= time) and self._more():
            pass
        return bisect_right(self._starts, time) - 1

    def _more(self) -> bool:
        stall = next(self._coming, None)
        if stall is None:
            return False
        start, end = stall
        self._worked.append(start - self._lost[-1])
        self._starts.append(start)
        self._ends.append(end)
        self._lost.append(self._lost[-1] + end - start)
        return True


def random_stalls(every: int, for_: int, draw: Draw) -> Iterator[Stall]:
    """Work for 1..2*every-1 and stall for 1..2*for-1 in turn, each drawn uniformly."""
    n = end = 0
    while True:
        start = end + 1 + draw(n, 2 * every - 1)
        end = start + 1 + draw(n + 1, 2 * for_ - 1)
        yield start, end
        n += 2
