"""The Unix socket of a data plane: ledger lines come in, orders go out, and a broken connection comes back."""

import asyncio
import contextlib
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from fairq.console.history import catch_up
from fairq.console.live import DEFECTS, Live
from fairq.console.pool import LivePool

CHUNK = 64 << 10  # bytes of lines that are folded before others get their turn
UNREAD = 1 << 20
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds
ANSWER_SECONDS = 5.0


class Unavailable(Exception):
    """No data plane is connected, or it does not answer. Nothing may have changed."""


class EngineAddress(Struct, frozen=True):
    pool: str
    name: str
    url: str


class About(Struct, frozen=True):
    """What a data plane says of itself. `ledger`: directory; `config`: its file, "" for none."""

    pid: int
    ledger: str
    upstreams: list[EngineAddress]


class Reply(Struct, frozen=True):
    """To an order; unasked when `unrecorded` is there."""

    id: int
    error: str = ""
    changed: list[str] = []
    about: About | None = None
    unrecorded: dict[str, str] | None = None


_reply = msgspec.json.Decoder(Reply).decode


class Link:
    """`ledger`: its directory; None takes what the data plane says, and then totals begin with the connection."""

    def __init__(self, path: Path, live: Live, ledger: Path | None = None) -> None:
        self.path, self.live, self._ledger = path, live, ledger
        self.about: About | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._answers: dict[int, asyncio.Future[Reply]] = {}
        self._number = count(1).__next__

    async def run(self) -> None:
        """For ever: connect, read until the end, and again. Until cancelled."""
        pause = FIRST_PAUSE
        while True:
            try:
                reader, writer = await asyncio.open_unix_connection(self.path, limit=UNREAD)
            except OSError as error:
                self.live.disconnect(f"{self.path}: {error.strerror or error}")
            else:
                pause = FIRST_PAUSE
                await self._serve(reader, writer)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def order(self, do: str, **fields: Any) -> Reply:
        """Tell the data plane to do something, and wait for its answer. Raises Unavailable."""
        writer = self._writer
        if writer is None:
            raise Unavailable("the data plane is not connected")
        id_ = self._number()
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._answers[id_] = answer
        try:
            writer.write(msgspec.json.encode({"do": do, "id": id_} | fields) + b"\n")
            async with asyncio.timeout(ANSWER_SECONDS):
                return await answer
        except TimeoutError:
            raise Unavailable(f"the data plane did not answer within {ANSWER_SECONDS:g} s") from None
        finally:
            del self._answers[id_]

    async def ask_about(self) -> None:
        """Who is at the other end; by its answer, all heads were here."""
        reply = await self.order("about")
        if reply.about is not None:
            self.about = reply.about
        self.live.complete()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.live.connect()
        introduction = asyncio.create_task(self._introduce())
        why = "the data plane closed the connection"
        try:
            await self._read(reader)
        except OSError as error:
            why = error.strerror or str(error)
        finally:
            introduction.cancel()
            self._writer = None
            writer.close()
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(Unavailable("the data plane went away before it answered"))
            self.live.disconnect(why)

    async def _introduce(self) -> None:
        with contextlib.suppress(Unavailable):  # the next connection asks again
            await self.ask_about()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        rest = bytearray()
        while data := await reader.read(CHUNK):
            end = data.rfind(b"\n")
            if end < 0:
                rest += data
                continue
            lines = bytes(rest) + data[:end]
            rest = bytearray(data[end + 1 :])
            for line in lines.split(b"\n"):
                begun = self._take(line)
                if begun is not None:
                    await self._catch_up(begun)
            self.live.turn()
            await asyncio.sleep(0)  # `read` does not wait while there is more

    async def _catch_up(self, pool: LivePool) -> None:
        """The stream begins now; the ledger tells what was before."""
        ledger = self.ledger
        try:
            for _ in catch_up(pool, ledger) if ledger is not None else ():
                self.live.turn()
                await asyncio.sleep(0)
        except (OSError, *DEFECTS) as error:
            self.live.complain(f"the ledger of {pool.name} cannot be read: {error}")
        pool.follow()

    @property
    def ledger(self) -> Path | None:
        """Its directory, when known."""
        return self._ledger or (Path(self.about.ledger) if self.about else None)

    def _take(self, line: bytes) -> LivePool | None:
        pool, tab, raw = line.partition(b"\t")
        if pool:
            return self.live.take(pool.decode(errors="replace"), raw)
        if tab:
            reply = _reply(raw)
            if reply.unrecorded is not None:
                self.live.unrecorded = reply.unrecorded
            answer = self._answers.get(reply.id)
            if answer is not None and not answer.done():
                answer.set_result(reply)
        return None
