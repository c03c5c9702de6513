"""The worker from the server's side: one process, warm, started when it is first needed, killed when it takes too long.

A simulation in the server's own process would hold up what else it does; a thread could not be ended.
"""

import asyncio
import contextlib
import sys
from collections import OrderedDict
from hashlib import blake2b

from fairq.lab.worker import failure

KEPT = 24 << 20  # bytes of answers that are kept: a run is a function of its order
SECONDS = 20.0  # for one order
QUEUED = 8  # orders that may wait for the worker


class Crew:
    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()  # by a hash of the order, least recently asked first
        self._size = 0

    async def answer(self, order: bytes, again: bool = False) -> tuple[int, bytes]:
        """`order`: JSON on one line; `again`: the same order has the same answer. (HTTP status, JSON)"""
        key = blake2b(order, digest_size=16).digest()
        if (known := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return 200, known
        status, body = await self._in_turn(order)
        if again and status == 200 and len(body) <= KEPT // 4 and key not in self._kept:
            self._kept[key] = body
            self._size += len(body)
            while self._size > KEPT:
                self._size -= len(self._kept.popitem(last=False)[1])
        return status, body

    async def _in_turn(self, order: bytes) -> tuple[int, bytes]:
        if self._waiting >= QUEUED:
            return failure(503, "busy", "the lab computes other scenarios; try again in a moment")
        self._waiting += 1
        try:
            async with self._turn:
                return await self._ask(order)
        finally:
            self._waiting -= 1

    async def _ask(self, order: bytes) -> tuple[int, bytes]:
        done = False
        try:
            async with asyncio.timeout(self.seconds):
                process = await self._start()
                assert process.stdin
                assert process.stdout
                process.stdin.write(order + b"\n")
                await process.stdin.drain()
                status, length = (await process.stdout.readline()).split()
                body = await process.stdout.readexactly(int(length))
                done = True
                return int(status), body
        except TimeoutError:
            return failure(400, "too_long", f"scenario: not done in {self.seconds:g} s; `fairq sim` has no such limit")
        except (OSError, ValueError, asyncio.IncompleteReadError):
            return failure(500, "defect", "the lab's worker died; the next run starts a new one")
        finally:
            if not done:  # also when the reader went away: the rest of an answer must not be read as the next one
                await self.close()

    async def _start(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "fairq.lab.worker"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        return self._process

    async def close(self) -> None:
        """End the worker, at once."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await asyncio.shield(process.wait())
