"""Where a message ends: heads through llhttp, then length, chunks, or the end of the connection (RFC 9112 §6).

A head is given to llhttp whole and alone, so how the bytes were split into reads cannot change what it says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import httptools

from fairq.gateway.http1.errors import BadMessage

END_OF_HEAD = b"\r\n\r\n"
Kind = Literal["none", "length", "chunked", "close"]
MAX_LENGTH_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Framing:
    """How a body is delimited. `length` is its size for `length`; for `none` the size a GET would have had, or None."""

    kind: Kind
    length: int | None = None


NO_BODY = Framing("none")


@dataclass(slots=True)
class Sink:
    """What llhttp calls back. `spans` collects a chunked body: its `append` as the callback costs no Python call."""

    max_lines: int
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    spans: list[bytes] = field(default_factory=list)
    complete: bool = False
    on_body: object = None

    def __post_init__(self) -> None:
        self.on_body = self.spans.append

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))
        if len(self.headers) > self.max_lines:
            raise BadMessage(431, f"more than {self.max_lines} header lines")

    def on_message_complete(self) -> None:
        self.complete = True


Parser = httptools.HttpRequestParser | httptools.HttpResponseParser


def feed(parser: Parser, data: bytes, what: str) -> None:
    """Give llhttp bytes; its refusals and ours become BadMessage."""
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        raise BadMessage(400, "protocol upgrades and tunnels are not accepted") from None
    except httptools.HttpParserError as error:
        cause = error.__context__
        if isinstance(cause, BadMessage):
            raise cause from None
        raise BadMessage(400, f"malformed {what}: {error}") from None


def check_line_ends(data: bytes) -> None:
    """Refuse a head, or a part of one, that has a line feed without its carriage return.

    Such a head may never contain the CRLF CRLF we wait for, so this cannot be left to the parser.
    """
    if data.count(b"\n") != data.count(b"\r\n"):
        raise BadMessage(400, "a line feed without a carriage return")


def parse_length(value: bytes) -> int:
    digits = value.strip(b" \t")
    if not digits.isdigit() or len(digits) > MAX_LENGTH_DIGITS:
        raise BadMessage(400, "Content-Length is not a number")
    return int(digits)


def body_framing(fields: list[tuple[bytes, bytes]], version: tuple[int, int]) -> Framing | None:
    """The framing that Content-Length and Transfer-Encoding declare; None when there is neither.

    Anything that two implementations might read differently is refused.
    """
    length: int | None = None
    chunked = False
    for name, value in fields:
        if name == b"content-length":
            if length is not None:
                raise BadMessage(400, "more than one Content-Length")
            length = parse_length(value)
        elif name == b"transfer-encoding":
            if chunked or value.strip(b" \t").lower() != b"chunked":
                raise BadMessage(400, "Transfer-Encoding must be exactly `chunked`")
            chunked = True
    if chunked:
        if length is not None:
            raise BadMessage(400, "both Content-Length and Transfer-Encoding")
        if version < (1, 1):
            raise BadMessage(400, "Transfer-Encoding in an HTTP/1.0 message")
        return Framing("chunked")
    return None if length is None else Framing("length", length)


class Chunked:
    """The rest of a chunked message, fed as it arrives to the llhttp parser that has read its head."""

    __slots__ = ("_parser", "_payload", "_raw", "_sink", "_tail")

    OVERHEAD = 16 * 1024  # framing bytes allowed besides 8 per payload byte: extensions and trailers

    def __init__(self, parser: Parser, sink: Sink) -> None:
        self._parser = parser
        self._sink = sink
        self._tail = b""
        self._raw = 0
        self._payload = 0
        sink.headers = []

    @property
    def trailers(self) -> list[tuple[bytes, bytes]]:
        return self._sink.headers

    def feed(self, data: bytes) -> tuple[bytes, int]:
        """The payload in `data`, and the index in `data` just after the message, or -1 when it goes on.

        llhttp does not say where it stopped and would take what follows for a new message. But a chunked message ends
        with CRLF CRLF, so it is fed only up to each of those and asked whether that was the end.
        """
        if data[0] > 13 and END_OF_HEAD not in data:
            end = -1
            feed(self._parser, data, "chunk")
            self._tail = data[-3:] if len(data) >= 3 else (self._tail + data)[-3:]
        else:
            end = self._feed_by_pieces(data)
            if end >= 0 and body_framing(self._sink.headers, (1, 1)) is not None:
                raise BadMessage(400, "framing fields in a trailer")
        spans = self._sink.spans
        payload = spans[0] if len(spans) == 1 else b"".join(spans)
        spans.clear()
        self._raw += len(data) if end < 0 else end
        self._payload += len(payload)
        if self._raw > self.OVERHEAD + 9 * self._payload:
            raise BadMessage(400, "too much chunk framing for too little data")
        return payload, end

    def _feed_by_pieces(self, data: bytes) -> int:
        before = len(self._tail)  # bytes of the window that were fed already
        window = self._tail + data
        fed = before
        while fed < len(window):
            at = window.find(END_OF_HEAD, max(fed - 3, 0))
            stop = len(window) if at < 0 else at + 4
            feed(self._parser, window[fed:stop], "chunk")
            fed = stop
            if self._sink.complete:
                return fed - before
        self._tail = window[-3:]
        return -1
