"""How a ledger is kept, and what its writer tells of it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

SECOND = 1_000_000_000


class Upkeep(Struct, frozen=True, kw_only=True):
    """How a ledger is kept. Times in ns.

    sync_every    a power failure loses at most this much; a crash of the process alone loses what was not flushed
    rotate_bytes  a segment of this size is followed by a new one
    keep_bytes    whole old segments of a pool are removed beyond this total ...
    keep_age      ... and when their last line is older than this; the current segment always stays
    retry_every   how often a failed disk is tried again
    """

    sync_every: int = SECOND // 10
    rotate_bytes: int = 64 << 20
    keep_bytes: int = 1 << 30
    keep_age: int = 30 * 86_400 * SECOND
    retry_every: int = SECOND

    @property
    def rotate_age(self) -> int:
        """A quiet ledger rotates too: only whole segments can grow old and go."""
        return max(self.keep_age // 8, 60 * SECOND)

    def outdated(self, segments: Sequence[Path], wall: int, beside: int = 0) -> Iterator[Path]:
        """Those of a pool's segments, oldest first, that go: as many as the rules say. `beside`: bytes of one that
        stays. `wall`: now. Raises OSError."""
        found = [(path, path.stat()) for path in segments]
        total = sum(status.st_size for _, status in found) + beside
        for path, status in found:
            if total <= self.keep_bytes and wall - status.st_mtime_ns <= self.keep_age:
                return
            yield path
            total -= status.st_size


class Alarm(Struct, frozen=True):
    """The recording stopped, goes on, or is in danger. `lost`: lines dropped since it stopped."""

    recording: bool
    text: str
    lost: int = 0
