"""Targets, fields and heads, one at a time."""

from __future__ import annotations

import pytest

from fairq.gateway.http1 import Framing, Limits, forwardable
from fairq.gateway.http1.errors import BadMessage
from fairq.gateway.http1.framing import body_framing
from fairq.gateway.http1.headers import encode_head, host_is_valid, is_alias
from fairq.gateway.http1.heads import RequestHead
from fairq.gateway.http1.target import split_target


@pytest.mark.parametrize(
    ("target", "path"),
    [
        # RFC 3986 §5.2.4 and §5.4.2
        ("/a/b/c/./../../g", "/a/g"),
        ("/a/b/..", "/a/"),
        ("/a/b/.", "/a/b/"),
        ("/..", "/"),
        ("/../../g", "/g"),
        ("/./g", "/g"),
        ("/g.", "/g."),
        ("/.g", "/.g"),
        ("/..g/g..", "/..g/g.."),
        ("/a/./g/", "/a/g/"),
        # §6.2.2.2 and §6.2.2.1
        ("/%7Euser/%41%2d%5F%2e%2E", "/~user/A-_.."),
        ("/%2e%2e/x", "/x"),
        ("/a/%2E./b", "/b"),
        ("/a%2fb", "/a%2Fb"),
        ("/a%c3%a9", "/a%C3%A9"),
        ("/%25%32%65", "/%252e"),
        # empty segments
        ("//v1//models", "/v1/models"),
        ("//host/x", "/host/x"),
        ("/v1/models//", "/v1/models/"),
        ("/", "/"),
        ("///", "/"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/Chat", "/v1/Chat"),
    ],
)
def test_paths_are_normalised_before_they_are_matched(target: str, path: str) -> None:
    assert split_target(b"GET", target.encode()) == (path, b"")
    assert split_target(b"GET", path.encode())[0] == path, "normalising twice changes nothing"
    assert split_target(b"GET", target.encode() + b"?%2e=/../&?")[1] == b"%2e=/../&?"


def test_fields_of_one_connection_are_not_passed_on() -> None:
    received = [
        (b"host", b"h"),
        (b"connection", b"keep-alive, X-Secret , Authorization"),
        (b"connection", b"x-other"),
        (b"keep-alive", b"timeout=5"),
        (b"proxy-connection", b"x"),
        (b"proxy-authorization", b"x"),
        (b"te", b"trailers"),
        (b"trailer", b"x"),
        (b"transfer-encoding", b"chunked"),
        (b"content-length", b"3"),
        (b"upgrade", b"h2c"),
        (b"expect", b"100-continue"),
        (b"x-secret", b"1"),
        (b"authorization", b"Bearer x"),
        (b"x-other", b"2"),
        (b"accept", b"a"),
        (b"accept", b"b"),
        (b"x-dropped", b"4"),
    ]
    assert forwardable(received, (b"x-dropped", b"host")) == [(b"accept", b"a"), (b"accept", b"b")]


@pytest.mark.parametrize(
    ("name", "alias"),
    [
        (b"content_length", True),
        (b"transfer-_encoding", False),
        (b"x_fairq_tenant", True),
        (b"x-llm_d-inference-fairness-id", True),
        (b"x_forwarded_for", True),
        (b"sm_user", False),
        (b"x_custom", False),
    ],
)
def test_underscore_names_that_matter(name: bytes, alias: bool) -> None:
    assert is_alias(name) == alias


@pytest.mark.parametrize(
    "host", [b"h", b"a.b-c.d", b"127.0.0.1:80", b"[::1]", b"[::1]:80", b"xn--r8jz45g", b"", b"a_b"]
)
def test_hosts(host: bytes) -> None:
    assert host_is_valid(host)


@pytest.mark.parametrize(
    "host", [b"a b", b"a/b", b"a@b", b"a,b", b"a:b", b"a:1:2", b"[a", b"[::1]x", b"a\\b", b"a?b", b"\xff"]
)
def test_not_hosts(host: bytes) -> None:
    assert not host_is_valid(host)


def test_a_head_is_what_it_says() -> None:
    head = encode_head(b"HTTP/1.1 200 OK\r\n", [(b"a", b"b"), (b"c", b"")], b"content-length: 0\r\n")
    assert head == b"HTTP/1.1 200 OK\r\na: b\r\nc: \r\ncontent-length: 0\r\n\r\n"


@pytest.mark.parametrize("version", [(1, 0), (1, 1)])
def test_framing_fields(version: tuple[int, int]) -> None:
    assert body_framing({b"content-length": b" 012\t"}, version) == Framing("length", 12)
    assert body_framing({b"accept": b"x"}, version) is None
    if version == (1, 1):
        assert body_framing({b"transfer-encoding": b" CHUNKED "}, version) == Framing("chunked")
    with pytest.raises(BadMessage):
        body_framing({b"transfer-encoding": b"chunked", b"content-length": b"1"}, version)


@pytest.mark.parametrize("size", [399, 400, 401])
def test_the_bound_of_a_target_is_exact(size: int) -> None:
    head = b"GET /" + b"a" * (size - 1) + b" HTTP/1.1\r\nHost: h\r\n\r\n"
    if size <= 400:
        assert len(RequestHead(head, Limits(target_bytes=400)).path) == size
    else:
        with pytest.raises(BadMessage) as caught:
            RequestHead(head, Limits(target_bytes=400))
        assert caught.value.status == 414


@pytest.mark.parametrize("lines", [9, 10, 11])
def test_the_bound_of_header_lines_is_exact(lines: int) -> None:
    head = b"GET / HTTP/1.1\r\nHost: h\r\n" + b"X: y\r\n" * (lines - 1) + b"\r\n"
    if lines <= 10:
        assert len(RequestHead(head, Limits(header_lines=10)).headers) == lines
    else:
        with pytest.raises(BadMessage) as caught:
            RequestHead(head, Limits(header_lines=10))
        assert caught.value.status == 431
