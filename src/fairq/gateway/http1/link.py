"""One connection to an upstream: a request out, its response in, then the next."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

from fairq.gateway.http1.deadlines import Timed
from fairq.gateway.http1.errors import BadMessage
from fairq.gateway.http1.failure import FailureKind
from fairq.gateway.http1.framing import CHUNKED, END_OF_HEAD, NO_BODY, Chunked, Framing, check_line_ends
from fairq.gateway.http1.heads import ResponseHead, parse_response

if TYPE_CHECKING:
    from fairq.gateway.http1.client import Transfer, Upstream

_JOIN_BELOW: Final = 64 * 1024
FAMILIAR_BYTES: Final = 4096  # a longer head is read anew each time rather than kept


class Link(Timed):
    """Carries one transfer at a time. It goes back to the pool only if both messages ended where they should.

    An asyncio.Protocol by its methods alone, as Endpoint is.
    """

    __slots__ = (
        "_chunked",
        "_deadlines",
        "_familiar",
        "_framing",
        "_heard",
        "_in_head",
        "_keep",
        "_left",
        "_pending",
        "_recent",
        "_transfer",
        "_transport",
        "_upstream",
        "_used",
    )

    def __init__(self, upstream: Upstream) -> None:
        super().__init__()
        self._upstream = upstream
        self._deadlines = upstream.deadlines
        self._transfer: Transfer | None = None
        self._used = False  # has carried a response before
        self._in_head = True
        self._pending = b""  # of the head
        self._familiar: ResponseHead | None = None  # the last one
        self._framing = NO_BODY
        self._left = 0
        self._chunked: Chunked
        self._keep = False
        self._heard = False  # any byte of this response
        self._recent = 0.0  # when something came last

    # -- what transfers and the pool do

    def carry(self, transfer: Transfer) -> bool:
        """Send a transfer's request and take its response; False if the connection is being closed."""
        transport = self._transport
        if transport.is_closing():
            return False
        self._transfer = transfer
        transfer.link = self
        self._in_head = True
        self._heard = False
        body = transfer.body
        if len(body) < _JOIN_BELOW:
            transport.write(transfer.head + body)
        else:
            transport.write(transfer.head)
            transport.write(body)
        self._deadlines.arm(self, self._upstream.limits.first_byte_seconds)
        if transfer.paused:
            self.pause()
        return True

    def pause(self) -> None:
        if not self._transport.is_closing():
            self._transport.pause_reading()
            self._deadlines.disarm(self)  # the upstream is not to blame for this silence

    def resume(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()
            limits = self._upstream.limits
            self._deadlines.arm(self, limits.first_byte_seconds if self._in_head else limits.idle_seconds)

    def abort(self) -> None:
        self._transfer = None
        self._transport.abort()

    # -- transport callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._upstream.links.add(self)

    def pause_writing(self) -> None:
        """A request is sent whole, and is of bounded size."""

    def resume_writing(self) -> None: ...

    def data_received(self, data: bytes) -> None:
        transfer = self._transfer
        if transfer is None:
            self.abort()  # nobody asked: it could be taken for the answer to the next request
            return
        self._recent = self._deadlines.now
        try:
            if self._in_head:
                self._read_head(transfer, data)
            elif self._framing is CHUNKED:  # every event of a stream comes this way, so it is one step
                chunked = self._chunked
                payload, end = chunked.feed(data)
                if payload:
                    transfer.bytes_received += len(payload)
                    if (receiver := transfer.receiver) is not None:
                        receiver.on_data(payload, data if chunked.whole else None)
                if end >= 0:
                    self._end_at(transfer, end, data)
            else:
                self._read_body(transfer, data)
        except BadMessage as bad:
            self._fail("protocol", bad.reason)

    def eof_received(self) -> None:
        if self._transfer is not None and not self._in_head and self._framing.kind == "close":
            self._complete(self._transfer)
        else:
            self._lost("")

    def connection_lost(self, exc: Exception | None) -> None:
        self._upstream.lost(self)
        self._deadlines.forget(self)
        self._lost(f": {exc}" if exc else "")

    def expire(self) -> None:
        if self._transfer is None:
            self._transport.close()
        elif self._in_head:
            self._fail("timeout", f"no response within {self._upstream.limits.first_byte_seconds:g} s")
        else:
            patience = self._upstream.limits.idle_seconds
            silence = self._deadlines.now - self._recent
            if silence < patience:
                self._deadlines.arm(self, patience - silence)
            else:
                self._fail("timeout", f"silent for {patience:g} s in the middle of the response")

    # -- the response

    def _read_head(self, transfer: Transfer, data: bytes) -> None:
        if not self._heard:
            self._heard = True
            transfer.head = transfer.body = b""  # it will not be sent again
        limits = self._upstream.limits
        pending = self._pending + data
        while True:
            end = pending.find(END_OF_HEAD) + 4
            if (end if end >= 4 else len(pending)) > limits.head_bytes:
                raise BadMessage(502, f"the response's head is larger than {limits.head_bytes} bytes")
            if end < 4:
                check_line_ends(pending)
                self._pending = pending
                return
            head, framing = self._understand(transfer, pending[:end])
            pending = pending[end:]
            if head.status >= 200:
                break
        self._pending = b""
        self._in_head = False
        self._framing = framing
        # An answer before the request is out: the upstream may never read the rest of it as that request's body.
        self._keep = head.keep and self._transport.get_write_buffer_size() == 0
        transfer.started = True
        size = framing.length
        if framing.kind == "length":
            if size and size == len(pending):  # all of it is here: the usual case
                transfer.bytes_received = size
                self._recycle(transfer)
                transfer.whole(head, framing, pending)
                return
            self._left = size or 0
        elif framing is CHUNKED:
            self._chunked = Chunked()
        receiver = transfer.receiver
        if receiver is not None:
            receiver.on_head(head, framing)
        if not self._carries(transfer):
            return
        if pending:
            self.data_received(pending)
        elif framing.kind == "none" or (framing.kind == "length" and not size):
            self._complete(transfer)
        if self._carries(transfer) and not transfer.paused:
            self._deadlines.arm(self, limits.idle_seconds)

    def _understand(self, transfer: Transfer, data: bytes) -> tuple[ResponseHead, Framing]:
        head = self._familiar
        if head is not None and head.method == transfer.method:
            framing = head.again(data)
            if framing is not None:
                return head, framing
        head = parse_response(data, transfer.method, self._upstream.limits)
        if len(data) <= FAMILIAR_BYTES and head.status >= 200:
            self._familiar = head
        return head, head.framing

    def _read_body(self, transfer: Transfer, data: bytes) -> None:
        kind = self._framing.kind
        payload, end = data, -1
        if kind == "length":
            self._left -= len(data)
            if self._left <= 0:
                end = len(data) + self._left
                payload = data[:end]
        elif kind == "none":
            payload, end = b"", 0
        if payload:
            transfer.bytes_received += len(payload)
            receiver = transfer.receiver
            if receiver is not None:
                receiver.on_data(payload)
        if end >= 0:
            self._end_at(transfer, end, data)

    def _carries(self, transfer: Transfer) -> bool:
        """Asked again after calls that may have ended it: in the compiled form, the type checker's belief that an
        attribute still is what it was would be enforced."""
        return self._transfer is transfer

    def _end_at(self, transfer: Transfer, end: int, data: bytes) -> None:
        """The response ends at this place in `data`, unless its receiver has given up meanwhile."""
        if self._carries(transfer):
            if end < len(data):
                self._keep = False  # bytes that nobody asked for
            self._complete(transfer)

    def _complete(self, transfer: Transfer) -> None:
        self._recycle(transfer)
        transfer.end()

    def _recycle(self, transfer: Transfer) -> None:
        """The response is whole: the connection may take another request."""
        self._transfer = None
        transport = self._transport
        if self._keep and not transport.is_closing() and transport.get_write_buffer_size() == 0:
            if transfer.paused:
                transport.resume_reading()
            self._used = True
            self._deadlines.arm(self, self._upstream.limits.keepalive_seconds)
            self._upstream.put_back(self)
        else:
            transport.abort()

    def _fail(self, kind: FailureKind, detail: str) -> None:
        transfer, self._transfer = self._transfer, None
        self._transport.abort()
        if transfer is not None:
            transfer.fail(kind, detail)

    def _lost(self, cause: str) -> None:
        transfer, self._transfer = self._transfer, None
        if transfer is None:
            return
        self._transport.abort()
        if self._used and not self._heard:
            transfer.again()
        else:
            where = "in the middle of the response" if transfer.started else "before the response"
            transfer.fail("reset", f"the upstream closed the connection {where}{cause}")
