"""What upstreams and receivers see of the client, over real sockets on both event loops."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable

import pytest
import trustme
from tests.http1.harness import Origin, Recorder, Wire, echo, fetch, on_asyncio, on_uvloop

from fairq.gateway.http1 import ClientLimits, Exchange, Framing, Server, Upstream
from fairq.gateway.http1.heads import ResponseHead
from fairq.testing.clock import eventually, turns
from fairq.testing.replies import Early, answer
from fairq.testing.upstream import ScriptedUpstream

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(params=[on_asyncio, on_uvloop])
def talk(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Runs a conversation between an Upstream and a scripted Origin, and checks that nothing is left."""

    def run(
        conversation: Callable[[Upstream, Origin], Awaitable[None]],
        *scripts: list[bytes | None],
        limits: ClientLimits | None = None,
    ) -> None:
        async def main() -> None:
            async with Origin(*scripts) as origin:
                upstream = Upstream("127.0.0.1", origin.port, limits=limits)
                try:
                    await conversation(upstream, origin)
                finally:
                    await upstream.close()
                assert not upstream.transfers
                assert not upstream.links

        request.param(main())

    return run


def test_one_connection_carries_many_requests(talk: Callable[..., None]) -> None:
    async def conversation(upstream: Upstream, origin: Origin) -> None:
        for number in range(20):
            recorder = await fetch(upstream, b"POST", b"/%d" % number, b"x" * number)
            assert (recorder.status, recorder.body, recorder.ended) == (200, b"ok", True)
        assert origin.connections == upstream.opened == 1
        assert origin.requests[3] == b"POST /3 HTTP/1.1\r\nhost: test\r\ncontent-length: 3\r\n\r\nxxx"

    talk(conversation, [OK] * 20)


def test_small_requests_are_not_delayed(talk: Callable[..., None]) -> None:
    async def conversation(upstream: Upstream, origin: Origin) -> None:
        await fetch(upstream)
        sock = next(iter(upstream.links))._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0

    talk(conversation, [OK, None])


def test_requests_at_the_same_time_take_a_connection_each_and_leave_them_for_later(talk: Callable[..., None]) -> None:
    async def conversation(upstream: Upstream, origin: Origin) -> None:
        for _ in range(3):
            recorders = await asyncio.gather(*(fetch(upstream) for _ in range(4)))
            assert all(recorder.ended for recorder in recorders)
        assert origin.connections == 4

    talk(conversation, [OK] * 9)


@pytest.mark.parametrize(
    ("answer", "status", "framing", "body", "kept"),
    [
        (OK, 200, Framing("length", 2), b"ok", True),
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, Framing("length", 0), b"", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, Framing("none"), b"", True),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", 204, Framing("none"), b"", True),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, Framing("none", 9), b"", True),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: v\r\n\r\n",
            200,
            Framing("chunked"),
            b"abcde",
            True,
        ),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", 200, Framing("close"), b"until the end", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, Framing("length", 2), b"ok", False),
        (
            b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
            200,
            Framing("length", 2),
            b"ok",
            True,
        ),
        (
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
            200,
            Framing("length", 2),
            b"ok",
            False,
        ),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno", 503, Framing("length", 2), b"no", True),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK,
            200,
            Framing("length", 2),
            b"ok",
            True,
        ),
        (OK + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison", 200, Framing("length", 2), b"ok", False),
        (OK + b"\r\n", 200, Framing("length", 2), b"ok", False),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n" + OK,
            200,
            Framing("chunked"),
            b"a",
            False,
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n\r\n",
            200,
            Framing("chunked"),
            b"a",
            False,
        ),
        (b"HTTP/1.1 204 No Content\r\n\r\nbody", 204, Framing("none"), b"", False),
    ],
)
def test_responses_end_where_they_say(
    talk: Callable[..., None], answer: bytes, status: int, framing: Framing, body: bytes, kept: bool
) -> None:
    async def conversation(upstream: Upstream, origin: Origin) -> None:
        recorder = await fetch(upstream)
        assert (recorder.status, recorder.framing, recorder.body) == (status, framing, body)
        assert recorder.ended
        assert recorder.events.count("head") == recorder.events.count("end") == 1
        assert len(upstream._idle) == kept

    talk(conversation, [answer] if framing.kind == "close" else [answer, None])


