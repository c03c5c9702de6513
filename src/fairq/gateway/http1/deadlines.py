"""Deadlines of many connections, kept by one coarse timer.

A loop timer per request and phase costs more than the request's parsing. Here an armed deadline is an attribute, and a
connection sits in the bucket of the tick at which it must be looked at next; a deadline that moves *later*, the usual
case, touches no bucket. A deadline fires never early and at most two ticks late.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

NEVER: Final = math.inf


class Timed:
    """Something with one deadline at a time. `expire` is called once when it has passed."""

    __slots__ = ("due", "looked_at")

    def __init__(self) -> None:
        self.due: float = NEVER  # seconds on the clock of its Deadlines
        self.looked_at: float = NEVER  # the same, of the bucket it is in

    def expire(self) -> None:
        raise NotImplementedError


class Deadlines:
    """The deadlines of everything on one event loop.

    `clock` gives seconds and never goes back. Without `start()` nothing ticks by itself: tests move their clock and
    call `sweep()`.
    """

    def __init__(self, clock: Callable[[], float], tick: float = 0.25) -> None:
        self.clock = clock
        self.tick = tick
        self.now = clock()  # as of the last sweep: reading the clock per request is not needed
        self._buckets: dict[float, set[Timed]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._users = 0

    def arm(self, item: Timed, seconds: float) -> None:
        """Call `item.expire()` when `seconds` have passed from now, instead of any deadline it had."""
        item.due = due = self.now + self.tick + seconds
        if due <= item.looked_at - self.tick:  # else the bucket it is in is early enough
            self._move(item)

    def disarm(self, item: Timed) -> None:
        item.due = NEVER

    def forget(self, item: Timed) -> None:
        """Drop `item` for good, with the reference kept to it."""
        item.due = NEVER
        bucket = self._buckets.get(item.looked_at)
        if bucket is not None:
            bucket.discard(item)
        item.looked_at = NEVER

    def _move(self, item: Timed) -> None:
        """Put `item` into the bucket of the first tick at or after its deadline."""
        old = self._buckets.get(item.looked_at)
        if old is not None:
            old.discard(item)
        item.looked_at = tick = math.ceil(item.due / self.tick) * self.tick
        bucket = self._buckets.get(tick)
        if bucket is None:
            bucket = self._buckets[tick] = set()
        bucket.add(item)

    def sweep(self) -> None:
        """Expire everything whose deadline has passed."""
        self.now = now = self.clock()
        for tick in sorted(tick for tick in self._buckets if tick <= now):
            for item in self._buckets.pop(tick):
                item.looked_at = NEVER
                if item.due <= now:
                    item.due = NEVER
                    item.expire()
                elif item.due < NEVER:
                    self._move(item)

    def start(self) -> None:
        """Sweep on the running loop until each `start` has had its `stop`."""
        self._users += 1
        if self._timer is None:
            self.now = self.clock()
            self._timer = asyncio.get_running_loop().call_later(self.tick, self._on_tick)

    def stop(self) -> None:
        self._users -= 1
        if self._users == 0 and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self.tick, self._on_tick)
        self.sweep()
