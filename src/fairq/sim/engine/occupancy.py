"""How full an engine is and how far apart tokens come, in memory that does not grow with either.

kv      blocks of the cache that running sequences hold, over time
batch   sequences in the engine, over time
gaps    between neighbouring tokens of one answer: the time from one decode to the next, for every sequence that
        decodes, with the prefill of others in between where it stops them. A sequence that is preempted is left out
        until it decodes again.

In a stretch of decodes the cache fills by a token per sequence and decode, however blocks are handed out; and as the
decodes get slower with the contexts, the stretch is cut into pieces within 1 % of each other.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from fairq.measure.latency import Summary
from fairq.measure.series import Series
from fairq.measure.sketch import Sketch
from fairq.sim.engine.batch import Batch

PIECE = 0.01  # of a gap


def both(one: Callable[[], None] | None, other: Callable[[], None]) -> Callable[[], None]:
    """For an engine that is watched already."""
    if one is None:
        return other

    def watch() -> None:
        one()
        other()

    return watch


class Filled(Struct, frozen=True):
    """Shares of the cache from 0 to 1; sequences; gaps in nanoseconds, None when no answer has two tokens."""

    kv_mean: float
    kv_max: float
    batch_mean: float
    batch_max: int
    gaps: Summary | None


class Occupancy:
    """Call it at every event, before and after admissions.

    kv, batch  over time, in pieces: blocks and sequences
    """

    def __init__(self, engine: Batch) -> None:
        self.engine, self.gaps = engine, Sketch()
        self.kv, self.batch = Series(), Series()
        self.blocks_time = self.batch_time = 0.0
        self.most_blocks, self.most_batch = 0.0, 0
        self._now, self._clock = engine.now, engine.clock
        self._used = self._size = self._decoding = 0
        self._grows = engine.limits.reserve != "limit"
        self._stalled = self._waiting = 0  # time since the last decode, and the sequences that it keeps waiting

    def __call__(self) -> None:
        engine = self.engine
        size = len(engine.members)
        time, ticks = engine.now - self._now, engine.clock - self._clock
        if time and self._size:
            grown = self._decoding * (ticks - 1) / engine.limits.block_tokens if ticks and self._grows else 0.0
            self.blocks_time += (self._used + grown / 2) * time
            self.most_blocks = max(self.most_blocks, self._used + grown)
            self.batch_time += self._size * time
            self.kv.add(self._now, engine.now, self._used + grown / 2, self._used + grown)
            self.batch.add(self._now, engine.now, self._size, self._size)
            if ticks:
                self._decoded(time, ticks)
            else:
                self._stalled += time
                self._waiting = self._decoding
        self.most_batch = max(self.most_batch, size)
        self._now, self._clock, self._size = engine.now, engine.clock, size
        self._used = engine.limits.blocks - engine.free
        self._decoding = sum(call.prefilled == call.target for call in engine.members.values())

    def _decoded(self, time: int, ticks: int) -> None:
        batch, step = self._decoding, self.engine.cost.d * self._decoding
        first = time / ticks - step * (ticks - 1) / 2
        if self._stalled:
            stalled = min(self._waiting, batch)
            self.gaps.add(self._stalled + first, stalled)
            if batch > stalled:
                self.gaps.add(first, batch - stalled)
            self._stalled = self._waiting = 0
            first, ticks = first + step, ticks - 1
        if not batch:
            return
        most = max(1, int(PIECE * first / step)) if step else ticks
        while ticks:
            piece = min(ticks, most)
            self.gaps.add(first + step * (piece - 1) / 2, piece * batch)
            first, ticks = first + step * piece, ticks - piece

    def filled(self) -> Filled:
        """Means are over all of the time until now."""
        whole, blocks = self.engine.now or 1, self.engine.limits.blocks
        return Filled(
            kv_mean=self.blocks_time / whole / blocks,
            kv_max=self.most_blocks / blocks,
            batch_mean=self.batch_time / whole,
            batch_max=self.most_batch,
            gaps=self.gaps.summary(),
        )
