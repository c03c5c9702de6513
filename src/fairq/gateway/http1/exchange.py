"""One request and its response on a client's connection: what the gateway sees of HTTP/1.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from fairq.gateway.http1.framing import Framing
from fairq.gateway.http1.headers import STATUS_LINE, Headers, date_field, encode_head, status_line
from fairq.gateway.http1.heads import RequestHead

if TYPE_CHECKING:
    from fairq.gateway.http1.incoming import Incoming

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_JOIN_BELOW: Final = 64 * 1024  # a body smaller than this is copied behind its head: one system call instead of two


class Exchange:
    """A request whose head is complete, and the way to answer it. `head` may be shared with other exchanges of the
    connection, `framing` is of this one's body.

    It ends in exactly one of these ways, reported once, after which every call is ignored:

    * `on_done`: the response is in the kernel's hands;
    * `on_gone`: the client left, or read so slowly that it was cut off (then `stalled` is true);
    * `on_refused(status, reason)`: the rest of the request was not acceptable. The application may still `respond` in
      this callback; if it does not, the server does;
    * a call of `abort()`, which is not reported.
    """

    __slots__ = (
        "_conn",
        "_finished",
        "_left",
        "_mode",
        "closed",
        "expects",
        "framing",
        "head",
        "on_done",
        "on_gone",
        "on_pause",
        "on_refused",
        "on_resume",
        "stalled",
        "started",
    )

    def __init__(self, conn: Incoming, head: RequestHead, framing: Framing) -> None:
        self._conn: Incoming | None = conn
        self.head, self.framing, self.expects = head, framing, head.expects
        self._mode = "none"
        self._left = 0
        self._finished = self.closed = self.started = self.stalled = False
        self.on_gone: Callable[[], None] | None = None
        self.on_pause: Callable[[], None] | None = None
        self.on_resume: Callable[[], None] | None = None
        self.on_done: Callable[[], None] | None = None
        self.on_refused: Callable[[int, str], None] | None = None

    @property
    def method(self) -> bytes:
        return self.head.method

    @property
    def target(self) -> bytes:
        return self.head.target

    @property
    def path(self) -> str:
        return self.head.path

    @property
    def query(self) -> bytes:
        return self.head.query

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        return self.head.headers

    @property
    def peer(self) -> tuple[str, int]:
        """The client's address; of an exchange that is not closed."""
        assert self._conn is not None
        return self._conn.peer

    def header(self, name: bytes) -> bytes | None:
        """The first value of a field (lower-case name), or None."""
        for field, value in self.head.headers:
            if field == name:
                return value.rstrip(b" \t")
        return None

    def values(self, name: bytes) -> list[bytes]:
        """All values of a field, in order."""
        return [value.rstrip(b" \t") for field, value in self.head.headers if field == name]

    def read_body(self, on_body: Callable[[bytes], None], limit: int) -> None:
        """Collect the whole body and call `on_body` once, perhaps before returning. More than `limit` bytes: 413."""
        conn = self._conn
        if conn is None:
            return
        if self.expects and not conn.has_input() and (self.framing.length or 0) <= limit:
            conn.send(_CONTINUE)
        self.expects = False
        conn.read_body(on_body, limit)

    def respond(self, status: int, headers: Headers, body: bytes, *, close: bool = False) -> None:
        """A whole response. Framing, Connection and Date are added; `headers` must not have the first two."""
        conn = self._begin(status, close)
        if conn is None:
            return
        bodyless = status == 204 or status == 304
        framing = b"" if bodyless else b"content-length: %d\r\n" % len(body)
        if b"date" not in dict(headers):
            framing += date_field()
        head = self._encode(status, headers, framing)
        if bodyless or self.head.method == b"HEAD":
            conn.send(head)
        elif len(body) < _JOIN_BELOW:
            conn.send(head + body)
        else:
            conn.send(head)
            conn.send(body)
        self.finish()

    def pass_on(self, status: int, fields: bytes, body: bytes) -> None:
        """A whole response of a successful status with a body, to anything but HEAD; `fields` are ready-made lines."""
        conn = self._begin(status, False)
        if conn is not None:
            if conn.keep and self.head.version == (1, 1):
                line = STATUS_LINE.get(status) or status_line(status)
                conn.send(b"%b%bcontent-length: %d\r\n\r\n%b" % (line, fields, len(body), body))
            else:
                conn.send(self._encode(status, fields, b"content-length: %d\r\n" % len(body)) + body)
            self._finished = True
            conn.response_finished()

    def start(self, status: int, headers: Headers | bytes, *, length: int | None = None) -> None:
        """Begin a response whose body comes by `write`: of `length` bytes, or chunked (on HTTP/1.0 until the close).

        In answer to HEAD, `length` is what a GET would have had, and body bytes are dropped. `headers` may be
        ready-made field lines.
        """
        conn = self._begin(status, False)
        if conn is None:
            return
        framing = b""
        if self.head.method == b"HEAD" or status == 204 or status == 304:
            mode = "none"
            if length is not None and status != 204:
                framing = b"content-length: %d\r\n" % length
        elif length is not None:
            mode = "length"
            self._left = length
            framing = b"content-length: %d\r\n" % length
        elif self.head.version >= (1, 1):
            mode = "chunked"
            framing = b"transfer-encoding: chunked\r\n"
        else:
            mode = "close"
            conn.keep = False
        conn.cork(self._encode(status, headers, framing), wait=mode in ("none", "length"))
        self._mode = mode

    def write(self, data: bytes, chunks: bytes | None = None) -> None:
        """Body bytes, framed as the response's start decided. `chunks`: the same, as whole chunks."""
        conn = self._conn
        if conn is None or not data:
            return
        mode = self._mode
        if mode == "chunked":
            conn.send(chunks or b"%x\r\n%b\r\n" % (len(data), data))
        elif mode == "length":
            self._left -= len(data)
            if self._left < 0:
                raise ValueError("more body bytes than the announced length")
            conn.send(data)
        elif mode == "close":
            conn.send(data)

    def finish(self, *, close: bool = False) -> None:
        """The end of the body. A length-framed response that is not complete is cut. `close`: the connection too."""
        conn = self._conn
        if conn is None or self._finished:
            return
        if close:
            conn.keep = False
        if self._mode == "chunked":
            conn.send(b"0\r\n\r\n")
        elif self._mode == "length" and self._left:
            self.abort()
            return
        self._mode = "none"
        self._finished = True
        conn.response_finished()

    def abort(self) -> None:
        """Close the connection at once; a started response is cut. Reports nothing."""
        conn = self._conn
        if conn is not None:
            self.detach()
            conn.abort()

    def _begin(self, status: int, close: bool) -> Incoming | None:
        conn = self._conn
        if conn is None:
            return None
        if self.started:
            raise RuntimeError("this exchange has been answered already")
        if status < 200:
            raise ValueError("a final status is 200 or more")
        self.started = True
        conn.response_starts(close)
        return conn

    def _encode(self, status: int, headers: Headers | bytes, framing: bytes) -> bytes:
        conn = self._conn
        assert conn is not None
        if not conn.keep or self.head.version != (1, 1):
            framing += b"connection: keep-alive\r\n" if conn.keep else b"connection: close\r\n"
        line = STATUS_LINE.get(status) or status_line(status)
        if isinstance(headers, bytes):
            return b"%b%b%b\r\n" % (line, headers, framing)
        try:
            return encode_head(line, headers, framing)
        except ValueError:
            self.started = False  # nothing has been sent: another answer is possible
            raise

    # -- the connection's part

    def refuse(self, status: int, reason: str) -> None:
        """The rest of the request is not acceptable."""
        conn, refused = self._conn, self.on_refused
        if conn is not None and refused is not None and not self.started:
            self.on_gone = self.on_done = None
            conn.call(refused, status, reason)
        self.fail(status, reason)

    def fail(self, status: int, reason: str) -> None:
        """Answer in the server's own words, or cut a response that has started."""
        conn = self._conn
        if conn is not None and not self._finished:
            if self.started:
                self.abort()
            else:
                self.respond(status, *conn.server.refuse(status, reason), close=True)

    def detach(self) -> None:
        """End the exchange, and let go of who asked to hear of it: so no cycle is left for the garbage collector."""
        self._conn = None
        self.closed = True
        self.on_gone = self.on_pause = self.on_resume = self.on_done = self.on_refused = None
