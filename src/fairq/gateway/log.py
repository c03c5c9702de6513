"""One line per request on standard output, written by a thread, so that a slow terminal or pipe never stops serving.

Not the `logging` module: a record of it costs more than the rest of a request's bookkeeping.
"""

import os
import time
from collections.abc import Callable
from functools import lru_cache
from threading import Event, Thread
from typing import Literal

import msgspec

from fairq.core import events as ev
from fairq.core.commands import Ended

Form = Literal["text", "json", "off"]
GATHER = 0.1  # seconds
BACKLOG = 10_000  # lines that may wait for a slow reader; beyond, they are dropped and counted


class RequestLog:
    """Records gather for a moment and are formatted and written together: waking a thread costs more than a line."""

    def __init__(self, form: Form, fd: int = 1) -> None:
        self.dropped = 0
        self._woken = False  # the thread will look for records: as its event says, and cheaper to ask
        self._fd = fd
        self._line: Callable[[str, Ended | ev.Refused], bytes] | None = {"text": text, "json": json}.get(form)
        self._records: list[tuple[str, Ended | ev.Refused]] = []
        self._wanted, self._closing = Event(), Event()
        self._worker = Thread(target=self._run, name="request log", daemon=True)
        if self._line is not None:
            self._worker.start()

    def __call__(self, pool: str, record: Ended | ev.Refused) -> None:
        if self._line is None:
            return
        if len(self._records) >= BACKLOG:
            self.dropped += 1
            return
        self._records.append((pool, record))
        if not self._woken:
            self._woken = True
            self._wanted.set()

    def close(self) -> None:
        """Write what is left, for at most a second."""
        self._closing.set()
        self._wanted.set()
        if self._line is not None:
            self._worker.join(1.0)

    def _run(self) -> None:
        line = self._line
        assert line is not None
        while not self._closing.is_set() or self._records:
            self._wanted.wait()
            self._closing.wait(GATHER)
            self._wanted.clear()
            self._woken = False
            records, self._records = self._records, []
            data = b"".join(line(pool, record) for pool, record in records)
            try:
                while data:
                    data = data[os.write(self._fd, data) :]
            except OSError:
                return  # the reader is gone; the ledger has everything


@lru_cache(maxsize=1)
def _clock(second: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(second))


def text(pool: str, record: Ended | ev.Refused) -> bytes:
    """For people: 12:00:01 alice completed 200 wait=0ms ttft=31ms total=480ms 12+64 tokens charge=140 gpu0 ID"""
    clock = _clock(int(time.time()))
    tenant = record.tenant or "-"
    if isinstance(record, ev.Refused):
        return f"{clock} {tenant} {record.outcome} {record.status} {record.id}\n".encode()
    usage = record.usage
    return (
        f"{clock} {tenant} {record.outcome} {record.status} wait={record.wait // 1_000_000}ms"
        f" ttft={record.ttft // 1_000_000}ms total={record.total // 1_000_000}ms"
        f" {usage.prompt}+{usage.completion} tokens charge={record.charge} {record.upstream or '-'} {record.id}\n"
    ).encode()


def json(pool: str, record: Ended | ev.Refused) -> bytes:
    """For machines: the ledger's record with the wall clock and the pool."""
    stamped = msgspec.to_builtins(record) | {"pool": pool, "wall": time.time_ns()}
    return msgspec.json.encode(stamped) + b"\n"
