"""What a client sees of the server, over real sockets on both event loops."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
from tests.http1.harness import MemoryClient, Wire, echo, memory_server, nothing_left, on_asyncio, on_uvloop

from fairq.gateway.http1 import Exchange, Limits, Server
from fairq.testing.clock import eventually

GET = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
CHUNKED_POST = (
    b"POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: v\r\n\r\n"
)

Talk = Callable[[Server, Wire], Awaitable[None]]


@pytest.fixture(params=[on_asyncio, on_uvloop])
def serve(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Runs a conversation with a server, and checks that it leaves nothing behind."""

    def run(talk: Talk, app: Callable[[Exchange], None] = echo, limits: Limits | None = None) -> None:
        async def main() -> None:
            server = Server(app, limits or Limits())
            await server.start("127.0.0.1", 0)
            wire = await Wire.open(server.port)
            try:
                await talk(server, wire)
            finally:
                await wire.close()
                await server.drain(1)
            assert nothing_left(server)

        request.param(main())

    return run


def test_many_requests_share_one_connection(serve: Callable[..., None]) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        for number in range(5):
            wire.send(b"POST /n HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n%2d" % number)
            assert await wire.response() == (
                200,
                {b"x-host": b"h", b"content-length": b"%d" % len(b"POST /n ? %2d" % number)},
                b"POST /n ? %2d" % number,
            )
        assert len(server.connections) == 1

    serve(talk)


def test_pipelined_requests_are_answered_in_order(serve: Callable[..., None]) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        wire.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % n for n in range(50)) + CHUNKED_POST + GET)
        for number in range(50):
            assert (await wire.response())[2] == b"GET /%d ? " % number
        assert (await wire.response())[2] == b"POST /c ? abcde"
        assert (await wire.response())[2] == b"GET /a ? "

    serve(talk)


def test_pipelined_requests_wait_for_the_running_one(serve: Callable[..., None]) -> None:
    running: list[Exchange] = []

    async def talk(server: Server, wire: Wire) -> None:
        wire.send(GET + GET + GET)
        for _ in range(3):
            await eventually(lambda: len(running) == 1)
            await asyncio.sleep(0)
            assert len(running) == 1
            running.pop().respond(200, [], b"x")
            assert (await wire.response())[2] == b"x"

    serve(talk, running.append)


def test_more_pipelined_bytes_than_allowed_close_the_connection_after_the_running_request(
    serve: Callable[..., None],
) -> None:
    running: list[Exchange] = []

    async def talk(server: Server, wire: Wire) -> None:
        wire.send(GET)
        await eventually(lambda: running)
        wire.send(GET * 100)
        await eventually(lambda: not next(iter(server.connections)).keep, "the bound to be noticed")
        running[0].respond(200, [], b"first")
        status, fields, body = await wire.response()
        assert (status, fields[b"connection"], body) == (200, b"close", b"first")
        assert await wire.rest() == b""
        assert len(running) == 1

    serve(talk, running.append, Limits(pipelined_bytes=1000))


def test_chunked_body_with_extensions_and_trailers_is_joined(serve: Callable[..., None]) -> None:
    def app(exchange: Exchange) -> None:
        def answer(body: bytes) -> None:
            exchange.respond(200, [], body + b"|" + b",".join(name for name, _ in exchange.headers))

        exchange.read_body(answer, 100)

    async def talk(server: Server, wire: Wire) -> None:
        wire.send(CHUNKED_POST)
        assert (await wire.response())[2] == b"abcde|host,transfer-encoding"

    serve(talk, app)


def test_what_follows_a_chunked_body_in_the_same_read_is_not_its_framing(serve: Callable[..., None]) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        wire.send(CHUNKED_POST + b"POST /d HTTP/1.1\r\nHost: h\r\nContent-Length: 30000\r\n\r\n" + b"x" * 30_000)
        assert (await wire.response())[2] == b"POST /c ? abcde"
        assert (await wire.response())[2] == b"POST /d ? " + b"x" * 30_000

    serve(talk)


