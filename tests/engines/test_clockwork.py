"""The engine in (virtual) real time."""

from __future__ import annotations

import asyncio

import pytest

from fairq.engines.batching import Engine, Sequence
from fairq.engines.clockwork import Clockwork
from fairq.engines.model import EngineModel
from fairq.sim.engine.cost import Cost
from fairq.testing.clock import run_virtual

MODEL = EngineModel(
    Cost(a=1_000_000_000, b=100_000_000, c=0, d=0),
    max_sequences=2,
    pool_tokens=128,
    step_tokens=10,
    context_length=64,
)


def run(speed: float, arrivals: list[tuple[float, Sequence]]) -> list[tuple[float, int]]:
    """(moment, index of the sequence) of every token."""

    async def inside() -> list[tuple[float, int]]:
        loop = asyncio.get_running_loop()
        clockwork = Clockwork(Engine(MODEL), speed)
        seen: list[tuple[float, int]] = []
        order = [sequence for _, sequence in arrivals]
        for at, sequence in arrivals:
            await asyncio.sleep(at - loop.time())
            clockwork.submit(sequence, lambda each: seen.append((round(loop.time(), 6), order.index(each))))
        await asyncio.sleep(100)
        return seen

    return run_virtual(inside())


def test_tokens_come_when_the_model_says() -> None:
    # 5 prompt tokens: 1 s + 0.5 s, then 1 s a token
    assert run(1, [(0, Sequence(5, 3))]) == [(1.5, 0), (2.5, 0), (3.5, 0)]
    assert run(10, [(0, Sequence(5, 3))]) == [(0.15, 0), (0.25, 0), (0.35, 0)]


def test_an_arrival_joins_at_the_next_step_and_the_engine_wakes_from_idleness() -> None:
    tokens = run(1, [(0, Sequence(5, 2)), (0.2, Sequence(5, 1)), (50, Sequence(5, 1))])
    # the second arrives in the first's prefill; it is prefilled while the first decodes
    assert tokens == [(1.5, 0), (3.0, 0), (3.0, 1), (51.5, 2)]


def test_an_owner_may_cancel_another_in_the_middle_of_a_step() -> None:
    async def inside() -> list[str]:
        clockwork = Clockwork(Engine(MODEL), 1)
        first, second = Sequence(5, 2), Sequence(5, 2)
        seen: list[str] = []

        def on_first(sequence: Sequence) -> None:
            seen.append("first")
            clockwork.cancel(second)

        clockwork.submit(first, on_first)
        clockwork.submit(second, lambda sequence: seen.append("second"))
        await asyncio.sleep(100)
        assert clockwork.engine.free_blocks == MODEL.blocks
        return seen

    assert run_virtual(inside()) == ["first", "first"]


def test_what_cannot_fit_is_refused_and_leaves_nothing_behind() -> None:
    async def inside() -> None:
        clockwork = Clockwork(Engine(MODEL), 1)
        with pytest.raises(ValueError, match="context length"):
            clockwork.submit(Sequence(60, 60), lambda sequence: None)
        assert not clockwork.engine.waiting

    run_virtual(inside())
