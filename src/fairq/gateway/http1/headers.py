"""Header fields: parsing of heads, what may not be in them, what may be passed on, and how they are written.

llhttp in its strict default refuses most of what smuggling is made of. What it lets through, and what it does not look
at, is checked here: see `tests/http1/smuggling.py` for the list.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from http import HTTPStatus

Headers = Sequence[tuple[bytes, bytes]]

# Fields that belong to one connection (RFC 9110 §7.6.1), and those that the framing of the next message decides.
HOP_BY_HOP = frozenset(
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
_ALIASED = HOP_BY_HOP | {
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
_ALIASED_FAMILIES = (
    b"x-fairq-",
    b"x-llm-d-",
    b"x-gateway-",
    b"x-forwarded-",
    b"x-vllm-",
    b"x-smg-",
    b"x-dynamo-",
    b"proxy-",
)

_HOST = re.compile(rb"(?:[A-Za-z0-9._~!$&'*+;=%-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")

STATUS_LINE: dict[int, bytes] = {
    status.value: b"HTTP/1.1 %d %s\r\n" % (status.value, status.phrase.encode()) for status in HTTPStatus
}


def is_alias(name: bytes) -> bool:
    """Whether a lower-case name with an underscore could be taken for a field that matters."""
    dashed = name.replace(b"_", b"-")
    return dashed in _ALIASED or dashed.startswith(_ALIASED_FAMILIES)


def host_is_valid(value: bytes) -> bool:
    return _HOST.fullmatch(value) is not None


def tokens(value: bytes) -> list[bytes]:
    """The lower-cased, comma-separated elements of a list-valued field."""
    return [token.strip(b" \t") for token in value.lower().split(b",")]


def forwardable(headers: Headers, drop: Collection[bytes] = ()) -> list[tuple[bytes, bytes]]:
    """What of `headers` (lower-case names) may be passed on to the next hop.

    Without hop-by-hop fields, fields nominated by Connection, framing fields, names with an underscore, and `drop`.
    """
    refused: frozenset[bytes] = HOP_BY_HOP
    for name, value in headers:
        if name == b"connection" and value not in (b"keep-alive", b"close", b"Keep-Alive"):
            refused = refused.union(tokens(value))
    return [field for field in headers if field[0] not in refused and field[0] not in drop and b"_" not in field[0]]


def encode_head(start_line: bytes, headers: Headers, framing: bytes) -> bytes:
    """A message head. `start_line` and `framing` (ready-made field lines) end with CRLF.

    Raises ValueError if a name or value would end its line early.
    """
    lines = [start_line]
    for name, value in headers:
        lines += (name, b": ", value, b"\r\n")
    lines += (framing, b"\r\n")
    head = b"".join(lines)
    breaks = len(headers) + 2 + framing.count(b"\n")
    if head.count(b"\n") != breaks or head.count(b"\r") != breaks or b"\0" in head:
        raise ValueError("a header name or value contains CR, LF or NUL")
    return head


def status_line(status: int) -> bytes:
    return STATUS_LINE.get(status) or b"HTTP/1.1 %d \r\n" % status
