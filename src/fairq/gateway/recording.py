"""The ledger behind a running gateway: a writer per pool, flushed at the end of a loop turn; the console's copy."""

import asyncio
import time
from collections.abc import Callable
from functools import partial

from fairq.core import events as ev
from fairq.gateway.config import Config
from fairq.gateway.config_sections import Ledger
from fairq.gateway.dispatcher import Record
from fairq.gateway.pool import SECOND, Pool
from fairq.ledger import former
from fairq.ledger.disk import Disk
from fairq.ledger.estimates import last_estimator
from fairq.ledger.segment import Head, LedgerError, folder_of, head_of
from fairq.ledger.upkeep import Alarm, Upkeep
from fairq.ledger.writer import Sink, Writer

TEND_EVERY = 0.25  # seconds: rotation, recovery of a failed disk


def upkeep_of(ledger: Ledger) -> Upkeep:
    return Upkeep(
        sync_every=int(ledger.fsync * SECOND),
        rotate_bytes=ledger.rotate_bytes,
        keep_bytes=ledger.keep_bytes,
        keep_age=int(ledger.keep_age * SECOND),
    )


class Recorder:
    """Takes the lines of every pool. Raises LedgerError from `open`, never later.

    unrecorded  pools whose lines the disk refuses at the moment, and what it says
    on_change   called when that has changed
    """

    def __init__(self, config: Config, complain: Callable[[str], None], send: Sink, disk: Disk | None = None) -> None:
        self.unrecorded: dict[str, str] = {}
        self.on_change: Callable[[], None] | None = None
        self._config, self._complain, self._send, self._disk = config, complain, send, disk
        self._writers: dict[str, Writer] = {}
        self._loop = asyncio.get_running_loop()
        self._due: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None

    def open(self, pool: Pool) -> None:
        """Before the pool's first event: its first segment begins with the state before it."""
        self._remember(pool)
        self._writers[pool.name] = Writer(
            self._config.ledger.dir,
            pool.name,
            partial(self._head, pool),
            time.monotonic_ns(),
            alarm=partial(self._alarm, pool.name),
            gap=partial(self._gap, pool),
            sinks=[self._send],
            upkeep=upkeep_of(self._config.ledger),
            disk=self._disk,
        )
        if self._timer is None:
            self._tidy()
            self._tend()

    def _tidy(self) -> None:
        ledger = self._config.ledger
        try:
            former.remove_old(ledger.dir, [pool.name for pool in self._config.pools], upkeep_of(ledger), time.time_ns())
        except OSError as error:
            self._complain(f"ledger: {error.filename or ledger.dir}: old segments stay: {error.strerror or error}")

    def _remember(self, pool: Pool) -> None:
        """Take over what the last run had learnt about its tenants' requests."""
        try:
            last = last_estimator(self._config.ledger.dir / folder_of(pool.name))
        except (LedgerError, OSError) as error:
            self._complain(f"ledger: {error}; what it knew of request sizes is lost")
        else:
            if last is not None:
                pool.remember(last)

    def record(self, pool: str) -> Record:
        writers = self._writers
        append: Callable[[bytes], None] | None = None  # of the writer, which is made later

        def record(lines: bytes) -> None:
            nonlocal append
            if append is None:
                append = writers[pool].append
            append(lines)
            if self._due is None:
                self._due = self._loop.call_soon(self._flush)

        return record

    async def close(self) -> None:
        for handle in (self._timer, self._due):
            if handle is not None:
                handle.cancel()
        while self._writers:
            _, writer = self._writers.popitem()
            writer.close(time.monotonic_ns())

    def _flush(self) -> None:
        self._due = None
        now = time.monotonic_ns()
        for writer in self._writers.values():
            writer.flush(now)

    def _tend(self) -> None:
        self._flush()
        self._timer = self._loop.call_later(TEND_EVERY, self._tend)

    def _head(self, pool: Pool) -> Head:
        return head_of(pool.scheduler, wall=time.time_ns(), monotonic=time.monotonic_ns(), config=self._config.hash())

    def _alarm(self, pool: str, alarm: Alarm) -> None:
        self._complain(f"ledger: {alarm.text}")
        if alarm.recording:
            self.unrecorded.pop(pool, None)
        else:
            self.unrecorded[pool] = alarm.text
        if self.on_change is not None:
            self.on_change()

    def _gap(self, pool: Pool, lost: int) -> None:
        pool.dispatcher.emit(ev.RecordingGap, lost=lost)
