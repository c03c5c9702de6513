"""One line per request on standard output, written by a thread, so that a slow terminal or pipe never stops serving.

Not the `logging` module: a record of it costs more than the rest of a request's bookkeeping.
"""

import os
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Final, Literal

import msgspec

from fairq.core import events as ev
from fairq.core.commands import Ended
from fairq.core.lines import encode_lines

Form = Literal["text", "json", "off"]
Logged = tuple[str, Ended | ev.Refused, str]
"""The pool, what is to be said, and why its last failed attempt failed: one line, "" if none did."""

MS: Final = 1_000_000  # ns
GATHER: Final = 0.1  # seconds
BACKLOG: Final = 10_000  # lines that may wait for a slow reader; beyond, they are dropped and counted


class RequestLog:
    """Records gather for a moment and are formatted and written together: waking a thread costs more than a line."""

    def __init__(self, form: Form, fd: int = 1) -> None:
        self.dropped = 0
        self._woken = False  # the thread will look for records: as its event says, and cheaper to ask
        self._fd = fd
        self._lines: Callable[[list[Logged]], bytes] | None = {"text": text, "json": json}.get(form)
        self._records: list[Logged] = []
        self._wanted, self._closing = Event(), Event()
        self._worker = Thread(target=self._run, name="request log", daemon=True)
        if self._lines is not None:
            self._worker.start()

    def __call__(self, pool: str, record: Ended | ev.Refused, failure: str) -> None:
        if self._lines is None:
            return
        if len(self._records) >= BACKLOG:
            self.dropped += 1
            return
        self._records.append((pool, record, failure))
        if not self._woken:
            self._woken = True
            self._wanted.set()

    def close(self) -> None:
        """Write what is left, for at most a second."""
        self._closing.set()
        self._wanted.set()
        if self._lines is not None:
            self._worker.join(1.0)

    def _run(self) -> None:
        lines = self._lines
        assert lines is not None
        while not self._closing.is_set() or self._records:
            self._wanted.wait()
            self._closing.wait(GATHER)
            self._wanted.clear()
            self._woken = False
            records, self._records = self._records, []
            data = lines(records)
            try:
                while data:
                    data = data[os.write(self._fd, data) :]
            except OSError:
                return  # the reader is gone; the ledger has everything


def text(records: list[Logged]) -> bytes:
    """For people: 12:00:01 alice completed 200 wait=0ms ttft=31ms total=480ms 12+64 tokens charge=140 gpu0 ID

    and, where an attempt failed, at which upstream and why, though another may have succeeded: (gpu1: answered 503).
    The time is that of writing, GATHER after the last of them at most."""
    clock = time.strftime("%H:%M:%S")
    lines: list[str] = []
    for _, record, failure in records:
        start = f"{clock} {record.tenant or '-'} {record.outcome} {record.status}"
        if isinstance(record, Ended):
            usage = record.usage
            lines.append(
                f"{start} wait={record.wait // MS}ms ttft={record.ttft // MS}ms total={record.total // MS}ms"
                f" {usage.prompt}+{usage.completion} tokens charge={record.charge} {record.upstream or '-'}"
                f" {record.id}{f' ({failure})' if failure else ''}\n"
            )
        else:
            lines.append(f"{start} {record.id}\n")
    return "".join(lines).encode()


def json(records: list[Logged]) -> bytes:
    """For machines: the ledger's records with the wall clock, the pool, and `failure` where an attempt failed."""
    wall = time.time_ns()
    lines = []
    for pool, record, failure in records:
        line = msgspec.to_builtins(record) | {"pool": pool, "wall": wall}
        lines.append(line | {"failure": failure} if failure else line)
    return encode_lines(lines)
