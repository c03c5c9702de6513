"""Rules about the key-value cache that both engines obey."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fairq.sim.engine.call import Call
from fairq.sim.engine.cost import Limits


def longest(limits: Limits) -> int:
    """The most tokens that a call may have at its limit; a longer one would not fit if it were alone."""
    if limits.reserve == "peak":
        return limits.pool_tokens - 1  # LightLLM keeps one token free
    return (limits.blocks - limits.watermark) * limits.block_tokens


def peak(lengths: Iterable[tuple[int, int]]) -> int:
    """The most tokens in the cache at any later time, if every sequence runs to its limit and nobody else comes.

    lengths  (tokens in the cache, tokens still to come) of each. In order of what is still to come, longest first: when
             the k-th ends, k sequences have grown by as much as it had left.
    """
    most = total = 0
    for k, (has, left) in enumerate(sorted(lengths, key=lambda one: -one[1]), 1):
        total += has
        most = max(most, total + k * left)
    return most


def growing(call: Call) -> tuple[int, int]:
    """(has, left) as LightLLM counts them."""
    return call.prompt + max(call.produced, 1), call.job.limit - max(call.produced, 0) - 1


VICTIMS: dict[str, Callable[[Call], Any]] = {
    "last": lambda call: call.order,
    "latest": lambda call: (call.arrival, call.job.seq),
    "priority": lambda call: (-call.job.priority, call.arrival, call.job.seq),
}


class Peaks:
    """`peak` of sequences that decode together, kept as of clock 0: all that they have grows by as much as what is to
    come shrinks, so the order, and every sum of both, stays as it is until somebody comes or goes."""

    def __init__(self, limits: Limits) -> None:
        self.most = limits.pool_tokens - 1
        self.lengths: list[tuple[int, int]] = []  # (-left, has), what has most to come first
        self.refused: list[tuple[int, int]] = []  # (prompt, limit) of those that did not fit
        self.seen = (0, 0, 0)  # the clock and who was entering then

    def add(self, call: Call) -> None:
        self.refused.clear()
        insort(self.lengths, self._length(call))

    def drop(self, call: Call) -> None:
        self.refused.clear()
        del self.lengths[bisect_left(self.lengths, self._length(call))]

    def _length(self, call: Call) -> tuple[int, int]:
        return 1 - call.job.limit - call.base, call.prompt - call.base

    def fits(self, call: Call, entering: Sequence[Call], clock: int) -> bool:
        """May it join, besides those that are just being admitted? Nobody fits who is no shorter than one who does not:
        a policy that asks for all who wait is told so without the sums."""
        prompt, limit = call.prompt, call.job.limit
        now = (clock, len(entering), entering[-1].order if entering else 0)
        if now != self.seen:
            self.seen = now
            self.refused.clear()
        elif any(short <= prompt and least <= limit for short, least in self.refused):
            return False
        new = [(1 - one.job.limit - clock, one.prompt + 1 - clock) for one in (*entering, call)]
        total = 0
        for k, (left, has) in enumerate(sorted(self.lengths + new), 1):
            total += has
            if total - k * left > self.most:
                self.refused.append((prompt, limit))
                return False
        return True

    def fits_after(self, call: Call, clock: int) -> int:
        """A number of decodes before which a call that does not fit cannot fit.

        It comes earlier and earlier in the order of what is to come. Peaks after its place fall by a token with every
        decode; the one at its own place rises, until it passes the one before it; those before do not change.
        """
        own, has = 1 - call.job.limit - clock, call.prompt + 1 - clock
        place, wait = bisect_left(self.lengths, (own, has)), 1
        total = sum(before for _, before in self.lengths[:place]) + has
        if place and total - (place + 1) * own > self.most:
            wait = max(wait, own - self.lengths[place - 1][0])
        for k, (left, has) in enumerate(self.lengths[place:], place + 2):
            total += has
            wait = max(wait, total - k * left - self.most)
        return wait


def shortest(calls: Iterable[Call]) -> list[Call]:
    """Of those that wait, whom no other one undercuts in both prompt and limit: one of them fits first."""
    waiting = {(call.prompt, call.job.limit): call for call in calls if call.admitted is None}
    least, found = None, []
    for size in sorted(waiting):
        if least is None or size[1] < least:
            least = size[1]
            found.append(waiting[size])
    return found


def victim(running: Iterable[Call], rule: str) -> Call:
    """Who makes place when a sequence needs a block and none is free."""
    return max(running, key=VICTIMS[rule])
