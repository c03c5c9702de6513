"""Request and response heads: bytes in, checked fields out."""

from __future__ import annotations

import re
from typing import Any, Final

import httptools

from fairq.gateway.http1.errors import BadMessage
from fairq.gateway.http1.framing import (
    NO_BODY,
    UNTIL_CLOSE,
    Framing,
    Sink,
    body_framing,
    check_line_ends,
    declared_length,
    feed,
)
from fairq.gateway.http1.headers import host_is_valid, is_alias, tokens
from fairq.gateway.http1.limits import ClientLimits, Limits
from fairq.gateway.http1.target import split_target

UNDERSCORE: Final = ord("_")
_VERSIONS: Final = {b"HTTP/1.1": (1, 1), b"HTTP/1.0": (1, 0)}
_STATUS_LINE: Final = re.compile(rb"(HTTP/1\.[01]) ([1-5][0-9][0-9])(?: ([\t\x20-\x7e\x80-\xff]*))?\r\n")
_LENGTH: Final = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([0-9]+)\r\n")
# What decides how a message is read, and who asks: if it came twice, another implementation could take the other value.
_REQUEST_FIELDS: Final = frozenset(
    {
        b"host",
        b"content-length",
        b"transfer-encoding",
        b"expect",
        b"upgrade",
        b"http2-settings",
        b"authorization",
        b"x-api-key",
        b"content-type",
        b"content-encoding",
    }
)
_RESPONSE_FIELDS: Final = frozenset({b"content-length", b"transfer-encoding"})
Fields = dict[bytes, bytes]


class Familiar:
    """A head that may come again on its connection: clients and servers say the same thing every time, but for the
    length of the body. What is byte for byte as before needs no second reading.

    note   of the application: what it made of this head
    """

    __slots__ = ("_after", "_before", "framing", "note")

    framing: Framing

    def __init__(self, head: bytes) -> None:
        self.note: Any = None
        self._before = head
        self._after: bytes | None = None  # not taken apart yet: many connections carry one request only

    def again(self, head: bytes) -> Framing | None:
        """Its framing, if `head` is this one but for the length it declares."""
        if self._after is None:
            whole = self._before
            length = _LENGTH.search(whole)
            self._after = whole[length.end(1) :] if length else b""
            self._before = whole[: length.start(1)] if length else whole
        before, after = self._before, self._after
        if not head.startswith(before) or not head.endswith(after):
            return None
        declared = head[len(before) : len(head) - len(after)]
        if self.framing.kind == "length":
            return declared_length(declared) if declared.isdigit() else None
        return None if declared else self.framing


class RequestHead(Familiar):
    """What a whole request head, its final empty line included, says. Raises BadMessage."""

    __slots__ = (
        "expects",
        "headers",
        "keep",
        "method",
        "path",
        "query",
        "target",
        "version",
    )

    def __init__(self, head: bytes, limits: Limits) -> None:
        super().__init__(head)
        try:
            self._parse(head, limits)
        except BadMessage:
            check_start(head)  # so that what is wrong with it does not depend on how much of it had come
            raise

    def _parse(self, head: bytes, limits: Limits) -> None:
        line, _, _ = head.partition(b"\r\n")
        parts = line.split(b" ")
        if len(parts) != 3:
            raise BadMessage(400, "the request line is not `METHOD target HTTP/1.1`")
        if not head[:1].isupper():  # llhttp skips line feeds
            raise BadMessage(400, "the request line does not begin with a method")
        self.method, self.target, protocol = method, target, protocol = parts
        version = _VERSIONS.get(protocol)
        if version is None:
            known = protocol[:5] == b"HTTP/" and protocol[5:6].isdigit()
            raise BadMessage(505 if known else 400, "only HTTP/1.1 and HTTP/1.0 are spoken here")
        self.version = version
        if len(target) > limits.target_bytes:
            raise BadMessage(414, f"the request target is longer than {limits.target_bytes} bytes")
        if method in (b"CONNECT", b"TRACE"):
            raise BadMessage(400, f"{method.decode()} is not accepted")
        sink = Sink()
        feed(httptools.HttpRequestParser(sink), head, "request head")
        lines = head.count(b"\n") - 2
        if lines > limits.header_lines:
            raise BadMessage(431, f"more than {limits.header_lines} header lines")
        self.path, self.query = split_target(method, target)
        fields = {name.lower(): value for name, value in sink.fields.items()}
        headers = list(fields.items())
        if len(headers) < lines:
            headers, fields = _repeated(head, _REQUEST_FIELDS)
        self.framing = framing = body_framing(fields, version) or NO_BODY
        self.keep = keeps_alive(fields, version)  # the client lets the connection live
        self.expects = _check_fields(fields, version) and framing is not NO_BODY  # it waits for 100 (Continue)
        self.headers = headers if UNDERSCORE not in head else _without_underscores(headers)