def test_repeated_fields_are_all_there_in_order(serve: Callable[..., None]) -> None:
    def app(exchange: Exchange) -> None:
        said = b"|".join(b"%b=%b" % field for field in exchange.headers)
        assert exchange.header(b"accept") == b"a"
        assert exchange.values(b"accept") == [b"a", b"b", b"c"]
        exchange.respond(200, [], said)

    async def talk(server: Server, wire: Wire) -> None:
        wire.send(b"GET / HTTP/1.1\r\nHost:h\r\nAccept: a\r\nX: \r\nACCEPT:\tb\r\naccept:  c\r\nY:1\r\n\r\n")
        assert (await wire.response())[2] == b"host=h|accept=a|x=|accept=b|accept=c|y=1"

    serve(talk, app)


def test_continue_is_sent_only_when_the_body_is_wanted_and_has_not_come(serve: Callable[..., None]) -> None:
    expecting = b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n"

    async def talk(server: Server, wire: Wire) -> None:
        wire.send(expecting)
        assert await wire.head() == (100, {})
        wire.send(b"abc")
        assert (await wire.response())[2] == b"POST / ? abc"
        wire.send(expecting + b"abc")
        assert (await wire.response())[2] == b"POST / ? abc"

    serve(talk)


def test_no_continue_is_sent_for_a_body_that_is_too_large(serve: Callable[..., None]) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        wire.send(b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 100001\r\n\r\n")
        assert (await wire.response())[0] == 413
        assert await wire.rest() == b""

    serve(talk)


def test_a_refusal_before_the_body_sends_no_continue_and_closes(serve: Callable[..., None]) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        wire.send(b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        status, fields, _ = await wire.response()
        assert (status, fields[b"connection"]) == (401, b"close")
        assert await wire.rest() == b""

    serve(talk, lambda exchange: exchange.respond(401, [], b"who are you"))


def test_a_refusal_before_a_small_body_keeps_the_connection(serve: Callable[..., None]) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        wire.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 30000\r\n\r\n" + b"x" * 10_000)
        status, fields, _ = await wire.response()
        assert status == 401
        assert b"connection" not in fields
        wire.send(b"x" * 20_000 + GET)
        assert (await wire.response())[0] == 401
        assert len(server.connections) == 1

    serve(talk, lambda exchange: exchange.respond(401, [], b"who are you"))


def test_the_answer_survives_a_client_that_goes_on_sending(serve: Callable[..., None]) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        wire.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10000000\r\n\r\n")
        for _ in range(20):
            wire.send(b"x" * 100_000)
        status, fields, _ = await wire.response()
        assert (status, fields[b"connection"]) == (413, b"close")
        for _ in range(20):
            wire.send(b"x" * 100_000)
        assert await wire.rest() == b""

    serve(talk)


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Length: 100001\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n186a1\r\n" + b"x" * 100_001 + b"\r\n0\r\n\r\n",
    ],
)
def test_a_body_over_the_limit_is_413_and_the_application_learns_it(serve: Callable[..., None], body: bytes) -> None:
    events: list[tuple[str, int]] = []

    def app(exchange: Exchange) -> None:
        exchange.on_refused = lambda status, reason: events.append(("refused", status))
        exchange.on_gone = lambda: events.append(("gone", 0))
        exchange.on_done = lambda: events.append(("done", 0))
        exchange.read_body(lambda whole: events.append(("body", len(whole))), 100_000)

    async def talk(server: Server, wire: Wire) -> None:
        wire.send(b"POST / HTTP/1.1\r\nHost: h\r\n" + body)
        assert (await wire.response())[0] == 413
        assert events == [("refused", 413)]

    serve(talk, app)


