"""Appends a pool's lines to segments: cheap in the request path, durable in groups, and never in the way of serving.

A disk that fails costs the record, not the requests: the writer raises an alarm, counts the lines it has to drop, tries
again every now and then, and goes on with a new segment that says how many are missing.
"""

import fcntl
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from fairq.core.lines import encode
from fairq.ledger.disk import PRIVATE, Disk, Syncer
from fairq.ledger.former import LOCK
from fairq.ledger.segment import Head, LedgerError, Opened, folder_of, name_of, number_of, segments_in
from fairq.ledger.upkeep import Alarm, Upkeep

CLOSING_SECONDS = 10.0


Sink = Callable[[str, bytes], None]
"""Takes (pool, whole lines), at each flush. It must not raise."""


class Writer:
    """The writer of one pool. It takes the time as an argument, and leaves flushing to its shell:

        writer.append(lines)   after each event: whole lines, newline included; O(1)
        writer.flush(now)      at the end of a loop turn, and at least every few seconds

    head   makes the head of a segment that begins now; called between events, never inside one
    alarm  told when recording stops, is in danger, or goes on
    gap    told (lost lines) after a gap, when recording goes on: the shell makes a `RecordingGap` event of it
    sinks  get every flushed line, also while the disk fails; heads are not lines of theirs

    Raises LedgerError when the folder cannot be used, or another process writes to it; later it never raises.
    """

    def __init__(
        self,
        root: Path,
        pool: str,
        head: Callable[[], Head],
        now: int,
        *,
        alarm: Callable[[Alarm], None],
        gap: Callable[[int], None],
        sinks: Sequence[Sink] = (),
        upkeep: Upkeep | None = None,
        disk: Disk | None = None,
    ) -> None:
        self.pool, self.folder = pool, root / folder_of(pool)
        self.upkeep, self.sinks = upkeep or Upkeep(), list(sinks)
        self.lost = self.written = self.segments = 0
        self._head, self._alarm, self._gap = head, alarm, gap
        self._disk = disk or Disk()
        self._buffer: list[bytes] = []
        self.append = self._buffer.append
        self._lock, self._number = self._enter()
        self._syncer = Syncer(self._disk, self.upkeep.sync_every)
        self._file: int | None = None
        self._missing = self._size = self._opened_at = self._retry_at = 0
        self._wall_ahead = 0  # wall clock - monotonic clock
        error = self._open(Opened.STARTED, now)
        if error is not None:
            self._stop(error, 0, now)

    @property
    def recording(self) -> bool:
        return self._file is not None

    @property
    def syncs(self) -> int:
        return self._syncer.syncs

    def flush(self, now: int) -> None:
        """Write what was appended, with one call to the system; rotate, remove, recover when it is time to."""
        buffer = self._buffer
        if buffer:
            data = b"".join(buffer)
            buffer.clear()
            for sink in self.sinks:
                sink(self.pool, data)
            self._write(data, now)
        if now < self._retry_at:
            return
        if self._file is None:
            self._recover(now)
        elif self._size >= self.upkeep.rotate_bytes or now - self._opened_at >= self.upkeep.rotate_age:
            self._rotate(now)
        elif (error := self._syncer.failure()) is not None:
            self._alarm(Alarm(True, f"{self.folder}: {error.strerror or error}; lines of this segment may be damaged"))
            self._rotate(now)

    def close(self, now: int) -> None:
        """Flush, sync, close."""
        self.flush(now)
        if self._file is not None:
            self._syncer.retire(self._file)
            self._file = None
        self._syncer.close(CLOSING_SECONDS)
        os.close(self._lock)

    def _enter(self) -> tuple[int, int]:
        try:
            for folder in (self.folder.parent, self.folder):  # with parents=True only the last one has the mode
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.chmod(0o700)
            lock = os.open(self.folder / LOCK, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
        except OSError as error:
            cause = "is not a directory" if isinstance(error, FileExistsError) else error.strerror or error
            raise LedgerError(f"{error.filename or self.folder}: {cause}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            last = max((number_of(path) or 0 for path in segments_in(self.folder)), default=0)
        except OSError as error:
            os.close(lock)
            taken = isinstance(error, BlockingIOError)
            raise LedgerError(f"{self.folder}: {'another fairq writes to it' if taken else error.strerror}") from None
        return lock, last + 1

    def _open(self, opened: Opened, now: int, lost: int = 0) -> OSError | None:
        """A new segment with its head. It stays away, and the old one open, if that fails."""
        path = self.folder / name_of(self._number)
        file = None
        try:
            file = self._disk.create(path)
            head = replace(self._head(), pool=self.pool, opened=opened, lost=lost)
            line = encode(head) + b"\n"
            rest = memoryview(line)
            while rest:
                done = self._disk.write(file, rest)  # in the slice itself, mypyc would call it twice
                rest = rest[done:]
        except OSError as error:
            try:
                if file is not None:
                    self._disk.close(file)
                    self._disk.remove(path)
            except OSError:
                self._number += 1  # an empty or torn file stays: readers pass over it
            return error
        if self._file is not None:
            self._syncer.retire(self._file)
        self._file, self._size, self._opened_at = file, len(line), now
        self._number += 1
        self.segments += 1
        self.written += len(line)
        self._wall_ahead = head.wall - head.monotonic
        self._syncer.wrote(file)
        self._remove_old(now)
        return None

    def _write(self, data: bytes, now: int) -> None:
        rest = memoryview(data)
        try:
            while rest and self._file is not None:
                done = self._disk.write(self._file, rest)
                rest = rest[done:]
                self._size += done
                self.written += done
        except OSError as error:
            assert self._file is not None
            self._syncer.retire(self._file)
            self._file = None
            self._stop(error, bytes(rest).count(b"\n"), now)
            return
        if self._file is None:
            lines = data.count(b"\n")
            self.lost += lines
            self._missing += lines
        else:
            self._syncer.wrote(self._file)

    def _stop(self, error: OSError, lost: int, now: int) -> None:
        self.lost += lost
        self._missing += lost
        self._retry_at = now + self.upkeep.retry_every
        self._alarm(Alarm(False, f"{self.folder}: {error.strerror or error}; serving goes on unrecorded", lost))

    def _recover(self, now: int) -> None:
        missing = self._missing
        if self._open(Opened.GAP, now, missing) is not None:
            self._retry_at = now + self.upkeep.retry_every
            return
        self._missing = 0
        self._syncer.failure()  # of the file that was given up: already told
        self._alarm(Alarm(True, f"{self.folder}: recording again, {missing} lines are missing", missing))
        self._gap(missing)

    def _rotate(self, now: int) -> None:
        error = self._open(Opened.ROTATED, now)
        if error is not None:  # the old segment still takes lines: no reason to lose any
            self._retry_at = now + self.upkeep.retry_every
            self._alarm(Alarm(True, f"{self.folder}: {error.strerror or error}; no new segment, the old one grows"))

    def _remove_old(self, now: int) -> None:
        try:
            for path in self.upkeep.outdated(segments_in(self.folder)[:-1], now + self._wall_ahead, self._size):
                self._disk.remove(path)
        except OSError as error:
            self._alarm(Alarm(True, f"{self.folder}: old segments stay: {error.strerror or error}"))