def check_start(head: bytes) -> None:
    """Refuse a head, or what has come of one, that will never be a request, without waiting for its end."""
    if not head[:1].isupper():
        raise BadMessage(400, "the request line does not begin with a method")
    check_line_ends(head)


def _repeated(head: bytes, once: frozenset[bytes]) -> tuple[list[tuple[bytes, bytes]], Fields]:
    """All fields of a head, which llhttp has found well-formed, in which a name comes again."""
    lines = [line.partition(b":") for line in head.split(b"\r\n")[1:-2]]
    headers = [(name.lower(), value.lstrip(b" \t")) for name, _, value in lines]
    names = [name for name, _ in headers if name in once]
    if len(set(names)) < len(names):
        raise BadMessage(400, f"more than one {max(names, key=names.count).decode()} field")
    fields = dict(headers)
    if b"connection" in fields:
        fields[b"connection"] = b",".join(value for name, value in headers if name == b"connection")
    return headers, fields


def _check_fields(fields: Fields, version: tuple[int, int]) -> bool:
    """Whether the client waits for 100 (Continue)."""
    host = fields.get(b"host")
    if host is None:
        if version == (1, 1):
            raise BadMessage(400, "an HTTP/1.1 request needs a Host field")
    elif not host_is_valid(host):
        raise BadMessage(400, "the Host field is not a host and port")
    if b"upgrade" in fields or b"http2-settings" in fields:
        raise BadMessage(400, "protocol upgrades are not accepted")
    if b"expect" not in fields or version == (1, 0):
        return False
    if fields[b"expect"].strip(b" \t").lower() != b"100-continue":
        raise BadMessage(417, "the only expectation met here is 100-continue")
    return True


def _without_underscores(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Refuse names that could be taken for others; drop the rest, as nginx does, in case they could after all."""
    for name, _ in headers:
        if b"_" in name and is_alias(name):
            raise BadMessage(400, f"the field name {name.decode()} could be taken for another with dashes")
    return [field for field in headers if b"_" not in field[0]]


def keeps_alive(fields: Fields, version: tuple[int, int]) -> bool:
    if b"connection" not in fields:
        return version == (1, 1)
    options = tokens(fields[b"connection"])
    return b"close" not in options and (version == (1, 1) or b"keep-alive" in options)


class ResponseHead(Familiar):
    """`method`: of the request that it answers."""

    __slots__ = ("headers", "keep", "method", "reason", "status")

    def __init__(
        self,
        head: bytes,
        method: bytes,
        status: int,
        reason: bytes,
        headers: list[tuple[bytes, bytes]],
        framing: Framing,
        keep: bool,
    ) -> None:
        super().__init__(head)
        self.method, self.status, self.reason = method, status, reason
        self.headers, self.framing, self.keep = headers, framing, keep


def parse_response(head: bytes, method: bytes, limits: ClientLimits) -> ResponseHead:
    """Parse a whole response head to a `method` request. Raises BadMessage, also for 101."""
    line = _STATUS_LINE.match(head)
    if line is None:
        raise BadMessage(502, "the status line is not `HTTP/1.1 ### reason`")
    version = _VERSIONS[line[1]]
    status = int(line[2])
    if status == 101:
        raise BadMessage(502, "the upstream switched protocols without being asked")
    sink = Sink()
    feed(httptools.HttpResponseParser(sink), head, "response head")
    lines = head.count(b"\n") - 2
    if lines > limits.header_lines:
        raise BadMessage(502, f"more than {limits.header_lines} header lines in the response")
    fields = {name.lower(): value for name, value in sink.fields.items()}
    headers = list(fields.items())
    if len(headers) < lines:
        headers, fields = _repeated(head, _RESPONSE_FIELDS)
    framing = _response_framing(fields, method, status, version)
    keep = framing.kind != "close" and keeps_alive(fields, version)
    return ResponseHead(head, method, status, line[3] or b"", headers, framing, keep)


def _response_framing(fields: Fields, method: bytes, status: int, version: tuple[int, int]) -> Framing:
    declared = body_framing(fields, version)
    if status < 200 or status == 204:
        if declared is not None and (declared.kind == "chunked" or declared.length):
            raise BadMessage(502, f"a {status} response cannot announce a body")
        return NO_BODY
    if method == b"HEAD" or status == 304:
        return NO_BODY if declared is None else Framing("none", declared.length)
    return declared or UNTIL_CLOSE
