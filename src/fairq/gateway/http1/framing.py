"""Where a message ends: heads through llhttp, then length, chunks, or the end of the connection (RFC 9112 §6).

A head is given to llhttp whole and alone, so how the bytes were split into reads cannot change what it says.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import ClassVar, Final, Literal

import httptools

from fairq.gateway.http1.errors import BadMessage

END_OF_HEAD: Final = b"\r\n\r\n"
Kind = Literal["none", "length", "chunked", "close"]
MAX_LENGTH_DIGITS: Final = 15
MAX_SIZES: Final = 4096  # size lines that are remembered


class Framing:
    """How a body is delimited. `length` is its size for `length`; for `none` the size a GET would have had, or None."""

    __slots__ = ("kind", "length")

    def __init__(self, kind: Kind, length: int | None = None) -> None:
        self.kind, self.length = kind, length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Framing) and self.kind == other.kind and self.length == other.length

    def __hash__(self) -> int:
        return hash((self.kind, self.length))

    def __repr__(self) -> str:
        return f"Framing({self.kind!r}, {self.length})"


NO_BODY: Final = Framing("none")
CHUNKED: Final = Framing("chunked")
UNTIL_CLOSE: Final = Framing("close")


class Sink:
    """What llhttp calls back: methods of built-in types where it matters, which cost no Python call.

    `fields` keeps the first value of each name, as the name was spelled. `spans` collects a chunked body.
    """

    __slots__ = ("complete", "fields", "on_body", "on_header", "spans")

    # Asked for by httptools whether wanted or not; the search for a missing attribute would cost more.
    on_message_begin: ClassVar[None] = None
    on_url: ClassVar[None] = None
    on_status: ClassVar[None] = None
    on_headers_complete: ClassVar[None] = None
    on_chunk_header: ClassVar[None] = None
    on_chunk_complete: ClassVar[None] = None

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
    return None if length is None else declared_length(length)


@functools.lru_cache(maxsize=1024)
def declared_length(value: bytes) -> Framing:
    """Of a Content-Length."""
    digits = value.strip(b" \t")
    if not digits.isdigit() or len(digits) > MAX_LENGTH_DIGITS:
        raise BadMessage(400, "Content-Length is not a number")
    return Framing("length", int(digits))


_LINE: Final = re.compile(rb"[0-9A-Fa-f]{1,4}\r\n")
_LAST_CHUNK: Final = b"0\r\n\r\n"


_SIZES: Final[dict[bytes, int]] = {}  # of chunks, by their size lines


def _line(data: bytes, at: int) -> bytes:
    """What stands there as far as a size line of one to four digits would go."""
    if len(data) - at > 6:
        digits = 2 if data[at + 2] == 13 else 3 if data[at + 3] == 13 else 4 if data[at + 4] == 13 else 1
        return data[at : at + digits + 2]
    end = data.find(b"\n", at) + 1
    return data[at:end] if end else b""  # mypyc's slices must not end before they start


def _size(line: bytes) -> int:
    """Of a chunk; 0 where its line is anything but one to four hexadecimal digits and CR LF."""
    size = _SIZES.get(line)
    if size is None:
        if not _LINE.fullmatch(line):
            return 0
        if len(_SIZES) >= MAX_SIZES:
            _SIZES.clear()
        size = _SIZES[line] = int(line, 16)
    return size


class Chunked:
    """The rest of a chunked message, fed as it arrives.

    Plain chunks, which is how engines send their events, are taken apart right here. With the first read that has
    anything else in it (a cut size line, an extension, trailers), llhttp takes over for good.
    """

    __slots__ = ("_left", "_parser", "_sink", "_slack", "_tail", "whole")

    def __init__(self) -> None:
        self.whole = False  # the last read was whole chunks, so that it may be passed on with its framing
        self._left = 0  # payload bytes still to come of a chunk that was cut
        self._sink: Sink | None = None
        self._parser: Parser
        self._tail = b""
        self._slack = 16 * 1024  # framing bytes allowed besides 8 per payload byte: extensions and trailers

    def feed(self, data: bytes) -> tuple[bytes, int]:
        """The payload in `data`, and the index in `data` just after the message, or -1 when it goes on."""
        if self._sink is None:
            if not self._left:
                line = _line(data, 0)
                size = _SIZES.get(line)
                if size and len(line) + size + 2 == len(data) and data.endswith(b"\r\n"):
                    self.whole = True
                    return data[len(line) : -2], -1
            self.whole = False
            found = self._plain(data)
            if found is not None:
                return found
            self._hand_over()
        return self._feed(data)

    def _plain(self, data: bytes) -> tuple[bytes, int] | None:
        """As `feed`, of plain chunks: the first may be cut in `data`, so may the last, or the message and `data` end
        together. None if there is anything else."""
        left, at, size = self._left, 0, len(data)
        whole = not left
        payload: list[bytes] = []
        while at < size:
            if not left:
                if size - at == len(_LAST_CHUNK) and data.endswith(_LAST_CHUNK):
                    return b"".join(payload), size
                line = _line(data, at)
                left = _size(line)
                if not left:
                    return None
                at += len(line)
            stop = at + left
            if stop > size:
                payload.append(data[at:])
                left, at, whole = stop - size, size, False
            elif data[stop : stop + 2] == b"\r\n":
                payload.append(data[at:stop])
                left, at = 0, stop + 2
            else:
                return None
        self._left, self.whole = left, whole
        return b"".join(payload), -1

    def _hand_over(self) -> None:
        """What is left of a chunk is a chunk of its own to llhttp, behind a head that says no more than `chunked`."""
        self._sink = sink = Sink()
        self._parser = httptools.HttpResponseParser(sink)
        self._parser.feed_data(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        sink.fields.clear()  # what comes now is trailers
        if self._left:
            self._parser.feed_data(b"%x\r\n" % self._left)

    def _feed(self, data: bytes) -> tuple[bytes, int]:
        """llhttp does not say where it stopped and would take what follows for a new message. But a chunked message
        ends with CRLF CRLF, so it is fed only up to each of those and asked whether that was the end."""
        sink = self._sink
        assert sink is not None
        size = len(data)
        if data[0] > 13 and size > 2 and END_OF_HEAD not in data:
            end = -1
            feed(self._parser, data, "chunk")
            self._tail = data[-3:]
        else:
            end = self._feed_by_pieces(sink, data)
            if end >= 0:
                size = end
                if any(name.lower() in (b"content-length", b"transfer-encoding") for name in sink.fields):
                    raise BadMessage(400, "framing fields in a trailer")
        spans = sink.spans
        payload = spans[0] if len(spans) == 1 else b"".join(spans)
        spans.clear()
        self._slack += 9 * len(payload) - size
        if self._slack < 0:
            raise BadMessage(400, "too much chunk framing for too little data")
        return payload, end

    def _feed_by_pieces(self, sink: Sink, data: bytes) -> int:
        before = len(self._tail)  # bytes of the window that were fed already
        window = self._tail + data
        fed = before
        while fed < len(window):
            at = window.find(END_OF_HEAD, max(fed - 3, 0))
            stop = len(window) if at < 0 else at + 4
            feed(self._parser, window[fed:stop], "chunk")
            fed = stop
            if sink.complete:
                return fed - before
        self._tail = window[-3:]
        return -1