def test_the_application_may_answer_a_refused_body_itself(serve: Callable[..., None]) -> None:
    def app(exchange: Exchange) -> None:
        exchange.on_refused = lambda status, reason: exchange.respond(
            status, [(b"x-outcome", b"refused-too-large")], b"{}"
        )
        exchange.read_body(lambda whole: None, 10)

    async def talk(server: Server, wire: Wire) -> None:
        wire.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n")
        status, fields, body = await wire.response()
        assert (status, fields[b"x-outcome"], fields[b"connection"], body) == (
            413,
            b"refused-too-large",
            b"close",
            b"{}",
        )

    serve(talk, app)


def test_an_application_that_takes_its_time_may_still_read_the_body() -> None:
    exchanges: list[Exchange] = []
    bodies: list[bytes] = []
    server, _ = memory_server(exchanges.append, Limits(pipelined_bytes=1000))
    poster, getter = MemoryClient(server), MemoryClient(server)
    poster.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n")
    poster.send(b"x" * 2000)
    assert not poster.transport.reading, "the kernel holds the rest back"
    getter.send(GET)
    getter.send(GET * 100)
    for exchange in exchanges:
        exchange.read_body(bodies.append, 10_000)
    assert bodies == [b""]
    assert poster.transport.reading
    poster.send(b"x" * 3000)
    assert bodies == [b"", b"x" * 5000]


def test_a_body_that_nobody_has_asked_for_yet_counts_as_buffered() -> None:
    refused: list[int] = []

    def app(exchange: Exchange) -> None:
        exchange.on_refused = lambda status, reason: refused.append(status)

    server, clock = memory_server(app, Limits(buffered_bytes=1000))
    client = MemoryClient(server)
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n")
    client.send(b"x" * 1001)
    assert refused == [503]
    assert client.answered.startswith(b"HTTP/1.1 503 ")
    clock.jump(3)
    client.transport.settle()
    assert nothing_left(server)


def test_a_malformed_chunk_in_the_middle_of_a_body_is_400(serve: Callable[..., None]) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        wire.send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await eventually(lambda: server.buffered == 3)
        wire.send(b"zz\r\n")
        assert (await wire.response())[0] == 400
        assert await wire.rest() == b""

    serve(talk)


def streamer(exchange: Exchange) -> None:
    exchange.start(200, [(b"content-type", b"text/event-stream")])
    exchange.write(b"data: 1\n\n")
    exchange.write(b"")
    exchange.write(b"data: 2\n\n")
    exchange.finish()


def test_streams_are_chunked_on_http_1_1(serve: Callable[..., None]) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        for _ in range(2):
            wire.send(GET)
            status, fields, body = await wire.response()
            assert (status, body) == (200, b"data: 1\n\ndata: 2\n\n")
            assert fields == {b"content-type": b"text/event-stream", b"transfer-encoding": b"chunked"}

    serve(talk, streamer)


def test_a_stream_may_end_its_connection(serve: Callable[..., None]) -> None:
    def app(exchange: Exchange) -> None:
        exchange.start(200, [])
        exchange.write(b"data: failed")
        exchange.finish(close=True)

    async def talk(server: Server, wire: Wire) -> None:
        wire.send(GET + GET)
        assert (await wire.response())[2] == b"data: failed"
        assert await wire.rest() == b""

    serve(talk, app)


def test_streams_end_with_the_connection_on_http_1_0(serve: Callable[..., None]) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        wire.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        status, fields, body = await wire.response()
        assert (status, body) == (200, b"data: 1\n\ndata: 2\n\n")
        assert fields == {b"content-type": b"text/event-stream", b"connection": b"close"}

    serve(talk, streamer)


