"""Send a plan: open loop, so that a slow target cannot slow its load down."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from fairq.gateway.http1 import Transfer, Upstream
from fairq.load.call import Call, Result
from fairq.load.plan import Planned
from fairq.load.target import Headers

Write = Callable[[Planned], tuple[Headers, bytes]]


class Replay:
    """One run. `results` grows as requests end, in that order.

    write            headers and body of a planned request; called just before it is sent max_concurrency
    no more than this many are under way; the rest is sent late (the loop is then no longer open, and
                     `Result.late` says by how much)
    duration         nothing is sent after so many seconds
    """

    def __init__(
        self,
        upstream: Upstream,
        path: bytes,
        write: Write,
        *,
        max_concurrency: int | None = None,
        duration: float | None = None,
        on_result: Callable[[Result], None] = lambda result: None,
    ) -> None:
        self.results: list[Result] = []
        self.sent = 0
        self._upstream, self._path, self._write = upstream, path, write
        self._most, self._duration, self._on_result = max_concurrency, duration, on_result
        self._running: dict[Call, Transfer] = {}
        self._changed = asyncio.Event()
        self._stopped = False

    @property
    def in_flight(self) -> int:
        return len(self._running)

    async def run(self, plan: Iterable[Planned]) -> None:
        """Send everything and wait until all of it has ended, or until `stop`. Errors of the plan end the run."""
        start = time.perf_counter_ns()
        try:
            for planned in plan:
                if self._duration is not None and planned.at > self._duration:
                    break
                await self._until(start + round(planned.at * 1e9))
                if self._stopped:
                    break
                self._send(planned, start)
            while self._running and not self._stopped:
                await self._change(None)
        finally:
            self._cut()

    def stop(self) -> None:
        """End the run now. What is under way is aborted and counts as interrupted."""
        self._stopped = True
        self._changed.set()

    async def _until(self, moment: int) -> None:
        """Until the moment has come and there is room, or until `stop`."""
        while not self._stopped:
            left = moment - time.perf_counter_ns()
            if left > 0:
                await self._change(left / 1e9)
            elif self._most is not None and len(self._running) >= self._most:
                await self._change(None)
            else:
                # Behind schedule there is nothing to wait for, but answers must be read all the same.
                await asyncio.sleep(0)
                return

    async def _change(self, seconds: float | None) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass

    def _send(self, planned: Planned, start: int) -> None:
        headers, body = self._write(planned)
        late = max(0, time.perf_counter_ns() - start - round(planned.at * 1e9))
        call = Call(planned.place, planned.tenant, late, self._done)
        self._running[call] = self._upstream.send(b"POST", self._path, headers, body, call)
        self.sent += 1

    def _done(self, call: Call, result: Result) -> None:
        del self._running[call]
        self.results.append(result)
        self._on_result(result)
        if self._most is not None or not self._running:
            self._changed.set()

    def _cut(self) -> None:
        for call, transfer in list(self._running.items()):
            transfer.abort()
            call.interrupt()
