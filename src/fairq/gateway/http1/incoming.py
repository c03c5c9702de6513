"""A client's requests, taken out of the bytes that come: one at a time, each with its body when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from fairq.gateway.http1.body import Collector
from fairq.gateway.http1.deadlines import NEVER
from fairq.gateway.http1.endpoint import Endpoint
from fairq.gateway.http1.errors import BadMessage
from fairq.gateway.http1.exchange import Exchange
from fairq.gateway.http1.framing import END_OF_HEAD, NO_BODY
from fairq.gateway.http1.heads import RequestHead, check_start

if TYPE_CHECKING:
    from fairq.gateway.http1.server import Server

# What the bytes that come now belong to. The response has its own progress, in Endpoint.
IDLE: Final = "idle"  # the next request, nothing of which has come
HEAD: Final = "head"  # its head, a part of which has
UNREAD: Final = "unread"  # a body the application has not asked for
BODY: Final = "body"  # a body being collected for the application
DISCARD: Final = "discard"  # the rest of a body nobody wants
COMPLETE: Final = "complete"  # the request after the running one
DEAF: Final = "deaf"  # nothing: they are thrown away, and the connection closes after the response

FAMILIAR_BYTES: Final = 4096  # a longer head is read anew each time rather than kept


class Incoming(Endpoint):
    """Base of Connection, which knows how exchanges and connections end."""

    __slots__ = (
        "_advancing",
        "_collector",
        "_familiar",
        "_pending",
        "_phase",
        "_scanned",
        "_skip",
    )

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._phase = IDLE
        self._pending = b""  # bytes received and not yet understood
        self._scanned = 0  # of them, how many have been searched for the end of a head
        self._collector: Collector | None = None
        self._familiar: RequestHead | None = None  # the last one
        self._skip = 0  # bytes of an unwanted body still to come
        self._advancing = False

    def data_received(self, data: bytes) -> None:
        phase = self._phase
        if phase is IDLE or phase is HEAD:
            self._pending = self._pending + data if self._pending else data
            self._advance()
        elif phase is BODY:
            self._collect(data)
        elif phase is DISCARD:
            self._discard(data)
        elif phase is COMPLETE or phase is UNREAD:
            self._pending += data
            self._bound_pending()

    def _advance(self) -> None:
        """Take requests out of what is pending, until one is running or incomplete."""
        if self._advancing:
            return
        self._advancing = True
        try:
            while self._pending and (self._phase is IDLE or self._phase is HEAD):
                if not self._take_request():
                    break
        except BadMessage as refusal:
            self._refuse(refusal)
        finally:
            self._advancing = False

    def _take_request(self) -> bool:
        pending = self._pending
        if self._phase is IDLE:
            while pending[:2] == b"\r\n":  # empty lines before a request are to be ignored (RFC 9112 §2.2)
                pending = pending[2:]
            self._pending = pending
            if pending in (b"", b"\r"):
                return False
        limits = self.server.limits
        end = pending.find(END_OF_HEAD, max(self._scanned - 3, 0)) + 4
        if end < 4:
            self._scanned = len(pending)
            self._await_head()
            return False
        self._scanned = 0
        if end > limits.head_bytes:
            raise BadMessage(431, f"the head is larger than {limits.head_bytes} bytes")
        server = self.server
        head, familiar = pending[:end], self._familiar
        framing = familiar.again(head) if familiar is not None else None
        if familiar is None or framing is None:
            familiar = RequestHead(head, limits)
            framing = familiar.framing
            self._familiar = familiar if end <= FAMILIAR_BYTES else None
        self.exchange = exchange = Exchange(self, familiar, framing)
        self._pending = pending[end:]
        if self._held:
            self._hold(0)
        self.due = NEVER
        self.keep = familiar.keep and not server.draining
        self._phase = COMPLETE if framing is NO_BODY else UNREAD
        try:
            server.app(exchange)
        except Exception as error:
            self.failed(exchange, error)
        return True

    def _await_head(self) -> None:
        limits = self.server.limits
        check_start(self._pending)
        if len(self._pending) > limits.head_bytes:
            raise BadMessage(431, f"the head is larger than {limits.head_bytes} bytes")
        self._hold(len(self._pending))
        if self._phase is IDLE:
            self._phase = HEAD
            self._deadlines.arm(self, limits.head_seconds)

    def has_input(self) -> bool:
        return bool(self._pending)

    def read_body(self, on_body: Callable[[bytes], None], limit: int) -> None:
        """Collect the body for `on_body`. What is wrong with it, its size included, ends the exchange as refused."""
        exchange = self.exchange
        if exchange is None:
            return
        if exchange.framing is NO_BODY:
            on_body(b"")
            return
        if self._phase is not UNREAD:
            raise RuntimeError("the body has been read already")
        data = self._pending
        length = exchange.framing.length
        if length is not None and length <= len(data) and length <= limit:  # it has come with the head: the usual case
            self._phase = COMPLETE
            self._pending = data[length:]
            if self._held:
                self._hold(0)
            on_body(data[:length])
            return
        self._phase = BODY
        try:
            collector = Collector(exchange.framing, on_body, limit)
        except BadMessage as refusal:
            self._refuse(refusal)
            return
        self._collector = collector
        self._listen(True)
        self._pending = b""
        if not data or self._collect(data):
            self._mark = collector.received
            self._deadlines.arm(self, self.server.limits.sender_seconds)

    def _collect(self, data: bytes) -> bool:
        """Take bytes of the body. Whether more must come."""
        collector = self._collector
        assert collector is not None
        try:
            end = collector.feed(data)
            if end < 0:
                self._hold(collector.received)
                return True
        except BadMessage as refusal:
            self._refuse(refusal)
            return False
        self._collector = None
        self._phase = COMPLETE
        self._pending = data[end:]
        self._hold(0)
        self.due = NEVER
        self.call(collector.deliver, collector.body())
        return False

    def _discard(self, data: bytes) -> None:
        skip = self._skip
        self._skip = max(skip - len(data), 0)
        if self._skip:
            return
        self._phase = COMPLETE
        self._pending = data[skip:]
        if self.exchange is None:
            self._next()

    def _bound_pending(self) -> None:
        """Keep what waits behind a running request small, and keep reading: only so is a leaving client noticed."""
        size = len(self._pending)
        try:
            self._hold(size)
        except BadMessage as refusal:
            if self._phase is UNREAD:
                self._refuse(refusal)
            else:
                self._close_after_response()
            return
        if size > self.server.limits.pipelined_bytes:
            if self._phase is UNREAD:
                self._listen(False)
            else:
                self._close_after_response()

    # -- what is left of the request when the response comes

    def response_starts(self, close: bool) -> None:
        if close or self.server.draining:
            self.keep = False
        if self._phase is UNREAD:
            self._skip_body()
        elif self._phase is BODY:
            self._close_after_response()

    def _skip_body(self) -> None:
        """The response comes without the body having been asked for."""
        head = self.exchange
        assert head is not None
        length = head.framing.length
        # A client that waits for 100 (Continue) may or may not send the body after another answer.
        if head.expects or length is None or length > self.server.limits.discard_bytes:
            self._close_after_response()
            return
        self._listen(True)
        self._hold(0)
        self._phase = DISCARD
        self._skip = length
        data, self._pending = self._pending, b""
        self._discard(data)

    # -- what Connection does

    def _refuse(self, refusal: BadMessage) -> None:
        raise NotImplementedError

    def _close_after_response(self) -> None:
        raise NotImplementedError

    def abort(self) -> None:
        """Close the connection at once."""
        raise NotImplementedError