@pytest.mark.parametrize(
    ("request_head", "connection"),
    [
        (b"GET / HTTP/1.0\r\n", b"close"),
        (b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n", b"keep-alive"),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n", b"close"),
        (b"GET / HTTP/1.1\r\nHost: h\r\n", None),
        (b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n", b"close"),
        (b"GET / HTTP/1.1\r\nHost: h\r\nConnection: x, CLOSE\r\n", b"close"),
    ],
)
def test_who_wants_to_keep_the_connection_keeps_it(
    serve: Callable[..., None], request_head: bytes, connection: bytes | None
) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        wire.send(request_head + b"\r\n")
        status, fields, _ = await wire.response()
        assert status == 200
        assert fields.get(b"connection") == connection
        if connection == b"close":
            assert await wire.rest() == b""
        else:
            wire.send(request_head + b"\r\n")
            assert (await wire.response())[0] == 200

    serve(talk)


def test_head_has_the_fields_of_get_and_no_body(serve: Callable[..., None]) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        wire.send(GET.replace(b"GET", b"HEAD") * 2)
        for _ in range(2):
            status, fields, _ = await wire.response(b"HEAD")
            assert (status, fields[b"content-length"]) == (200, b"10")
        wire.send(GET)
        assert (await wire.response())[2] == b"GET /a ? "

    serve(talk)


@pytest.mark.parametrize("status", [204, 304])
def test_responses_without_a_body_have_none(serve: Callable[..., None], status: int) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        for _ in range(2):
            wire.send(GET)
            got, fields, _ = await wire.response()
            assert got == status
            assert b"transfer-encoding" not in fields
            assert b"content-length" not in fields

    def app(exchange: Exchange) -> None:
        if exchange.path == "/a":
            exchange.start(status, [])
            exchange.write(b"never seen")
            exchange.finish()

    serve(talk, app)
    serve(talk, lambda exchange: exchange.respond(status, [], b""))


def test_every_answer_of_ours_has_a_date(serve: Callable[..., None]) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        wire.send(GET + b"bad\r\n\r\n")
        assert b"\r\ndate: Tue, 15 Nov 1994 08:12:31 GMT\r\n" in await wire.reader.readuntil(b"\r\n\r\n")
        assert b"\r\ndate: " in await wire.reader.readuntil(b"\r\n\r\n")

    serve(talk, lambda exchange: exchange.respond(200, [(b"date", b"Tue, 15 Nov 1994 08:12:31 GMT")], b""))


def test_options_for_the_whole_server(serve: Callable[..., None]) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        wire.send(b"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\nOPTIONS /a HTTP/1.1\r\nHost: h\r\n\r\n")
        assert (await wire.response())[2] == b"OPTIONS * ? "
        assert (await wire.response())[2] == b"OPTIONS /a ? "

    serve(talk)


def test_a_length_framed_stream_that_ends_early_is_cut(serve: Callable[..., None]) -> None:
    def app(exchange: Exchange) -> None:
        exchange.start(200, [], length=10)
        exchange.write(b"12345")
        exchange.finish()

    async def talk(server: Server, wire: Wire) -> None:
        wire.send(GET)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await wire.response()

    serve(talk, app)


@pytest.mark.parametrize("where", ["name", "value"])
@pytest.mark.parametrize("text", [b"a\r\nSet-Cookie: x", b"a\nb", b"a\rb"])
def test_a_header_cannot_be_injected(serve: Callable[..., None], where: str, text: bytes) -> None:
    raised: list[ValueError] = []

    def app(exchange: Exchange) -> None:
        field = (text, b"v") if where == "name" else (b"x", text)
        for answer in (lambda: exchange.respond(200, [field], b""), lambda: exchange.start(200, [field])):
            with pytest.raises(ValueError, match="CR or LF") as caught:
                answer()
            raised.append(caught.value)
        exchange.respond(200, [], b"clean")

    async def talk(server: Server, wire: Wire) -> None:
        wire.send(GET)
        assert await wire.response() == (200, {b"content-length": b"5"}, b"clean")
        assert len(raised) == 2

    serve(talk, app)


def test_a_failing_application_is_answered_500_and_reported(serve: Callable[..., None]) -> None:
    reports: list[object] = []

    def app(exchange: Exchange) -> None:
        if exchange.path == "/late":
            exchange.start(200, [])
        raise ZeroDivisionError

    async def talk(server: Server, wire: Wire) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reports.append(context["exception"]))
        wire.send(GET)
        assert (await wire.response())[0] == 500
        assert await wire.rest() == b""
        second = await Wire.open(server.port)
        second.send(GET.replace(b"/a", b"/late"))
        assert b"0\r\n\r\n" not in await second.rest()
        await second.close()
        assert [type(each) for each in reports] == [ZeroDivisionError] * 2

    serve(talk, app)