def test_head_has_a_length_and_no_body(talk: Callable[..., None]) -> None:
    async def conversation(upstream: Upstream, origin: Origin) -> None:
        for length in (b"Content-Length: 1000", b"Transfer-Encoding: chunked"):
            recorder = await fetch(upstream, b"HEAD")
            assert (recorder.status, recorder.body, recorder.ended) == (200, b"", True)
            assert recorder.framing is not None
            assert recorder.framing.kind == "none"
            assert recorder.framing.length == (1000 if length.startswith(b"C") else None)
        assert origin.connections == 1

    answers = [b"HTTP/1.1 200 OK\r\n%b\r\n\r\n" % f for f in (b"Content-Length: 1000", b"Transfer-Encoding: chunked")]
    talk(conversation, [*answers, None])


def test_a_stale_connection_is_replaced_once(talk: Callable[..., None]) -> None:
    async def conversation(upstream: Upstream, origin: Origin) -> None:
        assert (await fetch(upstream)).ended
        again = await fetch(upstream, b"POST", b"/again", b"body")
        assert (again.ended, again.body) == (True, b"ok")
        assert origin.connections == 2
        assert [r.split(b" ")[1] for r in origin.requests] == [b"/", b"/again", b"/again"]

    talk(conversation, [OK, None], [OK, OK])


def test_the_replacement_is_not_replaced(talk: Callable[..., None]) -> None:
    async def conversation(upstream: Upstream, origin: Origin) -> None:
        assert (await fetch(upstream)).ended
        again = await fetch(upstream)
        assert again.failure is not None
        assert (again.failure.kind, again.failure.started) == ("reset", False)
        assert origin.connections == 2

    talk(conversation, [OK, None], [None])


def test_a_new_connection_that_closes_is_not_replaced(talk: Callable[..., None]) -> None:
    async def conversation(upstream: Upstream, origin: Origin) -> None:
        recorder = await fetch(upstream)
        assert recorder.failure is not None
        assert (recorder.failure.kind, recorder.failure.started) == ("reset", False)
        assert origin.connections == 1

    talk(conversation, [None])


