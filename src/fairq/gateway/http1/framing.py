"""Where a message ends: heads through llhttp, then length, chunks, or the end of the connection (RFC 9112 §6).

A head is given to llhttp whole and alone, so how the bytes were split into reads cannot change what it says.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Literal, NamedTuple

import httptools

from fairq.gateway.http1.errors import BadMessage

END_OF_HEAD = b"\r\n\r\n"
Kind = Literal["none", "length", "chunked", "close"]
MAX_LENGTH_DIGITS = 15


class Framing(NamedTuple):
    """How a body is delimited. `length` is its size for `length`; for `none` the size a GET would have had, or None."""

    kind: Kind
    length: int | None = None


NO_BODY = Framing("none")
CHUNKED = Framing("chunked")
UNTIL_CLOSE = Framing("close")


class Sink:
    """What llhttp calls back: methods of built-in types where it matters, which cost no Python call.

    `fields` keeps the first value of each name, as the name was spelled. `spans` collects a chunked body.
    """

    __slots__ = ("complete", "fields", "on_body", "on_header", "spans")

    # Asked for by httptools whether wanted or not; the search for a missing attribute would cost more.
    on_message_begin = on_url = on_status = on_headers_complete = on_chunk_header = on_chunk_complete = None

    def __init__(self) -> None:
        self.fields: dict[bytes, bytes] = {}
        self.spans: list[bytes] = []
        self.complete = False
        self.on_body = self.spans.append
        self.on_header = self.fields.setdefault

    def on_message_complete(self) -> None:
        self.complete = True


Parser = httptools.HttpRequestParser | httptools.HttpResponseParser


def feed(parser: Parser, data: bytes, what: str) -> None:
    """Give llhttp bytes; its refusals become BadMessage."""
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        raise BadMessage(400, "protocol upgrades and tunnels are not accepted") from None
    except httptools.HttpParserError as error:
        raise BadMessage(400, f"malformed {what}: {error}") from None


def check_line_ends(data: bytes) -> None:
    """Refuse a head, or a part of one, that has a line feed without its carriage return.

    Such a head may never contain the CRLF CRLF we wait for, so this cannot be left to the parser.
    """
    if data.count(b"\n") != data.count(b"\r\n"):
        raise BadMessage(400, "a line feed without a carriage return")


def body_framing(fields: Mapping[bytes, bytes], version: tuple[int, int]) -> Framing | None:
    """The framing that Content-Length and Transfer-Encoding declare; None when there is neither.

    Anything that two implementations might read differently is refused.
    """
    length = fields.get(b"content-length")
    coding = fields.get(b"transfer-encoding")
    if coding is not None:
        if coding.strip(b" \t").lower() != b"chunked":
            raise BadMessage(400, "Transfer-Encoding must be exactly `chunked`")
        if length is not None:
            raise BadMessage(400, "both Content-Length and Transfer-Encoding")
        if version < (1, 1):
            raise BadMessage(400, "Transfer-Encoding in an HTTP/1.0 message")
        return CHUNKED
    return None if length is None else _of_length(length)


@functools.lru_cache(maxsize=1024)
def _of_length(value: bytes) -> Framing:
    digits = value.strip(b" \t")
    if not digits.isdigit() or len(digits) > MAX_LENGTH_DIGITS:
        raise BadMessage(400, "Content-Length is not a number")
    return Framing("length", int(digits))


class Chunked:
    """The rest of a chunked message, fed as it arrives to the llhttp parser that has read its head."""

    __slots__ = ("_parser", "_sink", "_slack", "_tail")

    def __init__(self, parser: Parser, sink: Sink) -> None:
        self._parser = parser
        self._sink = sink
        self._tail = b""
        self._slack = 16 * 1024  # framing bytes allowed besides 8 per payload byte: extensions and trailers
        sink.fields.clear()  # what comes now is trailers

    def feed(self, data: bytes) -> tuple[bytes, int]:
        """The payload in `data`, and the index in `data` just after the message, or -1 when it goes on.

        llhttp does not say where it stopped and would take what follows for a new message. But a chunked message ends
        with CRLF CRLF, so it is fed only up to each of those and asked whether that was the end.
        """
        size = len(data)
        if data[0] > 13 and size > 2 and END_OF_HEAD not in data:
            end = -1
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserError as error:
                raise BadMessage(400, f"malformed chunk: {error}") from None
            self._tail = data[-3:]
        else:
            end = self._feed_by_pieces(data)
            if end >= 0:
                size = end
                if any(name.lower() in (b"content-length", b"transfer-encoding") for name in self._sink.fields):
                    raise BadMessage(400, "framing fields in a trailer")
        spans = self._sink.spans
        payload = spans[0] if len(spans) == 1 else b"".join(spans)
        spans.clear()
        self._slack += 9 * len(payload) - size
        if self._slack < 0:
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
