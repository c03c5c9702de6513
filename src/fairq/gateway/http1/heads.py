"""Request and response heads: bytes in, checked fields out."""

from __future__ import annotations

import re
from dataclasses import dataclass

import httptools

from fairq.gateway.http1.errors import BadMessage
from fairq.gateway.http1.framing import (
    NO_BODY,
    Framing,
    Parser,
    Sink,
    body_framing,
    check_line_ends,
    feed,
)
from fairq.gateway.http1.headers import host_is_valid, is_alias, tokens
from fairq.gateway.http1.limits import ClientLimits, Limits
from fairq.gateway.http1.target import split_target

_VERSIONS = {b"HTTP/1.1": (1, 1), b"HTTP/1.0": (1, 0)}
_STATUS_LINE = re.compile(rb"(HTTP/1\.[01]) ([1-5][0-9][0-9])(?: ([\t\x20-\x7e\x80-\xff]*))?\r\n")
# Singletons whose repetition two implementations would resolve differently.
_ONCE = frozenset({b"host", b"authorization", b"content-type", b"content-encoding", b"expect", b"x-api-key"})


@dataclass(slots=True)
class RequestHead:
    method: bytes
    target: bytes
    path: str
    query: bytes
    version: tuple[int, int]
    headers: list[tuple[bytes, bytes]]
    framing: Framing
    keep: bool  # the client lets the connection live
    expects: bool  # it waits for 100 (Continue)
    parser: Parser
    sink: Sink


def parse_request(head: bytes, limits: Limits) -> RequestHead:
    """Parse a whole request head, its final empty line included. Raises BadMessage."""
    check_start(head)
    line, _, _ = head.partition(b"\r\n")
    parts = line.split(b" ")
    if len(parts) != 3:
        raise BadMessage(400, "the request line is not `METHOD target HTTP/1.1`")
    method, target, protocol = parts
    version = _VERSIONS.get(protocol)
    if version is None:
        known = protocol[:5] == b"HTTP/" and protocol[5:6].isdigit()
        raise BadMessage(505 if known else 400, "only HTTP/1.1 and HTTP/1.0 are spoken here")
    if len(target) > limits.target_bytes:
        raise BadMessage(414, f"the request target is longer than {limits.target_bytes} bytes")
    if method in (b"CONNECT", b"TRACE"):
        raise BadMessage(400, f"{method.decode()} is not accepted")
    sink = Sink(limits.header_lines)
    parser = httptools.HttpRequestParser(sink)
    feed(parser, head, "request head")
    path, query = split_target(method, target)
    keep, expects = _check_request_fields(sink.headers, version)
    framing = body_framing(sink.headers, version) or NO_BODY
    return RequestHead(
        method,
        target,
        path,
        query,
        version,
        sink.headers,
        framing,
        keep,
        expects and framing is not NO_BODY,
        parser,
        sink,
    )


def check_start(head: bytes) -> None:
    """Refuse a head, or what has come of one, that will never be a request, without waiting for its end."""
    if not head[:1].isupper():
        raise BadMessage(400, "the request line does not begin with a method")
    check_line_ends(head)


def _check_request_fields(headers: list[tuple[bytes, bytes]], version: tuple[int, int]) -> tuple[bool, bool]:
    keep = version == (1, 1)
    expects = False
    seen: set[bytes] = set()
    for name, value in headers:
        if name in _ONCE:
            if name in seen:
                raise BadMessage(400, f"more than one {name.decode()} field")
            seen.add(name)
            if name == b"host":
                if not host_is_valid(value.rstrip(b" \t")):
                    raise BadMessage(400, "the Host field is not a host and port")
            elif name == b"expect" and version == (1, 1):
                if value.strip(b" \t").lower() != b"100-continue":
                    raise BadMessage(417, "the only expectation met here is 100-continue")
                expects = True
        elif name == b"connection":
            keep = _keeps_alive(value, keep)
        elif name == b"upgrade" or name == b"http2-settings":
            raise BadMessage(400, "protocol upgrades are not accepted")
        elif b"_" in name and is_alias(name):
            raise BadMessage(400, f"the field name {name.decode('latin-1')} could be taken for another with dashes")
    if version == (1, 1) and b"host" not in seen:
        raise BadMessage(400, "an HTTP/1.1 request needs a Host field")
    return keep, expects


def _keeps_alive(connection: bytes, keep: bool) -> bool:
    options = tokens(connection)
    if b"close" in options:
        return False
    return keep or b"keep-alive" in options


@dataclass(slots=True)
class ResponseHead:
    status: int
    reason: bytes
    headers: list[tuple[bytes, bytes]]
    framing: Framing
    keep: bool
    parser: Parser
    sink: Sink


def parse_response(head: bytes, method: bytes, limits: ClientLimits) -> ResponseHead:
    """Parse a whole response head to a `method` request. Raises BadMessage, also for 101."""
    line = _STATUS_LINE.match(head)
    if line is None:
        raise BadMessage(502, "the status line is not `HTTP/1.1 ### reason`")
    version = _VERSIONS[line[1]]
    status = int(line[2])
    if status == 101:
        raise BadMessage(502, "the upstream switched protocols without being asked")
    sink = Sink(limits.header_lines)
    parser = httptools.HttpResponseParser(sink)
    feed(parser, head, "response head")
    keep = version == (1, 1)
    for name, value in sink.headers:
        if name == b"connection":
            keep = _keeps_alive(value, keep)
    framing = _response_framing(sink.headers, method, status, version)
    keep = keep and framing.kind != "close"
    return ResponseHead(status, line[3] or b"", sink.headers, framing, keep, parser, sink)


def _response_framing(
    headers: list[tuple[bytes, bytes]], method: bytes, status: int, version: tuple[int, int]
) -> Framing:
    declared = body_framing(headers, version)
    if status < 200 or status == 204:
        if declared is not None and (declared.kind == "chunked" or declared.length):
            raise BadMessage(502, f"a {status} response cannot announce a body")
        return NO_BODY
    if method == b"HEAD" or status == 304:
        return NO_BODY if declared is None else Framing("none", declared.length)
    return declared or Framing("close")
