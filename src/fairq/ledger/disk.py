"""The file system as a writer sees it, and the thread that makes written lines durable."""

import os
import threading
from collections import deque
from pathlib import Path

PRIVATE = 0o600


class Disk:
    """The calls of a writer. A test replaces those that it wants to fail; each may raise OSError."""

    def create(self, path: Path) -> int:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, PRIVATE)

    def write(self, file: int, data: bytes | memoryview) -> int:
        return os.write(file, data)

    def sync(self, file: int) -> None:
        os.fsync(file)

    def close(self, file: int) -> None:
        os.close(file)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)


class Syncer:
    """Group fsync: what was written is durable at most `every` ns (and the disk's own time) later.

    It runs in a thread of its own, for an fsync can take as long as the disk likes. It alone closes files, so that
    none is closed under a running fsync.
    """

    def __init__(self, disk: Disk, every: int) -> None:
        self.syncs = 0
        self._disk, self._seconds = disk, every / 1e9
        self._file: int | None = None
        self._damaged: int | None = None
        self._retired: deque[int] = deque()
        self._failed: OSError | None = None
        self._wanted, self._closing = threading.Event(), threading.Event()
        self._runner = threading.Thread(target=self._run, name="ledger-sync", daemon=True)
        self._runner.start()

    def wrote(self, file: int) -> None:
        """There are new lines in `file`, which stays open."""
        self._file = file
        if not self._wanted.is_set():
            self._wanted.set()

    def retire(self, file: int) -> None:
        """`file` will not be written again: sync it and close it."""
        self._file = None
        self._retired.append(file)
        self._wanted.set()

    def failure(self) -> OSError | None:
        """What went wrong since the last call."""
        failed, self._failed = self._failed, None
        return failed

    def close(self, seconds: float) -> None:
        """Sync and close everything, and wait for it, but not for ever: a dead disk must not stop a shutdown."""
        self._closing.set()
        self._wanted.set()
        self._runner.join(seconds)

    def _run(self) -> None:
        while not (self._closing.is_set() and not self._wanted.is_set()):
            self._wanted.wait()
            self._closing.wait(self._seconds)  # the group gathers
            self._wanted.clear()
            file = self._file
            if file is not None:
                self._sync(file)
            while self._retired:
                retired = self._retired.popleft()
                self._sync(retired)
                self._damaged = None if retired == self._damaged else self._damaged
                try:
                    self._disk.close(retired)
                except OSError as error:
                    self._failed = error

    def _sync(self, file: int) -> None:
        if file == self._damaged:
            return  # a second fsync would report success for pages that are gone
        try:
            self._disk.sync(file)
            self.syncs += 1
        except OSError as error:
            self._failed, self._damaged = error, file
