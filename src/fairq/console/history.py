"""What happened before the console connected, read from the ledger's segments: totals survive a console's restart."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from fairq.console.pool import LivePool
from fairq.ledger.reader import Reader
from fairq.ledger.segment import Head, LedgerError, Opened, decode, folder_of, segments_in

MOST_BYTES = 64 << 20  # read at the first connection; older segments of the same run are not counted
MOST_MISSED = 20_000  # events read after a later one: who was cut off for being slow must not fall behind again


class Segment(NamedTuple):
    path: Path
    size: int
    head: Head


def current_run(folder: Path, most: int) -> list[Segment]:
    """Segments of the process that writes now, oldest first; only the last ones if together they are larger.

    Raises OSError, LedgerError.
    """
    found: list[Segment] = []
    for path in reversed(segments_in(folder)):
        size = path.stat().st_size
        most -= size
        if most < 0 and found:
            break
        head = _head(path)
        if head is None:  # empty or torn: a crash, or a failed disk
            continue
        found.insert(0, Segment(path, size, head))
        if head.opened is Opened.STARTED:
            break
    return found


def catch_up(pool: LivePool, ledger: Path) -> Iterator[None]:
    """Fold what the pool does not know yet of the current run. Yields now and then, for others to take their turn.

    Raises OSError, LedgerError; then the pool goes on from the head that it got by the stream.
    """
    folder = ledger / folder_of(pool.name)
    run = current_run(folder, MOST_BYTES)
    if not run:
        return
    started = run[0].head.wall if run[0].head.opened is Opened.STARTED else None
    known = pool.head is not None and started in (None, pool.started)
    if known:
        run = _unknown(run, pool.at)
        if not run or pool.ahead > MOST_MISSED:
            return
    else:
        pool.started = started
        pool.resume(run[0].head, len(msgspec.json.encode(run[0].head.state)))
    for number, line in enumerate(Reader(folder, run[0].path)):
        if number % 256 == 255:
            yield
        if not isinstance(line.value, Head):
            pool.take(line.value, line.raw)
        elif line.path != run[0].path and line.value.state["seq"] >= pool.at:
            pool.resume(line.value, len(line.raw))


def _unknown(run: list[Segment], at: int) -> list[Segment]:
    """From the segment on in which the lines behind event `at` begin; none if they are not there any more."""
    first = max((place for place, segment in enumerate(run) if segment.head.state["seq"] <= at), default=None)
    return [] if first is None else run[first:]


def _head(path: Path) -> Head | None:
    with path.open("rb") as file:
        raw = file.readline()
    if not raw.endswith(b"\n"):
        return None
    try:
        head = decode(raw[:-1])
    except (msgspec.MsgspecError, ValueError, ArithmeticError) as error:
        raise LedgerError(f"{path}:1: {error}") from None
    return head if isinstance(head, Head) else None
