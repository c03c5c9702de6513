"""What the tests of the data plane share: applications, a client of raw bytes, and transports without a kernel."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar, cast

from fairq.gateway.http1 import Exchange, Failure, Framing, Limits, Receiver, Server, Upstream
from fairq.gateway.http1.connection import Connection
from fairq.gateway.http1.deadlines import Deadlines
from fairq.gateway.http1.heads import ResponseHead

T = TypeVar("T")
BODY_LIMIT = 100_000


def on_uvloop(main: Coroutine[Any, Any, T]) -> T:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def on_asyncio(main: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(main)


def echo(exchange: Exchange) -> None:
    """Says what the request was understood to be."""

    def answer(body: bytes) -> None:
        said = b"%b %b ?%b %b" % (exchange.method, exchange.path.encode(), exchange.query, body)
        exchange.respond(200, [(b"x-host", exchange.header(b"host") or b"")], said)

    exchange.read_body(answer, BODY_LIMIT)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.deadlines = Deadlines(lambda: self.now)

    def advance(self, seconds: float) -> None:
        """Let time pass tick by tick, as it does."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(self.now + self.deadlines.tick, end)
            self.deadlines.sweep()

    def jump(self, seconds: float) -> None:
        """Let time pass at once, as after a long stop of the process."""
        self.now += seconds
        self.deadlines.sweep()


class NoSocket:
    def setsockopt(self, *option: object) -> None:
        pass


class MemoryTransport(asyncio.Transport):
    """Takes all bytes at once unless `stuck`; then they stay in its buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.buffered = 0
        self.stuck = False
        self.closing = False
        self.aborted = False
        self.ended = False
        self.reading = True
        self.lost = False
        self.high = 65536
        self.low = 16384
        self.paused = False
        self.protocol: asyncio.Protocol | None = None

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"socket": NoSocket(), "peername": ("192.0.2.1", 50000)}.get(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closing, "written after the close"
        self.written += data
        if self.stuck:
            self.buffered += len(data)
            self._maybe_pause()

    def drain(self, count: int | None = None) -> None:
        """The peer reads `count` bytes, or all."""
        self.buffered -= self.buffered if count is None else min(count, self.buffered)
        if self.paused and self.buffered <= self.low:
            self.paused = False
            assert self.protocol is not None
            self.protocol.resume_writing()
        self.settle()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.high = 65536 if high is None else high
        self.low = self.high // 4 if low is None else low
        self._maybe_pause()

    def _maybe_pause(self) -> None:
        if self.buffered > self.high and not self.paused:
            self.paused = True
            assert self.protocol is not None
            self.protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def write_eof(self) -> None:
        self.ended = True

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = self.aborted = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def settle(self) -> None:
        """Tell the protocol that the connection is gone, once, as an event loop does in its next turn."""
        if self.closing and not self.lost and (self.aborted or self.buffered == 0):
            self.lost = True
            assert self.protocol is not None
            self.protocol.connection_lost(None)


class MemoryClient:
    """A server's connection without a kernel: bytes given to `send` are one read."""

    def __init__(self, server: Server) -> None:
        self.transport = MemoryTransport()
        self.connection = Connection(server)
        self.transport.protocol = self.connection
        self.connection.connection_made(self.transport)
        self.transport.settle()

    def send(self, data: bytes) -> None:
        if not self.transport.closing and data:
            self.connection.data_received(data)
        self.transport.settle()

    def leave(self) -> None:
        """The client closes its side."""
        if not self.transport.closing and not self.connection.eof_received():
            self.transport.close()
        self.transport.settle()

    @property
    def answered(self) -> bytes:
        return self.transport.written

    @property
    def closed(self) -> bool:
        """Whether the server has closed, or closed its sending half."""
        return self.transport.closing or self.transport.ended


def memory_server(app: Callable[[Exchange], None] = echo, limits: Limits | None = None) -> tuple[Server, Clock]:
    clock = Clock()
    return Server(app, limits or Limits(), deadlines=clock.deadlines), clock


def unchunked(data: bytes) -> bytes:
    """The payload of whole chunks, read without mercy."""
    payload = b""
    while data:
        size, _, rest = data.partition(b"\r\n")
        length = int(size, 16)
        assert length
        assert rest[length : length + 2] == b"\r\n"
        payload, data = payload + rest[:length], rest[length + 2 :]
    return payload