@pytest.mark.parametrize(
    "first_bytes", [b"H", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"]
)
def test_nothing_is_sent_again_once_a_byte_has_come(talk: Callable[..., None], first_bytes: bytes) -> None:
    async def conversation(upstream: Upstream, origin: Origin) -> None:
        assert (await fetch(upstream)).ended
        recorder = await fetch(upstream)
        assert recorder.failure is not None
        assert recorder.failure.kind == "reset"
        assert recorder.failure.started == first_bytes.endswith(b"9\r\n\r\n")
        assert origin.connections == 1

    talk(conversation, [OK, first_bytes], [OK])


@pytest.mark.parametrize("cut", [1, 20, 44, 47, 50, 52])
def test_a_response_that_stops_in_the_middle_is_a_reset(talk: Callable[..., None], cut: int) -> None:
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"

    async def conversation(upstream: Upstream, origin: Origin) -> None:
        recorder = await fetch(upstream)
        assert recorder.failure is not None
        assert recorder.failure.kind == "reset"
        assert not recorder.ended

    talk(conversation, [answer[:cut]])


def test_an_unwanted_answer_on_an_idle_connection_closes_it(talk: Callable[..., None]) -> None:
    poison = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"

    async def conversation(upstream: Upstream, origin: Origin) -> None:
        assert (await fetch(upstream)).body == b"ok"
        link = next(iter(upstream.links))
        link.data_received(poison)
        await eventually(lambda: not upstream.links)
        assert (await fetch(upstream)).body == b"ok"
        assert origin.connections == 2

    talk(conversation, [OK, OK])


@pytest.mark.parametrize("run", [on_asyncio, on_uvloop])
def test_an_early_answer_ends_the_use_of_the_connection(run: Callable[..., None]) -> None:
    async def main() -> None:
        async with ScriptedUpstream() as origin:
            origin.enqueue([Early(), *answer(b"no", 413)], answer(b"yes"))
            upstream = Upstream(origin.host, origin.port)
            early = await fetch(upstream, b"POST", b"/", b"x" * 20_000_000)
            assert (early.status, early.body, early.ended) == (413, b"no", True)
            assert len(upstream._idle) == 0
            await eventually(lambda: origin.open_connections == 0)
            assert (await fetch(upstream)).body == b"yes"
            assert origin.connections == 2
            await upstream.close()

    run(main())


def test_a_refused_connection_is_a_connect_failure(talk: Callable[..., None]) -> None:
    async def conversation(upstream: Upstream, origin: Origin) -> None:
        with socket.create_server(("127.0.0.1", 0)) as unused:
            port = unused.getsockname()[1]
        for host in ("127.0.0.1", "does-not-exist.invalid"):
            nowhere = Upstream(host, port)
            recorder = await fetch(nowhere)
            assert recorder.failure is not None
            assert (recorder.failure.kind, recorder.failure.started) == ("connect", False)
            await nowhere.close()

    talk(conversation, [OK])


@pytest.mark.parametrize("phase", ["connecting", "waiting", "streaming"])
def test_an_aborted_transfer_closes_its_connection_and_is_silent(talk: Callable[..., None], phase: str) -> None:
    async def conversation(upstream: Upstream, origin: Origin) -> None:
        recorder = Recorder()
        transfer = upstream.send(b"GET", b"/", [(b"host", b"h")], b"", recorder)
        if phase == "waiting":
            await eventually(lambda: origin.requests)
        if phase == "streaming":
            await eventually(lambda: recorder.body)
        seen = list(recorder.events)
        transfer.abort()
        transfer.abort()
        transfer.pause()
        transfer.resume()
        await eventually(lambda: not upstream.links and not upstream.transfers)
        await eventually(lambda: not origin.tasks)
        assert recorder.events == seen

    started = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345"
    talk(conversation, [b"", None] if phase == "waiting" else [started, None])


@pytest.mark.parametrize("when", ["on_head", "on_data", "on_end", "on_whole"])
def test_a_receiver_may_abort_or_send_from_within_a_call(talk: Callable[..., None], when: str) -> None:
    async def conversation(upstream: Upstream, origin: Origin) -> None:
        second = Recorder()

        class Hasty(Recorder):
            def act(self, now: str) -> None:
                if now == when:
                    transfer.abort()
                    upstream.send(b"GET", b"/second", [(b"host", b"h")], b"", second)

            def on_head(self, *head: object) -> None:
                super().on_head(*head)  # type: ignore[arg-type]
                self.act("on_head")

            def on_data(self, data: bytes, chunks: bytes | None = None) -> None:
                super().on_data(data, chunks)
                self.act("on_data")

            def on_whole(self, head: ResponseHead, framing: Framing, body: bytes) -> None:
                assert when == "on_whole"
                super().on_whole(head, framing, body)
                self.act("on_whole")

            def on_end(self) -> None:
                super().on_end()
                self.act("on_end")

        hasty = Hasty()
        transfer = upstream.send(b"GET", b"/", [(b"host", b"h")], b"", hasty)
        await eventually(lambda: second.ended)
        assert hasty.events == ["head", "data", "end"][: ["on_head", "on_data", "on_end", "on_whole"].index(when) + 1]
        assert second.body == b"ok"

    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    talk(conversation, [OK if when == "on_whole" else chunks, OK])


def test_a_paused_transfer_stops_reading(talk: Callable[..., None]) -> None:
    size = 20_000_000

    async def conversation(upstream: Upstream, origin: Origin) -> None:
        recorder = Recorder()
        transfer = upstream.send(b"GET", b"/", [(b"host", b"h")], b"", recorder)
        await eventually(lambda: recorder.body)
        transfer.pause()
        held = transfer.bytes_received
        await turns()
        assert transfer.bytes_received == held < size
        transfer.resume()
        await eventually(lambda: recorder.ended)
        assert len(recorder.body) == transfer.bytes_received == size
        assert (await fetch(upstream)).ended
        assert origin.connections == 1

    talk(conversation, [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size, OK])


def test_a_transfer_paused_before_its_connection_is_there_reads_nothing(talk: Callable[..., None]) -> None:
    async def conversation(upstream: Upstream, origin: Origin) -> None:
        recorder = Recorder()
        transfer = upstream.send(b"GET", b"/", [(b"host", b"h")], b"", recorder)
        transfer.pause()
        await eventually(lambda: origin.requests)
        await turns()
        assert recorder.events == []
        transfer.resume()
        await eventually(lambda: recorder.ended)

    talk(conversation, [OK])


def test_a_response_head_is_bounded(talk: Callable[..., None]) -> None:
    async def conversation(upstream: Upstream, origin: Origin) -> None:
        for _ in range(3):
            recorder = await fetch(upstream)
            assert recorder.failure is not None
            assert recorder.failure.kind == "protocol"

    start = b"HTTP/1.1 200 OK\r\n"
    talk(
        conversation,
        [start + b"X: " + b"y" * 2000 + b"\r\n\r\n", None],
        [start + b"X: " + b"y" * 2000, None],
        [start + b"X: y\r\n" * 20 + b"\r\n", None],
        limits=ClientLimits(head_bytes=1000, header_lines=10),
    )


@pytest.mark.parametrize(
    ("method", "target", "field"),
    [
        (b"GET", b"/", (b"x", b"a\r\nHost: evil")),
        (b"GET", b"/", (b"x\r\ny", b"a")),
        (b"GET", b"/ HTTP/1.1\r\nX: y\r\n\r\nGET /", (b"x", b"y")),
        (b"GET", b"/ x", (b"x", b"y")),
        (b"GET /x", b"/", (b"x", b"y")),
        (b"GET", b"/\r\n", (b"x", b"y")),
    ],
)
def test_a_request_cannot_be_injected(
    talk: Callable[..., None], method: bytes, target: bytes, field: tuple[bytes, bytes]
) -> None:
    async def conversation(upstream: Upstream, origin: Origin) -> None:
        with pytest.raises(ValueError, match=r"header|space"):
            upstream.send(method, target, [field], b"", Recorder())
        assert not upstream.transfers

    talk(conversation, [OK])


def test_surplus_idle_connections_are_closed(talk: Callable[..., None]) -> None:
    async def conversation(upstream: Upstream, origin: Origin) -> None:
        await asyncio.gather(*(fetch(upstream) for _ in range(5)))
        await eventually(lambda: len(upstream.links) == 2)
        assert len(upstream._idle) == 2

    talk(conversation, [OK, OK], limits=ClientLimits(idle_connections=2))


@pytest.mark.parametrize("run", [on_asyncio, on_uvloop])
def test_tls_is_verified_and_kept_alive(run: Callable[..., None]) -> None:
    authority, stranger = trustme.CA(), trustme.CA()
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("origin.test").configure_cert(served)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    suspicious = ssl.create_default_context()
    stranger.configure_trust(suspicious)
    connections: list[asyncio.StreamWriter] = []

    async def origin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n" + b"s" * 100_000 + b"\r\n"
                )
                writer.write(b"0\r\n\r\n")
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(origin, "127.0.0.1", 0, ssl=served)
        port = server.sockets[0].getsockname()[1]
        upstream = Upstream("127.0.0.1", port, tls=trusting, server_hostname="origin.test")
        for _ in range(5):
            recorder = await fetch(upstream)
            assert (recorder.failure, recorder.body) == (None, b"s" * 100_000)
        assert upstream.opened == len(connections) == 1
        for context, name in ((suspicious, "origin.test"), (trusting, "other.test")):
            refused = Upstream("127.0.0.1", port, tls=context, server_hostname=name)
            failure = (await fetch(refused)).failure
            assert failure is not None
            assert failure.kind == "connect"
            assert "certificate" in failure.detail
            await refused.close()
        await upstream.close()
        server.close()
        await server.wait_closed()

    run(main())


