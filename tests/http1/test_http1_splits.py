"""How bytes are cut into reads changes nothing: not what is served, not what is refused, not what is answered."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.http1.harness import Clock, MemoryClient, MemoryTransport, Recorder, echo, memory_server, nothing_left

from fairq.gateway.http1 import Framing, Upstream
from fairq.gateway.http1.client import Transfer
from fairq.gateway.http1.link import Link

REQUESTS = {
    "get": b"GET /a/../b?q=1 HTTP/1.1\r\nHost: h\r\nAccept: */*\r\n\r\n",
    "empty lines first": b"\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "length": b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\n\r\n\r\nabc",
    "zero length": b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
    "chunks": b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'4\r\n\r\n\r\n\r\n6;a="b"\r\nabcdef\r\n2\r\n\r\n\r\n0\r\n\r\n',
    "trailers": b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n",
    "expect": b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    "1.0 kept": b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "closing": b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    "bad chunk": b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
    "bad head": b"GET / HTTP/1.1\r\nHost: h\r\nX : y\r\n\r\n",
    "bare LF": b"GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n",
    "not http": b"\x16\x03\x01 hello\r\n\r\n",
}
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
DATE = re.compile(rb"date: [^\r]*\r\n")


def serve(pieces: list[bytes]) -> tuple[bytes, bool]:
    server, clock = memory_server(echo)
    client = MemoryClient(server)
    for piece in pieces:
        client.send(piece)
    answered, closed = DATE.sub(b"", client.answered.replace(CONTINUE, b"")), client.closed
    client.leave()
    clock.advance(3)
    client.transport.settle()
    assert nothing_left(server)
    return answered, closed


def cut(data: bytes, *places: int) -> list[bytes]:
    bounds = [0, *places, len(data)]
    return [data[a:b] for a, b in itertools.pairwise(bounds)]


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_cut_at_every_byte_is_the_same_request(name: str) -> None:
    data = REQUESTS[name]
    whole = serve([data])
    assert whole[0].startswith(b"HTTP/1.1 ")
    for place in range(1, len(data)):
        assert serve(cut(data, place)) == whole, place
    assert serve([data[i : i + 1] for i in range(len(data))]) == whole


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_the_same_behind_another(name: str) -> None:
    first = REQUESTS["chunks"]
    alone = serve([first])[0]
    assert serve([first + REQUESTS[name]])[0] == alone + serve([REQUESTS[name]])[0]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_pipelined_requests_cut_anywhere_are_the_same_requests(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(REQUESTS)), min_size=1, max_size=4))
    stream = b"".join(REQUESTS[name] for name in names)
    places = sorted(data.draw(st.sets(st.integers(1, len(stream) - 1), max_size=8)))
    assert serve(cut(stream, *places)) == serve([stream])


RESPONSES = {
    "length": (b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n\r\n\r\nabc", Framing("length", 7), b"\r\n\r\nabc", True),
    "nothing": (b"HTTP/1.1 204 No Content\r\n\r\n", Framing("none"), b"", True),
    "zero": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Framing("length", 0), b"", True),
    "informational first": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
        Framing("length", 1),
        b"x",
        True,
    ),
    "chunks": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'4\r\n\r\n\r\n\r\n12;x="y"\r\ndata: \xf0\x9f\x98\x80 \xe3\x81\x82\r\n\r\n\r\n2\r\n\r\n\r\n0\r\n\r\n',
        Framing("chunked"),
        b"\r\n\r\n" + "data: 😀 あ\r\n\r\n".encode() + b"\r\n",
        True,
    ),
    "trailers": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n",
        Framing("chunked"),
        b"x",
        True,
    ),
    "closing": (
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
        Framing("length", 1),
        b"x",
        False,
    ),
    "until the end": (b"HTTP/1.1 200 OK\r\n\r\nabc\r\n\r\n", Framing("close"), b"abc\r\n\r\n", False),
}


def receive(pieces: list[bytes], *, then_close: bool) -> tuple[Recorder, bool]:
    """A response through a Link on a transport in memory. Returns what was received and whether the link was kept."""
    clock = Clock()
    upstream = Upstream("unused", 1, deadlines=clock.deadlines)
    link = Link(upstream)
    transport = MemoryTransport()
    transport.protocol = link
    link.connection_made(transport)
    recorder = Recorder()
    link.carry(Transfer(upstream, b"GET", b"GET / HTTP/1.1\r\n\r\n", b"", recorder))
    for piece in pieces:
        link.data_received(piece)
    if then_close:
        link.eof_received()
    return recorder, link in upstream._idle


def outcome(received: tuple[Recorder, bool]) -> tuple[object, ...]:
    recorder, kept = received
    failure = recorder.failure and (recorder.failure.kind, recorder.failure.started)
    return recorder.status, recorder.headers, recorder.framing, recorder.body, recorder.ended, failure, kept


@pytest.mark.parametrize("name", RESPONSES)
def test_a_response_cut_at_every_byte_is_the_same_response(name: str) -> None:
    data, framing, body, keeps = RESPONSES[name]
    whole = receive([data], then_close=framing.kind == "close")
    recorder, kept = whole
    assert (recorder.framing, recorder.body, recorder.ended, kept) == (framing, body, True, keeps)
    for place in range(1, len(data)):
        assert outcome(receive(cut(data, place), then_close=framing.kind == "close")) == outcome(whole), place
    assert outcome(receive([data[i : i + 1] for i in range(len(data))], then_close=framing.kind == "close")) == outcome(
        whole
    )


@pytest.mark.parametrize("name", RESPONSES)
def test_a_response_that_stops_at_any_byte_but_the_last_is_not_complete(name: str) -> None:
    data, framing, _, _ = RESPONSES[name]
    head = data.rfind(b"HTTP/1.1 ")
    head_end = data.find(b"\r\n\r\n", head) + 4
    for place in range(len(data)):
        recorder, kept = receive([data[:place]] if place else [], then_close=True)
        assert not kept
        if framing.kind == "close" and place >= head_end:
            assert recorder.ended
        else:
            assert recorder.failure is not None
            assert recorder.failure.kind == "reset"
            assert recorder.failure.started == (place >= head_end)


def chunked(pieces: list[bytes], extension: bytes) -> Iterator[bytes]:
    for piece in pieces:
        yield b"%x%b\r\n%b\r\n" % (len(piece), extension, piece)
    yield b"0\r\n\r\n"


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.binary(min_size=1, max_size=40) | st.sampled_from([b"\r\n", b"\r\n\r\n", b"0\r\n\r\n", b"\r"]), max_size=6
    ),
    st.sampled_from([b"", b";a", b";a=b"]),
    st.binary(max_size=6),
    st.lists(st.integers(0, 400), max_size=6),
)
def test_any_chunked_body_is_joined_exactly_and_ends_exactly(
    pieces: list[bytes], extension: bytes, after: bytes, places: list[int]
) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    message = head + b"".join(chunked(pieces, extension))
    bounds = sorted({place for place in places if 0 < place < len(message)})
    reads = cut(message, *bounds)
    reads[-1] += after
    recorder, kept = receive(reads, then_close=False)
    assert recorder.ended
    assert recorder.body == b"".join(pieces)
    assert kept == (not after)
