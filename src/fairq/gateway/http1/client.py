"""The HTTP/1.1 client of the data plane: a keep-alive pool of connections to one upstream."""

from __future__ import annotations

import asyncio
import ssl
from typing import cast

from fairq.gateway.http1.deadlines import Deadlines, Timed
from fairq.gateway.http1.failure import Failure, FailureKind
from fairq.gateway.http1.framing import Framing
from fairq.gateway.http1.headers import Headers, encode_head, request_line
from fairq.gateway.http1.heads import ResponseHead
from fairq.gateway.http1.limits import ClientLimits
from fairq.gateway.http1.link import Link
from fairq.gateway.http1.receiver import Receiver


class Connecting(Timed):
    """A connection being made for a transfer."""

    __slots__ = ("_deadlines", "_task", "_transfer", "_upstream")

    def __init__(self, upstream: Upstream, transfer: Transfer) -> None:
        super().__init__()
        self._upstream = upstream
        self._transfer = transfer
        self._deadlines = upstream.deadlines
        self._deadlines.arm(self, upstream.limits.connect_seconds)
        self._task = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        transfer = self._transfer
        try:
            link = await self._upstream.open()
        except (OSError, ssl.SSLError) as error:
            transfer.fail("connect", str(error) or type(error).__name__)
        else:
            if transfer.receiver is None:
                link.abort()
            elif not link.carry(transfer):
                transfer.fail("reset", "the upstream closed a new connection at once")
        finally:
            transfer.connecting = None
            self._deadlines.forget(self)

    def expire(self) -> None:
        self._transfer.fail("connect", f"no connection within {self._upstream.limits.connect_seconds:g} s")

    def cancel(self) -> None:
        self._deadlines.forget(self)
        if self._task is not asyncio.current_task():
            self._task.cancel()


class Transfer:
    """One request under way to an upstream, and its response."""

    __slots__ = (
        "_upstream",
        "body",
        "bytes_received",
        "connecting",
        "head",
        "link",
        "method",
        "paused",
        "receiver",
        "started",
    )

    def __init__(self, upstream: Upstream, method: bytes, head: bytes, body: bytes, receiver: Receiver) -> None:
        self._upstream = upstream
        self.connecting: Connecting | None = None
        self.method = method
        self.head = head
        self.body = body
        self.receiver: Receiver | None = receiver
        self.link: Link | None = None
        self.paused = False
        self.started = False
        self.bytes_received = 0  # of the body

    def abort(self) -> None:
        """Give up: the connection is closed at once and the receiver hears nothing more."""
        if self.receiver is not None:
            self.receiver = None
            self._release()
            link, self.link = self.link, None
            if link is not None:
                link.abort()

    def pause(self) -> None:
        """Stop reading the response: whoever takes it is slow."""
        self.paused = True
        if self.link is not None:
            self.link.pause()

    def resume(self) -> None:
        self.paused = False
        if self.link is not None:
            self.link.resume()

    # -- what the pool and the link report

    def connect(self) -> None:
        """Send over a new connection."""
        self.connecting = Connecting(self._upstream, self)

    def again(self) -> None:
        """After a connection that had been idle turned out closed: once more, over a new one."""
        self.link = None
        self.connect()

    def whole(self, head: ResponseHead, framing: Framing, body: bytes) -> None:
        receiver, self.receiver = self.receiver, None
        self.link = None
        self._upstream.transfers.discard(self)
        if receiver is not None:
            try:
                receiver.on_whole(head, framing, body)
            except Exception as error:  # the connection, which would have told it, is in other hands already
                # Its name alone: the text of an error of ours may hold a client's.
                receiver.on_fail(Failure("protocol", f"it could not be passed on: {type(error).__name__}", True))
                raise

    def end(self) -> None:
        receiver, self.receiver = self.receiver, None
        self.link = None
        self._upstream.transfers.discard(self)
        if receiver is not None:
            receiver.on_end()

    def fail(self, kind: FailureKind, detail: str) -> None:
        receiver, self.receiver = self.receiver, None
        self.link = None
        self._release()
        if receiver is not None:
            receiver.on_fail(Failure(kind, detail, self.started))

    def _release(self) -> None:
        self.head = self.body = b""
        connecting, self.connecting = self.connecting, None
        if connecting is not None:
            connecting.cancel()
        self._upstream.transfers.discard(self)


class Upstream:
    """Connections to one origin. Names are looked up anew for every connection; no redirect is followed.

    `headers` given to `send` must be forwardable and carry Host; framing fields are added here.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        server_hostname: str | None = None,
        limits: ClientLimits | None = None,
        deadlines: Deadlines | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.limits = limits or ClientLimits()
        self.transfers: set[Transfer] = set()
        self.links: set[Link] = set()
        self.opened = 0  # connections made since the start
        self._lost_one = asyncio.Event()
        self._idle: dict[Link, None] = {}  # the last used is taken first, so that a surplus can grow old and be closed
        self._tls = tls
        self._server_hostname = (server_hostname or host) if tls is not None else None
        self._deadlines = deadlines
        self._own_deadlines = deadlines is None
        self._closed = False

    @property
    def deadlines(self) -> Deadlines:
        if self._deadlines is None:
            self._deadlines = Deadlines(asyncio.get_running_loop().time)
            self._deadlines.start()
        return self._deadlines

    def send(self, method: bytes, target: bytes, headers: Headers, body: bytes, receiver: Receiver) -> Transfer:
        """Send a request over an idle or a new connection. Returns at once; `receiver` is called later, never in here.

        Raises ValueError if the method, target or a header would end its place in the head early.
        """
        return self.send_behind(method, encode_head(request_line(method, target), headers, b"")[:-2], body, receiver)

    def send_behind(self, method: bytes, fields: bytes, body: bytes, receiver: Receiver) -> Transfer:
        """As `send`, with the head as ready-made lines: the request line, and fields without framing."""
        if body or method in (b"POST", b"PUT", b"PATCH"):
            head = b"%bcontent-length: %d\r\n\r\n" % (fields, len(body))
        else:
            head = fields + b"\r\n"
        transfer = Transfer(self, method, head, body, receiver)
        self.transfers.add(transfer)
        while self._idle:
            link, _ = self._idle.popitem()
            if link.carry(transfer):
                return transfer
        transfer.connect()
        return transfer

    async def close(self) -> None:
        """Abort what is under way and close every connection."""
        self._closed = True
        for transfer in list(self.transfers):
            transfer.fail("reset", "the upstream is being closed")
        for link in list(self.links):
            link.abort()
        while self.links:
            self._lost_one.clear()
            await self._lost_one.wait()
        if self._own_deadlines and self._deadlines is not None:
            self._deadlines.stop()
            self._deadlines = None

    # -- what transfers and links report

    async def open(self) -> Link:
        """A new connection. Raises OSError or ssl.SSLError."""
        link = Link(self)
        await asyncio.get_running_loop().create_connection(
            lambda: cast(asyncio.Protocol, link),
            self.host,
            self.port,
            ssl=self._tls,
            server_hostname=self._server_hostname,
        )
        self.opened += 1
        return link

    def put_back(self, link: Link) -> None:
        if self._closed or len(self._idle) >= self.limits.idle_connections:
            link.abort()
        else:
            self._idle[link] = None

    def lost(self, link: Link) -> None:
        self.links.discard(link)
        self._idle.pop(link, None)
        self._lost_one.set()