def relay_app(upstream: Upstream) -> Callable[[Exchange], None]:
    """The smallest proxy made of the two halves."""

    def app(exchange: Exchange) -> None:
        class Relay(Recorder):
            def on_head(self, head: ResponseHead, framing: Framing) -> None:
                exchange.start(head.status, [], length=framing.length)

            def on_data(self, data: bytes, chunks: bytes | None = None) -> None:
                exchange.write(data, chunks)

            def on_end(self) -> None:
                exchange.finish()

        def forward(body: bytes) -> None:
            transfer = upstream.send(exchange.method, exchange.target, [(b"host", b"h")], body, Relay())
            exchange.on_gone = transfer.abort
            exchange.on_pause = transfer.pause
            exchange.on_resume = transfer.resume

        exchange.read_body(forward, 10**8)

    return app


@pytest.mark.parametrize("run", [on_asyncio, on_uvloop])
def test_a_proxy_of_both_halves_holds_back_a_fast_upstream_for_a_slow_client(run: Callable[..., None]) -> None:
    written = 0

    def endless(exchange: Exchange) -> None:
        def more() -> None:
            nonlocal written
            paused.clear()
            while not paused and not exchange.closed and written < 50_000_000:
                exchange.write(b"x" * 50_000)
                written += 50_000
            if written >= 50_000_000:
                exchange.finish()

        paused: list[bool] = []
        exchange.on_pause = lambda: paused.append(True)
        exchange.on_resume = more
        exchange.start(200, [])
        more()

    async def main() -> None:
        origin = Server(endless)
        await origin.start("127.0.0.1", 0)
        upstream = Upstream("127.0.0.1", origin.port)
        proxy = Server(relay_app(upstream))
        await proxy.start("127.0.0.1", 0)
        wire = await Wire.open(proxy.port)
        wire.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        await wire.head()
        before = -1
        while before != written:  # until nothing moves any more
            before = written
            await turns()
        assert written < 30_000_000  # what kernel buffers and ours hold; the rest waits at its source
        body = await wire.reader.readexactly(10_000_000)
        assert body.count(b"x") > 9_990_000
        wire.writer.transport.abort()
        await eventually(lambda: not upstream.transfers)
        await proxy.drain(0)
        await upstream.close()
        await origin.drain(0)

    run(main())