@pytest.mark.parametrize("leave", ["fin", "reset"])
@pytest.mark.parametrize("phase", ["body", "waiting", "streaming"])
def test_a_client_that_leaves_is_reported_once(serve: Callable[..., None], leave: str, phase: str) -> None:
    events: list[str] = []
    exchanges: list[Exchange] = []

    def app(exchange: Exchange) -> None:
        exchange.on_gone = lambda: events.append("gone")
        exchange.on_done = lambda: events.append("done")
        exchanges.append(exchange)
        if phase == "body":
            exchange.read_body(lambda body: events.append("body"), 100)
        elif phase == "streaming":
            exchange.start(200, [])
            exchange.write(b"x" * 1000)

    async def talk(server: Server, wire: Wire) -> None:
        wire.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab" if phase == "body" else GET)
        await eventually(lambda: exchanges)
        if leave == "fin":
            wire.writer.close()
        else:
            wire.writer.transport.abort()
        await eventually(lambda: events)
        exchanges[0].write(b"more")
        exchanges[0].finish()
        exchanges[0].respond(200, [], b"")
        exchanges[0].abort()
        await eventually(lambda: not server.connections)
        assert events == ["gone"]
        assert exchanges[0].closed

    serve(talk, app)


def test_done_is_reported_when_the_kernel_has_all(serve: Callable[..., None]) -> None:
    events: list[str] = []

    def app(exchange: Exchange) -> None:
        exchange.on_done = lambda: events.append("done")
        exchange.on_gone = lambda: events.append("gone")
        exchange.on_pause = lambda: events.append("pause")
        exchange.on_resume = lambda: events.append("resume")
        exchange.start(200, [])
        for _ in range(100):
            exchange.write(b"x" * 100_000)
        exchange.finish()

    async def talk(server: Server, wire: Wire) -> None:
        wire.send(GET)
        await eventually(lambda: "pause" in events)
        assert "done" not in events  # the kernel cannot hold all of it
        assert (await wire.response())[2] == b"x" * 10_000_000
        await eventually(lambda: events == ["pause", "done"])
        wire.send(GET)
        assert len((await wire.response())[2]) == 10_000_000

    serve(talk, app)


def test_a_slow_reader_pauses_the_writer(serve: Callable[..., None]) -> None:
    flow: list[str] = []
    exchanges: list[Exchange] = []

    def app(exchange: Exchange) -> None:
        exchange.on_pause = lambda: flow.append("pause")
        exchange.on_resume = lambda: flow.append("resume")
        exchange.start(200, [])
        exchanges.append(exchange)

    async def talk(server: Server, wire: Wire) -> None:
        wire.send(GET)
        await eventually(lambda: exchanges)
        written = 0
        while "pause" not in flow:
            exchanges[0].write(b"x" * 100_000)
            written += 100_000
            await asyncio.sleep(0)
        assert flow == ["pause"]
        reading = asyncio.get_running_loop().create_task(wire.response())
        await eventually(lambda: flow == ["pause", "resume"])
        exchanges[0].finish()
        assert len((await reading)[2]) == written

    serve(talk, app)


def test_small_writes_are_not_delayed(serve: Callable[..., None]) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        wire.send(GET)
        await wire.response()
        connection = next(iter(server.connections))
        sock = connection._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0

    serve(talk)


