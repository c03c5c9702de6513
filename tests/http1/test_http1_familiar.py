"""A head that comes again on its connection is not read again, and says what it would have said."""

from __future__ import annotations

import pytest
from tests.http1.harness import unchunked

from fairq.gateway.http1 import ClientLimits, Framing, Limits
from fairq.gateway.http1.errors import BadMessage
from fairq.gateway.http1.framing import Chunked
from fairq.gateway.http1.heads import RequestHead, parse_response

POST = b"POST /v1/x HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\nA: b\r\n\r\n"


def test_only_the_length_may_differ() -> None:
    head = RequestHead(POST, Limits())
    assert head.again(POST) == Framing("length", 12)
    assert head.again(POST.replace(b"12", b"3456")) == Framing("length", 3456)
    assert head.again(POST.replace(b"12", b"0")) == Framing("length", 0)


@pytest.mark.parametrize(
    "other",
    [
        POST.replace(b"12", b""),
        POST.replace(b"12", b"-1"),
        POST.replace(b"12", b"+1"),
        POST.replace(b"12", b"1_2"),
        POST.replace(b"12", b" 12"),
        POST.replace(b"12", b"12, 12"),
        POST.replace(b"12", b"12\r\nContent-Length: 3"),
        POST.replace(b"12", b"12\r\nTransfer-Encoding: chunked"),
        POST.replace(b"A: b", b"A: c"),
        POST.replace(b"A: b", b"A: b\r\nX-Fairq-Tenant: t"),
        POST.replace(b"A: b\r\n", b""),
        POST.replace(b"/v1/x", b"/v1/y"),
        POST[:30],
        POST[-30:],
    ],
)
def test_anything_else_is_read_as_if_it_were_the_first(other: bytes) -> None:
    assert RequestHead(POST, Limits()).again(other) is None


def test_a_length_that_is_none_is_refused_as_in_a_first_head() -> None:
    with pytest.raises(BadMessage):
        RequestHead(POST, Limits()).again(POST.replace(b"12", b"1" * 16))


def test_a_head_without_a_length_that_can_be_cut_out_must_be_the_same() -> None:
    for head in (POST.replace(b"Content-Length: 12\r\n", b""), POST.replace(b"Content-Length: ", b"CONTENT-LENGTH:")):
        first = RequestHead(head, Limits())
        assert first.again(head) in (None, first.framing)
        assert first.again(head.replace(b"12", b"13")) in (None, first.framing if b"12" not in head else None)


def test_a_chunked_response_comes_again_chunked() -> None:
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    head = parse_response(data, b"POST", ClientLimits())
    assert head.again(data) == Framing("chunked")
    assert head.again(data[:-2] + b"Content-Length: 5\r\n\r\n") is None


@pytest.mark.parametrize(
    ("data", "whole"),
    [
        (b"5\r\nhello\r\n", True),
        (b"5\r\nhello\r\nB\r\nhello world\r\n", True),
        (b"5\r\nhello\r\n2\r\nx", False),
        (b"00005\r\nhello\r\n", False),
        (b"5;a=b\r\nhello\r\n", False),
        (b"5\r\nhello\r\n0\r\n\r\n", False),
    ],
)
def test_what_is_passed_on_as_it_came_is_whole_plain_chunks(data: bytes, whole: bool) -> None:
    chunked = Chunked()
    payload, _ = chunked.feed(data)
    assert chunked.whole is whole
    if whole:
        assert unchunked(data) == payload


@pytest.mark.parametrize("size", [b"+5", b" 5", b"5 ", b"0x5", b"5_0", b"-1", b"g"])
def test_a_chunk_size_is_hexadecimal_digits_and_nothing_else(size: bytes) -> None:
    with pytest.raises(BadMessage):
        Chunked().feed(size + b"\r\nhello\r\n")
    with pytest.raises(BadMessage):
        Chunked().feed(b"5\r\nhello\r\n" + size + b"\r\nhello\r\n")