@pytest.mark.parametrize("run", [on_asyncio, on_uvloop])
def test_a_thousand_requests_through_both_halves_reuse_few_connections(run: Callable[..., None]) -> None:
    async def client(port: int) -> None:
        wire = await Wire.open(port)
        for number in range(50):
            wire.send(b"POST /%d HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx" % number)
            assert (await wire.response())[2] == b"POST /%d ? x" % number
        await wire.close()

    async def main() -> None:
        origin = Server(echo)
        await origin.start("127.0.0.1", 0)
        upstream = Upstream("127.0.0.1", origin.port)
        proxy = Server(relay_app(upstream))
        await proxy.start("127.0.0.1", 0)
        await asyncio.gather(*(client(proxy.port) for _ in range(20)))
        assert upstream.opened <= 20
        await proxy.drain(1)
        await upstream.close()
        await origin.drain(1)
        assert not upstream.transfers

    run(main())


@pytest.mark.parametrize("run", [on_asyncio, on_uvloop])
def test_a_receiver_that_fails_costs_only_its_own_response(run: Callable[..., None]) -> None:
    """Pieces of several bodies that come in one turn of the loop are taken together."""

    class Failing(Recorder):
        def on_data(self, data: bytes, chunks: bytes | None = None) -> None:
            raise RuntimeError("a defect")

    async def main() -> None:
        told: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, what: told.append(str(what["exception"])))
        streams: list[Exchange] = []

        def start(exchange: Exchange) -> None:
            exchange.start(200, [])
            streams.append(exchange)

        origin = Server(start)
        await origin.start("127.0.0.1", 0)
        upstream = Upstream("127.0.0.1", origin.port)
        receivers = [Recorder(), Failing(), Recorder()]
        for receiver in receivers:
            upstream.send(b"GET", b"/", [(b"host", b"test")], b"", receiver)
        await eventually(lambda: all(receiver.events == ["head"] for receiver in receivers))
        for stream in streams:
            stream.write(b"piece")
        await eventually(lambda: receivers[1].failure is not None)
        for stream in streams:
            stream.finish()
        await eventually(lambda: not upstream.transfers)
        assert told == ["a defect"]
        assert receivers[1].events == ["head", "fail"]
        assert [(one.body, one.ended) for one in (receivers[0], receivers[2])] == [(b"piece", True)] * 2
        await upstream.close()
        await origin.drain(1)

    run(main())
