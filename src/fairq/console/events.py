"""Decisions and ends as server-sent events: one ring for all readers, so that a slow one costs no memory.

id: 18f3a2-1042
event: dispatch | ended | refused | change
data: {"pool": "default", "wall": 1700000000.25, "line": {...the ledger line...}}

event: state            a summary, now and then: `views.State`
event: missed           the reader asked for more than the ring still holds
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from itertools import takewhile

import msgspec
from msgspec import Struct

from fairq.console.views import Shortened
from fairq.core import commands as cmd
from fairq.core import events as ev
from fairq.ledger.segment import AnyLine

KEPT = 4096
LONGEST = 16 << 10  # bytes of a line; a change of the configuration of thousands of tenants is longer
BATCH = 256
FASTEST = 0.1  # seconds between two looks at the ring, and between two summaries
QUIET = 15.0  # seconds after which a comment shows that the connection lives

KINDS: dict[type, str] = {
    cmd.Dispatch: "dispatch",
    cmd.Ended: "ended",
    ev.Refused: "refused",
    ev.Paused: "change",
    ev.Resumed: "change",
    ev.Reconfigured: "change",
    ev.UpstreamChanged: "change",
    ev.UpstreamRemoved: "change",
    ev.Draining: "change",
    ev.RecordingGap: "change",
}


class Item(Struct, frozen=True):
    number: int
    kind: str
    tenant: str
    pool: str
    wall: float
    line: msgspec.Raw


class _Data(Struct):
    pool: str
    wall: float
    line: msgspec.Raw


class Ring:
    """The last KEPT items. `number` is that of the newest one; numbers belong to this process, see `boot`."""

    def __init__(self) -> None:
        self.items: deque[Item] = deque(maxlen=KEPT)
        self.number = 0
        self.boot = f"{time.time_ns():x}"

    def add(self, pool: str, line: AnyLine, raw: bytes, wall: Callable[[int], float]) -> None:
        """`wall`: an event's time on the wall clock."""
        kind = KINDS.get(type(line))
        if kind is not None:
            self.number += 1
            tenant, time = getattr(line, "tenant", ""), line.time  # type: ignore[union-attr]
            if len(raw) > LONGEST:
                raw = msgspec.json.encode(Shortened(line.seq, time, type(line).__name__, len(raw)))  # type: ignore[union-attr]
            self.items.append(Item(self.number, kind, tenant, pool, wall(time), msgspec.Raw(raw)))

    def after(self, number: int, most: int) -> list[Item]:
        """At most so many items that follow `number`. O(of them)."""
        skip = max(len(self.items) - (self.number - number), 0)
        return [self.items[place] for place in range(skip, min(skip + most, len(self.items)))]

    def oldest(self) -> int:
        return self.items[0].number if self.items else self.number + 1

    def position(self, last_event_id: str | None, back: float = 0.0) -> int:
        """Where a reader goes on: after the id it names, else from `back` seconds ago on. An id of another process:
        all there is."""
        if last_event_id is None:
            since = time.time() - back
            recent = takewhile(lambda item: item.wall >= since, reversed(self.items)) if back else ()
            return self.number - sum(1 for _ in recent)
        boot, _, number = last_event_id.rpartition("-")
        if boot != self.boot or not number.isascii() or not number.isdecimal():
            return self.oldest() - 1
        return min(int(number[:18]), self.number)


async def stream(
    ring: Ring,
    position: int,
    *,
    kinds: frozenset[str],
    tenant: str | None,
    summary: Callable[[], bytes],
    every: float,
    closing: asyncio.Event,
) -> AsyncIterator[bytes]:
    """Until the reader is gone, the process stops, or the reader is slower than the ring is long.

    every  seconds between two summaries, at least FASTEST; 0 for none
    """
    loop = asyncio.get_running_loop()
    next_summary = loop.time() if every else float("inf")
    spoken = loop.time()
    yield b"retry: 1000\n\n"
    if position < ring.oldest() - 1:
        yield b'event: missed\ndata: {"missed": %d}\n\n' % (ring.oldest() - 1 - position)
        position = ring.oldest() - 1
    while not closing.is_set():
        if position < ring.oldest() - 1:
            return  # it comes back with Last-Event-ID, and is told what it missed
        items = ring.after(position, BATCH)
        out = []
        for item in items:
            position = item.number
            if item.kind in kinds and tenant in (None, item.tenant):
                data = msgspec.json.encode(_Data(item.pool, item.wall, item.line))
                out.append(b"id: %b-%d\nevent: %b\ndata: %b\n\n" % (_b(ring.boot), position, _b(item.kind), data))
        now = loop.time()
        if now >= next_summary:
            out.append(b"event: state\ndata: %b\n\n" % summary())
            next_summary = now + max(every, FASTEST)
        if not out and now - spoken > QUIET:
            out.append(b": alive\n\n")
        if out:
            spoken = now
            yield b"".join(out)
        if len(items) < BATCH:
            try:
                async with asyncio.timeout(FASTEST):
                    await closing.wait()
            except TimeoutError:
                pass


def _b(text: str) -> bytes:
    return text.encode()
