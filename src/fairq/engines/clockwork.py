"""Runs an engine's steps in real time on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fairq.engines.batching import Engine, Sequence

_CATCH_UP = 0.1  # seconds a late loop may make up for; more is lost time


class Clockwork:
    """Steps the engine while it has work; each step lasts its model's time divided by `speed`.

    `on_token(sequence)` of a sequence's owner is called at the end of each step that gave it a token.
    Owners may submit and cancel from inside these calls.
    """

    def __init__(self, engine: Engine, speed: float) -> None:
        self.engine = engine
        self._seconds_per_ns = 1e-9 / speed
        self._owners: dict[Sequence, Callable[[Sequence], None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._step_ends = 0.0

    def submit(self, sequence: Sequence, on_token: Callable[[Sequence], None]) -> None:
        """Queue a sequence. ValueError when it can never fit."""
        self.engine.arrive(sequence)
        self._owners[sequence] = on_token
        if self._timer is None:  # the next turn of the loop, so that one request's choices start together
            loop = asyncio.get_running_loop()
            self._step_ends = loop.time()
            self._timer = loop.call_at(self._step_ends, self._begin)

    def cancel(self, sequence: Sequence) -> None:
        """Free what the sequence holds, at once. Nothing when it is over."""
        if self._owners.pop(sequence, None):
            self.engine.cancel(sequence)

    def stop(self) -> None:
        """No step ends from now on."""
        if self._timer is not None:
            self._timer.cancel()

    def _begin(self) -> None:
        took = self.engine.begin()
        if took is None:
            self._timer = None
            return
        loop = asyncio.get_running_loop()
        # Counted from the step's nominal end, so that the loop's own delays do not add up.
        starts = max(self._step_ends, loop.time() - _CATCH_UP)
        self._step_ends = starts + took * self._seconds_per_ns
        self._timer = loop.call_at(self._step_ends, self._finish)

    def _finish(self) -> None:
        for sequence in self.engine.finish():
            owner = self._owners.get(sequence)
            if owner is None:  # cancelled by another owner just now
                continue
            if sequence.produced == sequence.output:
                del self._owners[sequence]
            owner(sequence)
        self._begin()
