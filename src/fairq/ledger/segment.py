"""The format: one folder per pool, in it numbered segments of JSON lines, each of which can be read on its own.

    LEDGER/POOL/00000001.jsonl    line 1: the head; then every event, each followed by the commands it caused

A line is whole when its newline is there. The head holds the full state of the scheduler after everything before it,
so old segments may be removed and any one segment replays alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from fairq import __version__
from fairq.core import snapshot
from fairq.core.commands import AnyCommand
from fairq.core.errors import FairqError
from fairq.core.events import AnyEvent
from fairq.core.lines import decoder
from fairq.core.scheduler import Scheduler
from fairq.core.setup import Setup

FORMAT = 1
SUFFIX = ".jsonl"


class LedgerError(FairqError):
    """A ledger that cannot be opened or read: one line, with the file and the line where there is one."""


class Opened(StrEnum):
    """Why a segment begins."""

    STARTED = "started"  # a new process: queues and requests of the last one are gone
    ROTATED = "rotated"  # the segment before was full: nothing is missing between them
    GAP = "gap"  # the disk failed for a while: `Head.lost` lines are missing before this segment


class Head(Struct, frozen=True, kw_only=True, tag_field="is", tag=True):
    """The first line of a segment.

    policy_version   of the policy named in `setup`; another version may decide otherwise
    config           a hash of the configuration, "" without one
    wall, monotonic  one moment on both clocks, ns; event times are monotonic
    state            `core.snapshot.save` of the scheduler
    """

    format: int = FORMAT
    fairq: str = __version__
    pool: str
    opened: Opened = Opened.STARTED
    lost: int = 0
    policy_version: int
    config: str = ""
    setup: Setup
    wall: int
    monotonic: int
    state: dict[str, Any]


AnyLine = Head | AnyEvent | AnyCommand

decode = decoder(AnyLine)
"""One line -> the head, event or command it holds. Raises msgspec.DecodeError."""


@contextmanager
def reading_state(head: Head) -> Iterator[None]:
    """Around code that unpacks `head.state`. A state of another shape becomes a LedgerError."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, msgspec.MsgspecError) as error:
        kind = type(error).__name__
        raise LedgerError(f"pool {head.pool}: the state in a head cannot be read ({kind}: {error})") from None


def head_of(scheduler: Scheduler, *, wall: int, monotonic: int, config: str = "") -> Head:
    """The head that a segment beginning now needs. O(living requests + tenants)."""
    return Head(
        pool=scheduler.setup.pool,
        policy_version=scheduler.policy.version,
        config=config,
        setup=scheduler.setup,
        wall=wall,
        monotonic=monotonic,
        state=snapshot.save(scheduler),
    )


def folder_of(pool: str) -> str:
    """The name of a pool's folder. Pools are often named after models: `org/name` must not become two folders."""
    name = quote(pool, safe=" ,;=@+")
    return "%2E" + name[1:] if name.startswith(".") else name


def name_of(number: int) -> str:
    return f"{number:08}{SUFFIX}"


def number_of(path: Path) -> int | None:
    """None for a file that is not a segment."""
    return int(path.stem) if path.suffix == SUFFIX and path.stem.isascii() and path.stem.isdecimal() else None


def segments_in(folder: Path) -> list[Path]:
    """In order. Raises OSError."""
    numbered = ((number_of(path), path) for path in folder.iterdir())
    return [path for _, path in sorted((number, path) for number, path in numbered if number is not None)]
