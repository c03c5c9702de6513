"""Time for tests: a deadline instead of a sleep, and an event loop whose time is virtual."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def eventually(condition: Callable[[], object], what: str = "condition", within: float = 5.0) -> None:
    """Return as soon as `condition()` is true.

    Raises AssertionError naming `what` after `within` seconds of real time.
    """
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within:g} s: {what}")
        await asyncio.sleep(0.001)


async def turns(count: int = 100) -> None:
    """Give the event loop so many turns: what does not happen now, with peers in the same loop, waits for something."""
    for _ in range(count):
        await asyncio.sleep(0)


async def passed(moment: int, what: str = "time", within: float = 5.0) -> None:
    """Until the monotonic clock is past `moment` (ns): for rules that are about real time."""
    await eventually(lambda: time.monotonic_ns() > moment, what, within)


class _JumpingSelector(selectors.DefaultSelector):
    """Advances the loop's clock by the time the loop wants to wait, instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is None:  # no timer is set: nothing inside this process can ever happen again
            raise RuntimeError("deadlock: every task waits and no timer is set")
        self.now += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop in which `sleep(3600)` costs nothing: when idle it jumps to its next timer.

    Only for code whose peers live in the same loop and talk without sockets: bytes on their way
    through the kernel look like idleness here. Time starts at 0.0 and moves only by jumps, so a run
    is repeatable to the last timer.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` on a VirtualTimeLoop."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
