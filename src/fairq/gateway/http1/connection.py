"""A client's connection: requests in, one at a time, responses out in the same order."""

from __future__ import annotations

import asyncio

from fairq.gateway.http1.errors import BadMessage
from fairq.gateway.http1.headers import date_field, encode_head, status_line
from fairq.gateway.http1.incoming import COMPLETE, DEAF, DISCARD, HEAD, IDLE, Incoming


class Connection(Incoming):
    __slots__ = ()

    # -- transport callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._deadlines.arm(self, self.server.limits.idle_seconds)
        refusal = self.server.admit(self)
        if refusal is not None:
            self._refuse(refusal)

    def eof_received(self) -> bool:
        if self._finishing:
            self.keep = False
            return True  # the response is complete and may still reach a client that only stopped sending
        if self.exchange is not None:
            self._transport.abort()
            self._lost()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost()

    def _close_after_response(self) -> None:
        self.keep = False
        self._phase = DEAF
        self._collector = None
        self._pending = b""
        self._hold(0)
        self._listen(True)

    def _next(self) -> None:
        deadlines, limits = self._deadlines, self.server.limits
        if not self.keep or self.server.draining:
            self._close()
        elif self._phase is DISCARD:
            deadlines.arm(self, limits.sender_seconds)
        else:
            self._phase = IDLE
            deadlines.arm(self, limits.idle_seconds)
            if self._pending:
                self._hold(0)
                self._advance()

    # -- the end

    def _refuse(self, refusal: BadMessage) -> None:
        """Answer what cannot be a request, or a request whose body cannot be one, and close."""
        exchange = self.exchange
        self._close_after_response()
        if exchange is not None:
            exchange.refuse(refusal.status, refusal.reason)
            return
        headers, body = self.server.refuse(refusal.status, refusal.reason)
        framing = b"content-length: %d\r\nconnection: close\r\n" % len(body)
        self.send(encode_head(status_line(refusal.status), headers, framing + date_field()) + body)
        self._close()

    def expire(self) -> None:
        limits = self.server.limits
        if self._paused or self._finishing:
            if not self._reader_is_slow():
                self._watch_reader()
                return
            if self.exchange is not None:
                self.exchange.stalled = True
            self._transport.abort()
            self._lost()
        elif self._collector is not None:
            received = self._collector.received
            if received - self._mark < limits.sender_rate * limits.sender_seconds:
                self._refuse(BadMessage(408, "the body comes too slowly"))
            else:
                self._mark = received
                self._deadlines.arm(self, limits.sender_seconds)
        elif self._phase is HEAD:
            self._refuse(BadMessage(408, "the head comes too slowly"))
        elif self._phase is IDLE:
            self._transport.close()
        else:
            self._transport.abort()

    def close_if_idle(self) -> None:
        """For a graceful shutdown: what runs may end, and nothing follows it."""
        self.keep = False
        if self._phase is IDLE:
            self._close()

    def _close(self) -> None:
        """Close after what has been written.

        A client that is still sending would get a reset and might lose the answer, so then only our side is closed and
        the other is read for a little while.
        """
        if self._transport.is_closing():
            return
        if self._phase is COMPLETE or self._phase is IDLE:
            self._transport.close()
        else:
            self._phase = DEAF
            self._transport.write_eof()
            self._deadlines.arm(self, self.server.limits.linger_seconds)

    def abort(self) -> None:
        self._close_after_response()
        self._transport.abort()

    def _lost(self) -> None:
        self._close_after_response()
        self._deadlines.forget(self)
        self.server.discard(self)
        exchange, self.exchange = self.exchange, None
        if exchange is not None and not exchange.closed:
            on_gone = exchange.on_gone
            exchange.detach()
            if on_gone is not None:
                on_gone()