def test_connections_are_bounded_in_total_and_per_peer(serve: Callable[..., None]) -> None:
    async def too_many(server: Server, status: int) -> None:
        wire = await Wire.open(server.port)
        got, fields, _ = await wire.response()
        assert (got, fields[b"connection"]) == (status, b"close")
        await wire.close()

    async def talk(server: Server, wire: Wire) -> None:
        wire.send(GET)
        await wire.response()
        second = await Wire.open(server.port)
        second.send(GET)
        await second.response()
        await too_many(server, 503 if server.limits.connections == 2 else 429)
        await second.close()
        await eventually(lambda: len(server.connections) == 1)
        third = await Wire.open(server.port)
        third.send(GET)
        assert (await third.response())[0] == 200
        await third.close()

    serve(talk, limits=Limits(connections=2))
    serve(talk, limits=Limits(connections_per_peer=2))


@pytest.mark.parametrize(
    ("limits", "status"), [(Limits(buffered_bytes=1000), 503), (Limits(buffered_bytes_per_peer=1000), 429)]
)
def test_buffered_bytes_are_bounded_over_all_connections(
    serve: Callable[..., None], limits: Limits, status: int
) -> None:
    head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 900\r\n\r\n"

    async def talk(server: Server, wire: Wire) -> None:
        wire.send(head + b"x" * 600)
        await eventually(lambda: server.buffered == 600)
        second = await Wire.open(server.port)
        second.send(head + b"x" * 600)
        assert (await second.response())[0] == status
        await second.close()
        assert server.buffered == 600
        wire.send(b"x" * 300)
        assert (await wire.response())[0] == 200
        assert server.buffered == 0

    serve(talk, limits=limits)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: h\r\n" + b"X: y\r\n" * 20 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"y" * 2000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"y" * 2000, 431),
        (b"GET /" + b"a" * 200 + b" HTTP/1.1\r\nHost: h\r\n\r\n", 414),
    ],
)
def test_heads_are_bounded(serve: Callable[..., None], request_bytes: bytes, status: int) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        wire.send(request_bytes)
        assert (await wire.response())[0] == status
        assert await wire.rest() == b""

    serve(talk, limits=Limits(head_bytes=1000, header_lines=10, target_bytes=100))


def test_chunk_framing_is_bounded(serve: Callable[..., None]) -> None:
    async def talk(server: Server, wire: Wire) -> None:
        wire.send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(20):
            wire.send(b"1;" + b"e" * 2000 + b"\r\nx\r\n")
        assert (await wire.response())[0] == 400

    serve(talk)


def test_drain_lets_running_exchanges_end_and_nothing_follow(serve: Callable[..., None]) -> None:
    running: list[Exchange] = []

    async def talk(server: Server, wire: Wire) -> None:
        idle = await Wire.open(server.port)
        wire.send(GET + GET)
        await eventually(lambda: running and len(server.connections) == 2)
        drained = asyncio.get_running_loop().create_task(server.drain(5))
        assert await idle.rest() == b""
        with pytest.raises(ConnectionRefusedError):
            await Wire.open(server.port)
        assert not drained.done()
        running[0].respond(200, [], b"last")
        status, fields, body = await wire.response()
        assert (status, fields[b"connection"], body) == (200, b"close", b"last")
        await drained
        assert await wire.rest() == b""
        assert len(running) == 1
        await idle.close()

    serve(talk, running.append)


def test_drain_cuts_what_outlives_the_grace(serve: Callable[..., None]) -> None:
    events: list[str] = []

    def app(exchange: Exchange) -> None:
        exchange.on_gone = lambda: events.append("gone")
        exchange.start(200, [])

    async def talk(server: Server, wire: Wire) -> None:
        wire.send(GET)
        await wire.head()
        await server.drain(0.05)
        assert events == ["gone"]
        assert nothing_left(server)
        assert await wire.rest() == b""

    serve(talk, app)