@dataclass
class Recorder(Receiver):
    """A Receiver that remembers. `events` has the order."""

    status: int = 0
    reason: bytes = b""
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    framing: Framing | None = None
    body: bytes = b""
    ended: bool = False
    failure: Failure | None = None
    events: list[str] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def on_head(self, head: ResponseHead, framing: Framing) -> None:
        self.status, self.reason, self.headers, self.framing = head.status, head.reason, head.headers, framing
        self.events.append("head")

    def on_data(self, data: bytes, chunks: bytes | None = None) -> None:
        if chunks is not None:
            assert unchunked(chunks) == data
        assert data, "an empty piece of body says nothing"
        self.body += data
        self.events.append("data")

    def on_end(self) -> None:
        self.ended = True
        self.events.append("end")
        self.over.set()

    def on_fail(self, failure: Failure) -> None:
        self.failure = failure
        self.events.append("fail")
        self.over.set()


async def fetch(upstream: Upstream, method: bytes = b"GET", target: bytes = b"/", body: bytes = b"") -> Recorder:
    """One request; returns when its response is over."""
    recorder = Recorder()
    upstream.send(method, target, [(b"host", b"test")], body, recorder)
    async with asyncio.timeout(5):
        await recorder.over.wait()
    return recorder


class Wire:
    """A client that sends and receives raw bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, port: int) -> Wire:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    def send(self, data: bytes) -> None:
        """Write, unless the server has closed already."""
        if not self.writer.transport.is_closing():
            self.writer.write(data)

    async def head(self) -> tuple[int, dict[bytes, bytes]]:
        async with asyncio.timeout(5):
            lines = (await self.reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[:-2]
        fields = dict(cast(tuple[bytes, bytes], tuple(line.split(b": ", 1))) for line in lines[1:])
        assert len(fields) == len(lines) - 1, "a repeated field"
        if b"date" in fields:
            made = parsedate_to_datetime(fields.pop(b"date").decode())
            assert abs(made.timestamp() - time.time()) < 10
        return int(lines[0].split(b" ")[1]), fields

    async def response(self, method: bytes = b"GET") -> tuple[int, dict[bytes, bytes], bytes]:
        """A whole response, by a reading of RFC 9112 §6 that shares nothing with the code under test."""
        status, fields = await self.head()
        if method == b"HEAD" or status in (204, 304) or status < 200:
            return status, fields, b""
        async with asyncio.timeout(5):
            if fields.get(b"transfer-encoding") == b"chunked":
                assert b"content-length" not in fields
                body = b""
                while size := int((await self.reader.readuntil(b"\r\n"))[:-2], 16):
                    chunk = await self.reader.readexactly(size + 2)
                    assert chunk.endswith(b"\r\n")
                    body += chunk[:-2]
                assert await self.reader.readexactly(2) == b"\r\n"
                return status, fields, body
            if b"content-length" in fields:
                return status, fields, await self.reader.readexactly(int(fields[b"content-length"]))
            return status, fields, await self.reader.read()

    async def rest(self) -> bytes:
        """Everything until the server closes. A reset counts as the end."""
        async with asyncio.timeout(5):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


class Origin:
    """A server that answers each request on a connection with the next of its scripted byte strings.

    A script is what to write once the request's head and length-delimited body have come; `None` closes instead. After
    the last script of a connection it is closed. Counts connections.
    """

    def __init__(self, *connections: list[bytes | None]) -> None:
        self.scripts = list(connections)
        self.connections = 0
        self.requests: list[bytes] = []
        self.port = 0
        self.server: asyncio.Server | None = None
        self.tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Origin:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self.server is not None
        self.server.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self.tasks.add(task)
        script = self.scripts[min(self.connections, len(self.scripts) - 1)]
        self.connections += 1
        try:
            for answer in script:
                head = await reader.readuntil(b"\r\n\r\n")
                length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                body = await reader.readexactly(int(length[0].split(b":")[1])) if length else b""
                self.requests.append(head + body)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            self.tasks.discard(task)


def nothing_left(server: Server) -> bool:
    """No connection, no peer record, no buffered byte."""
    return not server.connections and not server._peers and server.buffered == 0
