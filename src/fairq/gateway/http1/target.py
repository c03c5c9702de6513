"""Request targets: only origin-form and `*`; paths normalised before anybody matches them (RFC 3986 §6.2.2, §5.2.4)."""

from __future__ import annotations

import functools
import re
from typing import Final

from fairq.gateway.http1.errors import BadMessage

_PLAIN: Final = re.compile(rb"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")
_TARGET: Final = re.compile(rb"[\x21-\x22\x24-\x7e]+")  # visible ASCII without the fragment sign
_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})?")
_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@functools.lru_cache(maxsize=256)
def split_target(method: bytes, target: bytes) -> tuple[str, bytes]:
    """The normalised path and the query (without `?`, untouched) of a request target.

    Percent-escapes of unreserved characters are decoded, other escapes are upper-cased and kept (`%2F` never becomes a
    separator), empty and dot segments are resolved and cannot climb above the root.
    """
    if _PLAIN.fullmatch(target):
        return target.decode("ascii"), b""
    if target == b"*" and method == b"OPTIONS":
        return "*", b""
    if not target.startswith(b"/"):
        raise BadMessage(400, "only the origin form of a request target is accepted (a path that starts with /)")
    if not _TARGET.fullmatch(target):
        raise BadMessage(400, "the request target has a character that is not allowed there")
    path, _, query = target.partition(b"?")
    segments: list[bytes] = []
    parts = _ESCAPE.sub(_decode, path).split(b"/")[1:]
    for part in parts:
        if part == b"..":
            if segments:
                segments.pop()
        elif part not in (b"", b"."):
            segments.append(part)
    normal = b"/" + b"/".join(segments)
    if segments and parts[-1] in (b"", b".", b".."):
        normal += b"/"
    return normal.decode("ascii"), query


def _decode(escape: re.Match[bytes]) -> bytes:
    digits = escape[1]
    if digits is None:
        raise BadMessage(400, "a % in the path is not followed by two hexadecimal digits")
    value = int(digits, 16)
    if value == 0:
        raise BadMessage(400, "the path contains an escaped NUL")
    return bytes((value,)) if value in _UNRESERVED else escape[0].upper()
