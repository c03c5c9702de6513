"""One line per request on standard output, written by a thread, so that a slow terminal or pipe never stops serving.

Not the `logging` module: a record of it costs more than the rest of a request's bookkeeping.
"""

import os
import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Literal

import msgspec

from fairq.core import events as ev
from fairq.core.commands import Ended

Form = Literal["text", "json", "off"]
BACKLOG = 10_000  # lines that may wait for a slow reader; beyond, they are dropped and counted


class RequestLog:
    def __init__(self, form: Form, fd: int = 1) -> None:
        self.dropped = 0
        self._fd = fd
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._line: Callable[[str, Ended | ev.Refused], bytes] | None = {"text": text, "json": json}.get(form)
        self._thread: Thread | None = None
        if self._line is not None:
            self._thread = Thread(target=self._write, name="request log", daemon=True)
            self._thread.start()

    def __call__(self, pool: str, record: Ended | ev.Refused) -> None:
        if self._line is not None:
            if self._queue.qsize() < BACKLOG:
                self._queue.put(self._line(pool, record))
            else:
                self.dropped += 1

    def close(self) -> None:
        """Write what is queued, for at most a second."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(1.0)

    def _write(self) -> None:
        while True:
            line = self._queue.get()
            lines = [line]
            while not self._queue.empty() and lines[-1] is not None:
                lines.append(self._queue.get_nowait())
            try:
                data = b"".join(line for line in lines if line is not None)
                while data:
                    data = data[os.write(self._fd, data) :]
            except OSError:
                return  # the reader is gone; the ledger has everything
            if lines[-1] is None:
                return


def text(pool: str, record: Ended | ev.Refused) -> bytes:
    """For people: 12:00:01 alice completed 200 wait=0ms ttft=31ms total=480ms 12+64 tokens charge=140 gpu0 ID"""
    clock = time.strftime("%H:%M:%S")
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
