"""Virtual time: order and clock readings of timers, without waiting."""

from __future__ import annotations

import asyncio
import time

import pytest

from fairq.testing.clock import eventually, run_virtual


def test_sleeping_an_hour_takes_no_time_and_keeps_order() -> None:
    async def inside() -> list[tuple[float, str]]:
        loop = asyncio.get_running_loop()
        seen: list[tuple[float, str]] = []

        async def wake(after: float, name: str) -> None:
            await asyncio.sleep(after)
            seen.append((loop.time(), name))

        await asyncio.gather(wake(3600, "late"), wake(0.5, "soon"), wake(60, "mid"))
        return seen

    started = time.monotonic()
    assert run_virtual(inside()) == [(0.5, "soon"), (60.0, "mid"), (3600.0, "late")]
    assert time.monotonic() - started < 60


def test_timeouts_fire_at_their_virtual_moment() -> None:
    async def inside() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run_virtual(inside()) == 30.0


def test_waiting_for_nothing_is_reported_as_a_deadlock() -> None:
    async def inside() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="deadlock"):
        run_virtual(inside())


def test_eventually_names_what_did_not_happen() -> None:
    with pytest.raises(AssertionError, match=r"not within 0.01 s: rain"):
        asyncio.run(eventually(lambda: False, "rain", within=0.01))
