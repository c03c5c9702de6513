"""A client's connection as a transport: flow control both ways, what it holds, and when a response is really out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from fairq.gateway.http1.deadlines import NEVER, Timed
from fairq.gateway.http1.exchange import Exchange

if TYPE_CHECKING:
    from fairq.gateway.http1.server import Peer, Server


class Endpoint(Timed):
    """Base of Connection, which knows HTTP. At most one exchange is running; `_next` is called when it has ended.

    An asyncio.Protocol by its methods alone: a compiled class has no interpreted base.
    """

    __slots__ = (
        "_corked",
        "_deadlines",
        "_finishing",
        "_held",
        "_mark",
        "_paused",
        "_reading",
        "_sent",
        "_transport",
        "exchange",
        "keep",
        "peer",
        "server",
        "use",
    )

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.server = server
        self._deadlines = server.deadlines
        self.exchange: Exchange | None = None
        self.keep = True  # another request may follow on this connection
        self.peer: tuple[str, int] = ("", 0)
        self._corked = b""  # a response head waiting for the first body bytes: one system call instead of two
        self.use: Peer  # what this client's address holds; set by Server.admit
        self._held = 0  # bytes counted against the server's and the address's bounds
        self._reading = True
        self._sent = 0
        self._mark = 0  # progress, of the reader or the sender, when the deadline was set
        self._paused = False
        self._finishing = False  # the response is complete but not yet in the kernel's hands

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=self.server.limits.write_buffer)
        peer = transport.get_extra_info("peername")  # None if the client has left already
        self.peer = peer[:2] if peer else ("", 0)

    def send(self, data: bytes) -> None:
        if self._corked:
            data = self._corked + data
            self._corked = b""
        if not self._transport.is_closing():
            self._sent += len(data)
            self._transport.write(data)

    def cork(self, head: bytes, *, wait: bool) -> None:
        """Send a response's head together with what follows it, but not later than in this turn of the loop.

        `wait`: later is fine, since the head alone is of no use.
        """
        self._corked = head
        loop = self.server.loop
        if not wait:
            if loop is None:
                self.uncork()
            else:
                loop.call_soon(self.uncork)

    def uncork(self) -> None:
        if self._corked:
            self.send(b"")

    def connection_field(self, version: tuple[int, int]) -> bytes:
        if not self.keep:
            return b"connection: close\r\n"
        return b"" if version == (1, 1) else b"connection: keep-alive\r\n"

    def response_finished(self) -> None:
        """All of the response has been given to `send`."""
        if self._corked:
            self.send(b"")
        transport = self._transport
        if transport.is_closing():
            return
        self._finishing = True
        if transport.get_write_buffer_size() == 0:
            self._flushed()
            return
        self._watch_reader()
        transport.set_write_buffer_limits(high=0)  # makes resume_writing tell when the buffer is empty

    def pause_writing(self) -> None:
        if self._finishing:
            return
        self._paused = True
        self._watch_reader()
        exchange = self.exchange
        if exchange is not None and exchange.on_pause is not None:
            exchange.on_pause()

    def resume_writing(self) -> None:
        if self._finishing:
            self._transport.set_write_buffer_limits(high=self.server.limits.write_buffer)
            self._flushed()
            return
        self._paused = False
        self.due = NEVER
        exchange = self.exchange
        if exchange is not None and exchange.on_resume is not None:
            exchange.on_resume()

    def _flushed(self) -> None:
        exchange, self.exchange = self.exchange, None
        self._finishing = self._paused = False
        self.due = NEVER
        if exchange is not None:
            on_done = exchange.on_done
            exchange.detach()
            if on_done is not None:
                try:
                    on_done()
                except Exception as error:
                    self.failed(None, error)
        self._next()

    def _next(self) -> None:
        raise NotImplementedError

    def _watch_reader(self) -> None:
        self._mark = self._sent - self._transport.get_write_buffer_size()
        self._deadlines.arm(self, self.server.limits.reader_seconds)

    def _reader_is_slow(self) -> bool:
        """Whether the client took too little in the window that has just ended."""
        limits = self.server.limits
        taken = self._sent - self._transport.get_write_buffer_size()
        return taken - self._mark < limits.reader_rate * limits.reader_seconds

    def call(self, callback: Callable[..., None], *args: object) -> None:
        """Run application code. Its failure costs the exchange, never the server."""
        exchange = self.exchange
        try:
            callback(*args)
        except Exception as error:
            self.failed(exchange, error)

    def failed(self, exchange: Exchange | None, error: Exception) -> None:
        """Report what the application raised, and end its exchange."""
        what = {"message": "unhandled exception in the application of an HTTP server", "exception": error}
        asyncio.get_running_loop().call_exception_handler(what)
        if exchange is not None:
            exchange.fail(500, "internal error")

    def _listen(self, reading: bool) -> None:
        if reading is not self._reading and not self._transport.is_closing():
            self._reading = reading
            if reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _hold(self, size: int) -> None:
        """Count `size` buffered bytes in all for this connection. Raises BadMessage when that is too much."""
        if size != self._held:
            change, self._held = size - self._held, size
            self.server.hold(self.use, change)
