"""Header fields: parsing of heads, what may not be in them, what may be passed on, and how they are written.

llhttp in its strict default refuses most of what smuggling is made of. What it lets through, and what it does not look
at, is checked here: see `tests/http1/smuggling.py` for the list.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Sequence
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

Headers = Sequence[tuple[bytes, bytes]]

# Fields that belong to one connection (RFC 9110 §7.6.1), and those that the framing of the next message decides.
HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"http2-settings",
        b"expect",
        b"content-length",
    }
)

# A server behind us may read `X_Y` as `X-Y` (CGI, WSGI). For these names and families, that would let a client say what
# was checked or stripped under the other spelling.
_ALIASED: Final = HOP_BY_HOP | {
    b"host",
    b"authorization",
    b"cookie",
    b"content-type",
    b"content-encoding",
    b"content-range",
    b"forwarded",
    b"x-api-key",
    b"x-session-id",
    b"x-request-id",
    b"x-real-ip",
    b"api-key",
}
_ALIASED_FAMILIES: Final = (
    b"x-fairq-",
    b"x-llm-d-",
    b"x-gateway-",
    b"x-forwarded-",
    b"x-vllm-",
    b"x-smg-",
    b"x-dynamo-",
    b"proxy-",
)

_HOST: Final = re.compile(rb"[ \t]*(?:[A-Za-z0-9._~!$&'*+;=%-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?[ \t]*")

STATUS_LINE: dict[int, bytes] = {
    status.value: b"HTTP/1.1 %d %s\r\n" % (status.value, status.phrase.encode()) for status in HTTPStatus
}


def is_alias(name: bytes) -> bool:
    """Whether a lower-case name with an underscore could be taken for a field that matters."""
    dashed = name.replace(b"_", b"-")
    return dashed in _ALIASED or dashed.startswith(_ALIASED_FAMILIES)


@functools.lru_cache(maxsize=1024)
def host_is_valid(value: bytes) -> bool:
    return _HOST.fullmatch(value) is not None


def tokens(value: bytes) -> list[bytes]:
    """The lower-cased, comma-separated elements of a list-valued field."""
    return [token.strip(b" \t") for token in value.lower().split(b",")]


def forwardable(headers: Headers, drop: frozenset[bytes] | tuple[bytes, ...] = ()) -> list[tuple[bytes, bytes]]:
    """What of `headers` (lower-case names) may be passed on to the next hop.

    Without hop-by-hop fields, fields nominated by Connection, framing fields, and `drop`.
    """
    refused = _refused(drop)
    for name, value in headers:
        if name == b"connection" and value not in _NOMINATES_NOTHING:
            refused = refused.union(tokens(value))
    return [field for field in headers if field[0] not in refused]


_NOMINATES_NOTHING: Final = (b"keep-alive", b"close", b"Keep-Alive")


@functools.lru_cache(maxsize=64)
def _refused(drop: frozenset[bytes] | tuple[bytes, ...]) -> frozenset[bytes]:
    return HOP_BY_HOP.union(drop)


def encode_head(start_line: bytes, headers: Headers, framing: bytes) -> bytes:
    """A message head. `start_line` and `framing` (ready-made field lines) end with CRLF. Raises as `field_lines`."""
    return b"%b%b%b\r\n" % (start_line, field_lines(headers), framing)


def field_lines(headers: Headers) -> bytes:
    """The fields of a head, each with its CRLF. Raises ValueError if a name or value would end its line early."""
    if not headers:
        return b""
    fields = b"\r\n".join(map(b": ".join, headers)) + b"\r\n"
    if len(fields) - len(fields.translate(None, b"\r\n")) != 2 * len(headers):
        raise ValueError("a header name or value contains CR or LF")
    return fields


def status_line(status: int) -> bytes:
    return STATUS_LINE.get(status) or b"HTTP/1.1 %d \r\n" % status


def request_line(method: bytes, target: bytes) -> bytes:
    """The first line of a request. Raises ValueError if its parts would not be three."""
    line = b"%b %b HTTP/1.1\r\n" % (method, target)
    if line.count(b" ") != 2 or len(line) - len(line.translate(None, b"\r\n")) != 2:
        raise ValueError("a space, CR or LF in the method or target")
    return line


def date_field() -> bytes:
    """The Date of a response made now (RFC 9110 §6.6.1), as a field line."""
    return _date_field(int(time.time()))


@functools.lru_cache(maxsize=1)
def _date_field(second: int) -> bytes:
    return b"date: %b\r\n" % formatdate(second, usegmt=True).encode()
