"""The scripted upstream against plain sockets: a peer that knows no HTTP library but the standard one's."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trustme
from openai import AsyncOpenAI

from fairq.testing.clock import eventually
from fairq.testing.replies import (
    Close,
    Early,
    Gate,
    Hang,
    Pause,
    Reset,
    Script,
    Send,
    UsageShape,
    after,
    answer,
    chunk,
    completion,
    cut,
    head,
    sent_bytes,
    spaced,
    stream,
    usage,
)
from fairq.testing.upstream import ScriptedUpstream

POST = b'POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\n\r\n{"stream":true}'


def scripted(test: Callable[[ScriptedUpstream], Awaitable[None]]) -> Callable[[], None]:
    """Run a coroutine test with a fresh upstream."""

    def run() -> None:
        async def inside() -> None:
            async with ScriptedUpstream() as upstream:
                await test(upstream)

        asyncio.run(inside())

    run.__name__ = test.__name__
    return run


async def exchange(upstream: ScriptedUpstream, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(upstream.host, upstream.port)
    writer.write(request)
    data = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return data


def events(raw: bytes) -> list[dict[str, object]]:
    """The JSON events in a stream made with framing="close"."""
    body = raw.split(b"\r\n\r\n", 1)[1].decode()
    return [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: {")]


@scripted
async def test_a_reset_after_n_bytes_delivers_exactly_n_bytes(upstream: ScriptedUpstream) -> None:
    whole = answer(b"0123456789")
    for count in (0, 1, 20, len(sent_bytes(whole)) - 1):
        upstream.enqueue(after(whole, count, Reset()))
        reader, writer = await asyncio.open_connection(upstream.host, upstream.port)
        writer.write(POST)
        got = await asyncio.wait_for(reader.readexactly(count), 5)
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(), 5)
        writer.close()
        assert got == sent_bytes(whole)[:count]
        assert upstream.requests[-1].sent == count
        assert upstream.requests[-1].ending == "reset"
    assert upstream.active == 0


@scripted
async def test_a_peer_in_the_loop_reads_each_piece_alone(upstream: ScriptedUpstream) -> None:
    script = cut(stream(["é", "漢字"], framing="close"), every=7)
    pieces: list[bytes] = []

    class Peer(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            pieces.append(data)

    upstream.enqueue(script)
    transport, _ = await asyncio.get_running_loop().create_connection(Peer, upstream.host, upstream.port)
    transport.write(POST)
    await eventually(lambda: transport.is_closing(), "end of the response")
    assert pieces == [step.data for step in script if isinstance(step, Send)]
    assert {len(piece) for piece in pieces[:-1]} == {7}


def test_cutting_changes_no_byte_and_keeps_other_steps_in_place() -> None:
    script: Script = [Send(b"abc"), Gate("x"), Send(b"defg"), Send(b"h"), Close()]
    for position in range(10):
        assert sent_bytes(cut(script, position)) == b"abcdefgh"
    assert cut(script, 2, 5) == [Send(b"ab"), Send(b"c"), Gate("x"), Send(b"de"), Send(b"fgh"), Close()]
    assert cut(script) == [Send(b"abc"), Gate("x"), Send(b"defgh"), Close()]
    assert cut([Send(b"abcd")], 2, pause=0.5) == [Send(b"ab"), Pause(0.5), Send(b"cd")]
    assert after(script, 4, Reset()) == [Send(b"abc"), Gate("x"), Send(b"d"), Reset()]


@scripted
async def test_a_gate_holds_the_response_until_it_is_released(upstream: ScriptedUpstream) -> None:
    upstream.enqueue([*answer(b"", headers=[("connection", "close")]), Gate(), Close()], [Gate("second"), Close()])
    first = asyncio.create_task(exchange(upstream, POST))
    await eventually(lambda: upstream.standing_at(1), "first at its gate")
    second = asyncio.create_task(exchange(upstream, POST))
    await upstream.request(2)
    assert not first.done()
    assert upstream.active == 2
    await upstream.release("second")
    assert await second == b""
    assert not first.done()
    await upstream.release(1)
    assert (await first).startswith(b"HTTP/1.1 200 OK\r\n")
    assert (upstream.active, upstream.most_active) == (0, 2)


@scripted
async def test_a_gated_stream_is_handed_out_event_by_event(upstream: ScriptedUpstream) -> None:
    upstream.enqueue(spaced(stream(4, done=False, usage_shape="none"), Gate("event")))
    reader, writer = await asyncio.open_connection(upstream.host, upstream.port)
    writer.write(POST)
    await reader.readuntil(b"\r\n\r\n")
    for number in (1, 2):
        await upstream.release("event")
        assert b"w%d " % number in await reader.readuntil(b"\n\n\r\n")
    await upstream.release("event", times=4)  # two words, the finish reason, the last chunk
    assert (await reader.readuntil(b"0\r\n\r\n")).count(b"data: ") == 3
    writer.close()


@scripted
async def test_the_official_client_reads_the_default_answers(upstream: ScriptedUpstream) -> None:
    async with AsyncOpenAI(base_url=f"{upstream.url}/v1", api_key="k", max_retries=0) as client:
        messages: list[Any] = [{"role": "user", "content": "a"}]
        whole = await client.chat.completions.create(model="m", messages=messages, max_tokens=2)
        assert whole.choices[0].message.content == "w1 w2 "
        parts = await client.completions.create(
            model="m", prompt="a", stream=True, stream_options={"include_usage": True}
        )
        chunks = [part async for part in parts]
    assert "".join(part.choices[0].text for part in chunks if part.choices) == "w1 w2 w3 "
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 3
    assert upstream.requests[0].header("authorization") == "Bearer k"


@scripted
async def test_without_recording_requests_are_only_counted(upstream: ScriptedUpstream) -> None:
    upstream.record = False
    upstream.enqueue([*answer(b"1"), Close()], [*answer(b"2"), Close()])
    for _ in range(2):
        await exchange(upstream, POST)
    assert (upstream.seen, upstream.active, upstream.requests) == (2, 0, [])


@scripted
async def test_a_gate_forgets_responses_whose_peer_left(upstream: ScriptedUpstream) -> None:
    upstream.enqueue([Gate("g")], [Gate("g"), *answer(b"here"), Close()])
    _, writer = await asyncio.open_connection(upstream.host, upstream.port)
    writer.write(POST)
    seen = await upstream.request(1)
    writer.close()
    assert await seen.ended() == "disconnected"
    assert upstream.standing_at("g") == 0
    second = asyncio.create_task(exchange(upstream, POST))
    await upstream.release("g")
    assert (await second).endswith(b"here")
    assert upstream.disconnects == 1


@scripted
async def test_hanging_ends_only_when_the_peer_leaves(upstream: ScriptedUpstream) -> None:
    upstream.enqueue([*stream(10)[:4], Hang()])
    reader, writer = await asyncio.open_connection(upstream.host, upstream.port)
    writer.write(POST)
    got = b""
    while got.count(b"data: ") < 3:
        got += await asyncio.wait_for(reader.read(1000), 5)
    seen = upstream.requests[0]
    assert seen.ending == ""
    writer.close()
    assert await seen.ended() == "disconnected"
    await eventually(lambda: upstream.open_connections == 0, "connection gone")


@scripted
async def test_keep_alive_serves_many_requests_on_one_connection(upstream: ScriptedUpstream) -> None:
    reader, writer = await asyncio.open_connection(upstream.host, upstream.port)
    upstream.enqueue(*[answer(b"%d" % number) for number in range(3)])
    for number in range(2):
        writer.write(POST)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")
        assert await reader.readexactly(1) == b"%d" % number
    assert upstream.connections == 1
    await eventually(lambda: upstream.active == 0, "idle")
    assert upstream.close_idle() == 1
    assert await reader.read() == b""
    writer.close()


@scripted
async def test_pipelined_requests_are_answered_in_order(upstream: ScriptedUpstream) -> None:
    upstream.enqueue([Pause(0.01), *answer(b"A")], [*answer(b"B"), Close()])
    got = await exchange(upstream, POST + POST)
    assert [part[:1] for part in got.split(b"\r\n\r\n")[1:]] == [b"A", b"B"]


@scripted
async def test_an_early_answer_leaves_the_body_unread_and_the_connection_usable(
    upstream: ScriptedUpstream,
) -> None:
    upstream.enqueue([Early(), *answer(b"no", 413)], [*answer(b"next"), Close()])
    reader, writer = await asyncio.open_connection(upstream.host, upstream.port)
    writer.write(POST[:-5])
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 413")
    assert not upstream.requests[0].complete
    writer.write(POST[-5:] + POST)
    assert (await reader.read()).endswith(b"next")
    assert [seen.body for seen in upstream.requests] == [b'{"stream":true}'] * 2
    writer.close()


@scripted
async def test_expect_continue_is_answered_before_the_body(upstream: ScriptedUpstream) -> None:
    reader, writer = await asyncio.open_connection(upstream.host, upstream.port)
    writer.write(b"POST /x HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"{}")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")
    writer.close()


@scripted
async def test_chunked_request_bodies_and_trailers_are_recorded(upstream: ScriptedUpstream) -> None:
    upstream.enqueue([Close()])
    await exchange(
        upstream,
        b"POST /x HTTP/1.1\r\nX-A: 1\r\nx-a: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-T: end\r\n\r\n",
    )
    seen = upstream.requests[0]
    assert seen.body == b"abc0123456789"
    assert seen.trailers == [("X-T", "end")]
    assert seen.headers == [("X-A", "1"), ("x-a", "2"), ("Transfer-Encoding", "chunked")]
    with pytest.raises(ValueError, match="2 times"):
        seen.header("x-a")


@scripted
async def test_what_is_not_http_is_kept_and_reset(upstream: ScriptedUpstream) -> None:
    for rubbish in (b"hello\r\n\r\n", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
        with pytest.raises(ConnectionResetError):
            await exchange(upstream, rubbish)
    assert len(upstream.malformed) == 2


@scripted
async def test_raw_heads_go_out_as_written(upstream: ScriptedUpstream) -> None:
    wrong = head(200, [("Content-Length", "5"), ("Transfer-Encoding", "chunked")], "OK")
    for raw in (wrong, head(101, [("Upgrade", "h2c")], "Switching Protocols"), head(103) + head(204)):
        upstream.enqueue([Send(raw), Close()])
        assert await exchange(upstream, POST) == raw
    assert wrong == b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert chunk(b"0123456789abcdef") == b"10\r\n0123456789abcdef\r\n"
    assert chunk(b"") == b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("shape", "carriers"),
    [
        ("none", []),
        ("separate", [3]),
        ("last", [2]),
        ("content", [1]),
        ("every", [0, 1, 2, 3]),
    ],
)
@pytest.mark.parametrize("chat", [True, False])
def test_usage_shapes(shape: UsageShape, carriers: list[int], chat: bool) -> None:
    sent = events(sent_bytes(stream(["a", "b"], usage_shape=shape, chat=chat, framing="close")))
    assert [number for number, event in enumerate(sent) if "usage" in event] == carriers
    if carriers:
        assert sent[carriers[-1]]["usage"] == usage(5, 2)
    if shape == "every":
        counts = [event["usage"]["completion_tokens"] for event in sent]  # type: ignore[index]
        assert counts == [1, 2, 2, 2]
    if shape in ("separate", "every"):
        assert sent[-1]["choices"] == []
    choices = [event["choices"][0] for event in sent if event["choices"]]  # type: ignore[index]
    assert [choice["finish_reason"] for choice in choices][-1] == "stop"
    said = [choice["delta"].get("content", "") if chat else choice["text"] for choice in choices]
    assert "".join(said) == "ab"


def test_step_i_of_a_stream_is_its_ith_event() -> None:
    script = stream(["a", "b"], newline="\r\n", done=False)
    texts = [step.data for step in script if isinstance(step, Send)]
    assert b'"content":"a"' in texts[1]
    assert b'"content":"b"' in texts[2]
    assert texts[2].endswith(b"\r\n\r\n\r\n")  # the event's blank line, then the chunk's end
    assert b"[DONE]" not in b"".join(texts)
    assert b"[DONE]" in sent_bytes(stream(1))


@scripted
async def test_unscripted_requests_are_answered_like_openai(upstream: ScriptedUpstream) -> None:
    def asking(body: object, path: str = "/v1/chat/completions") -> bytes:
        data = json.dumps(body).encode()
        return b"POST %s HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (path.encode(), len(data), data)

    reader, writer = await asyncio.open_connection(upstream.host, upstream.port)
    writer.write(asking({"max_tokens": 7}))
    await reader.readuntil(b"\r\n\r\n")
    body = b""
    while True:
        body += await asyncio.wait_for(reader.read(1000), 5)
        if body.endswith(b"}}"):
            break
    assert json.loads(body)["usage"]["completion_tokens"] == 7
    assert json.loads(body)["object"] == "chat.completion"
    writer.write(asking({"stream": True, "stream_options": {"include_usage": True}}, "/v1/completions"))
    text = await reader.readuntil(b"0\r\n\r\n")
    assert text.count(b'"usage"') == 1
    assert text.count(b'"text_completion"') == 5
    writer.write(b"GET /health HTTP/1.1\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")
    assert len(upstream.requests) == 2
    assert upstream.routed == {"GET /health": 1}
    writer.close()


@scripted
async def test_a_script_may_depend_on_the_request(upstream: ScriptedUpstream) -> None:
    upstream.enqueue(lambda seen: [*answer(seen.body[::-1]), Close()])
    assert (await exchange(upstream, POST)).endswith(b'}eurt:"maerts"{')


@scripted
async def test_stopped_it_refuses_and_started_it_is_back_on_its_port(upstream: ScriptedUpstream) -> None:
    port = upstream.port
    await upstream.stop()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(upstream.host, port)
    await upstream.start()
    assert upstream.port == port
    upstream.enqueue([*answer(b"back"), Close()])
    assert (await exchange(upstream, POST)).endswith(b"back")


@scripted
async def test_sent_counts_only_what_the_peer_lets_it_send(upstream: ScriptedUpstream) -> None:
    big = 8_000_000
    upstream.enqueue([Send(head(200, [("content-length", str(big))])), Send(bytes(big)), Close()])
    reader, writer = await asyncio.open_connection(upstream.host, upstream.port, limit=1000)
    writer.write(POST)
    seen = await upstream.request(1)
    await eventually(lambda: seen.sent > 0, "head sent")
    assert seen.sent < 200
    assert seen.ending == ""
    await reader.readuntil(b"\r\n\r\n")
    assert len(await reader.readexactly(big)) == big
    assert await seen.ended() == "closed"
    writer.close()


def test_tls_and_reset_over_it() -> None:
    authority = trustme.CA()
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server_side)
    client_side = ssl.create_default_context()
    authority.configure_trust(client_side)

    async def inside() -> None:
        async with ScriptedUpstream(tls=server_side) as upstream:
            assert upstream.url.startswith("https://")
            upstream.enqueue(answer(b"secret"), [Reset()])
            reader, writer = await asyncio.open_connection(
                upstream.host, upstream.port, ssl=client_side, server_hostname="localhost"
            )
            writer.write(POST)
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(6) == b"secret"
            writer.write(POST)
            with pytest.raises(ConnectionResetError):
                await asyncio.wait_for(reader.read(), 5)
            writer.close()

    asyncio.run(inside())


def test_a_completion_adds_up() -> None:
    body = json.loads(sent_bytes(completion(["a", "b"], prompt=9, finish="length")).split(b"\r\n\r\n", 1)[1])
    assert body["choices"][0] == {
        "index": 0,
        "finish_reason": "length",
        "message": {"role": "assistant", "content": "ab"},
    }
    assert body["usage"] == {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    counts = usage(1000, 100, cached=900, reasoning=80)
    assert counts["prompt_tokens_details"] == {"cached_tokens": 900}
    assert counts["completion_tokens_details"] == {"reasoning_tokens": 80}
