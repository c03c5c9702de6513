"""Streams through the gateway (F): bytes, pace, usage and errors, however the pieces fall."""

import asyncio
import json
import shutil
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.gateway.harness import CHAT, World, chat, run, world
from tests.gateway.wire import Reply, Wire, ask, request

from fairq.core.cost import Source, Usage
from fairq.core.lifecycle import Outcome
from fairq.gateway.config import Config
from fairq.testing.clock import turns
from fairq.testing.replies import (
    Gate,
    Hang,
    Reset,
    Script,
    Send,
    UsageShape,
    answer,
    chunk,
    completion,
    cut,
    framed,
    head,
    sent_bytes,
    spaced,
    stream,
)

WORDS = ["Grüße ", "世界", " 🌍🏽", "\r\n", "“ok”"]


def body_of(script: Script) -> bytes:
    """What a chunked script's body is without its framing."""
    _, _, rest = sent_bytes(script).partition(b"\r\n\r\n")
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return body


def streaming(**fields: object) -> bytes:
    return request(CHAT, chat(stream=True, **fields))


# F-1
@run
async def test_a_waiting_stream_is_kept_awake() -> None:
    """Comments with the position while it waits; then the stream itself, whole."""
    async with world("queue: {waiting_comments: 20ms}", slots=1) as w:
        w.upstream.enqueue([Gate("first"), *completion(1)], [Gate("second"), *completion(1)], stream(2))
        first, second = w.later(CHAT, chat()), w.later(CHAT, chat())
        await w.waiting(1)
        async with Wire(w.gateway.server.port) as wire:
            wire.send(streaming())
            reply = await wire.head()
            assert (reply.status, reply.header("content-type")) == (200, "text/event-stream")
            assert (reply.header("cache-control"), reply.header("x-accel-buffering")) == ("no-cache", "no")
            assert await wire.chunk() == b": waiting, position 2\n\n"
            await w.upstream.release("first")
            while (piece := await wire.chunk()) == b": waiting, position 2\n\n":
                pass
            assert piece == b": waiting, position 1\n\n"
            await w.upstream.release("second")
            while (piece := await wire.chunk()) == b": waiting, position 1\n\n":
                pass
            await wire.body(reply)
        assert piece + reply.body == body_of(stream(2, usage_shape="none"))
        await asyncio.gather(first, second)
        await w.idle()


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [
        ([], Outcome.EXPIRED),
        (answer({"error": {}}, 500), Outcome.FAILED_UPSTREAM),
        (answer(b"\0"), Outcome.FAILED_UPSTREAM),
        ([Reset()], Outcome.FAILED_UPSTREAM),
        ([*stream(3)[:2], Reset()], Outcome.FAILED_MIDSTREAM),
    ],
    ids=["expired", "error", "no stream", "reset", "midstream"],
)
@run
async def test_after_a_comment_errors_are_events(ending: Script, outcome: Outcome) -> None:
    """The status is out: whatever goes wrong is the stream's last event, and no [DONE] follows."""
    config = "queue: {waiting_comments: 10ms, time_to_live: " + ("100ms}" if outcome is Outcome.EXPIRED else "60s}")
    async with world(config, slots=1) as w:
        w.upstream.enqueue([Gate("go"), *completion(1)])
        first = w.later(CHAT, chat())
        await w.running(1)
        w.upstream.default = ending
        async with Wire(w.gateway.server.port) as wire:
            wire.send(request(CHAT, chat(stream=True), x_request_id="it"))
            reply = await wire.head()
            assert await wire.chunk() == b": waiting, position 1\n\n"
            if ending:
                await w.upstream.release("go")
            await wire.body(reply)
        if not ending:
            await w.upstream.release("go")
        await first
        await w.idle()
        assert (reply.status, reply.whole, w.outcome("it")) == (200, True, outcome)
        *_, last, empty = reply.body.split(b"\n\n")
        error = json.loads(last.removeprefix(b"data: "))["error"]
        assert (error["code"], error.keys()) == (outcome.value, {"message", "type", "param", "code"})
        assert (empty, b"[DONE]" in reply.body) == (b"", False)


@run
async def test_only_comments_went_out_so_another_upstream_may_try() -> None:
    async with world("queue: {waiting_comments: 10ms}", upstreams=2, slots=1) as w:
        for upstream in w.upstreams:
            upstream.enqueue([Gate("go"), *completion(1)])
        running = [w.later(CHAT, chat()) for _ in range(2)]
        await w.running(2)
        w.upstreams[0].default = answer({}, 503)
        w.upstreams[1].default = stream(2)
        async with Wire(w.gateway.server.port) as wire:
            wire.send(streaming())
            reply = await wire.head()
            assert (await wire.chunk()).startswith(b": waiting")
            await w.upstreams[0].release("go")
            await w.upstreams[1].release("go")
            await wire.body(reply)
        assert reply.body.endswith(body_of(stream(2, usage_shape="none")))
        await asyncio.gather(*running)
        await w.idle()
        assert w.ended[-1].attempts == 2


@run
async def test_no_comments_for_a_request_that_does_not_stream() -> None:
    """While one that streams gets several."""
    async with world("queue: {waiting_comments: 5ms}", slots=1) as w:
        w.upstream.enqueue([Gate("go"), *completion(1)])
        w.upstream.default = answer({"error": {}}, 418)
        first = w.later(CHAT, chat())
        await w.running(1)
        async with Wire(w.gateway.server.port) as whole, Wire(w.gateway.server.port) as streams:
            whole.send(request(CHAT, chat()))
            await w.waiting(1)
            streams.send(streaming())
            await streams.head()
            for _ in range(4):
                assert (await streams.chunk()).startswith(b": waiting")
            await w.upstream.release("go")
            reply = await whole.reply()  # a comment before it would have fixed its status at 200
            assert (reply.status, reply.json) == (418, {"error": {}})
        await first
        await w.idle()


def test_comments_are_off_unless_they_are_switched_on() -> None:
    assert Config().queue.waiting_comments == 0


# F-2
async def events_one_by_one(w: World, wire: Wire) -> Reply:
    """Each event arrives before the upstream sends the next: nothing on the way holds one back."""
    wire.send(streaming(stream_options={"include_usage": True}))
    reply = await wire.head()
    for number in range(5):
        await w.upstream.release("more")
        reply.body += await wire.chunk()
        assert reply.body.count(b"\n\n") == number + 1
    await w.upstream.release("more", len(stream(5)) - 1 - 5)
    return await wire.body(reply)


@run
async def test_each_chunk_is_passed_on_when_it_comes() -> None:
    async with world() as w:
        w.upstream.enqueue(spaced(stream(5), Gate("more")))
        async with Wire(w.gateway.server.port) as wire:
            reply = await events_one_by_one(w, wire)
        assert reply.body == body_of(stream(5))
        assert reply.header("content-type") == "text/event-stream"
        assert (reply.header("cache-control"), reply.header("x-accel-buffering")) == ("no-cache", "no")
        await w.idle()


@asynccontextmanager
async def nginx(folder: Path, upstream_port: int) -> AsyncIterator[int]:
    """nginx as people install it, buffering on, before a port. Yields its own port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "nginx.conf").write_text(
        f"""
        daemon off; master_process off; pid {folder}/pid; error_log stderr;
        events {{}}
        http {{
          access_log off;
          client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
          uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
          server {{ listen 127.0.0.1:{port};
            location / {{ proxy_pass http://127.0.0.1:{upstream_port}; proxy_http_version 1.1; }} }}
        }}"""
    )
    process = await asyncio.create_subprocess_exec(
        shutil.which("nginx") or "nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), stderr=-3
    )
    try:
        for _ in range(500):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            await asyncio.sleep(0.01)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
@run
async def test_a_buffering_proxy_in_front_does_not_hold_events_back(tmp_path: Path) -> None:
    """nginx with its defaults buffers responses; X-Accel-Buffering tells it not to."""
    async with world() as w, nginx(tmp_path, w.gateway.server.port) as port:
        w.upstream.enqueue(spaced(stream(5), Gate("more")))
        async with Wire(port) as wire:
            reply = await events_one_by_one(w, wire)
        assert reply.body == body_of(stream(5))
        await w.idle()


# F-3, F-5
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("asks", [True, False])
@run
async def test_a_stream_cut_at_every_byte(newline: str, asks: bool) -> None:
    """Emoji, CJK, CR LF, the usage line: wherever a read ends, the client's bytes and the charge are the same."""
    async with world() as w, Wire(w.gateway.server.port) as wire:
        script = stream(WORDS, prompt=11, newline=newline)
        whole = body_of(script if asks else stream(WORDS, newline=newline, usage_shape="none"))
        cuts = range(1 + asks + 2 * (newline == "\n"), len(sent_bytes(script)), 4)
        for position in cuts:
            w.upstream.enqueue(cut(script, position))
            reply = await wire.ask(streaming(**({"stream_options": {"include_usage": True}} if asks else {})))
            assert (position, reply.body) == (position, whole)
        await w.idle()
        assert {record.usage for record in w.ended} == {Usage(11, len(WORDS), 0, Source.UPSTREAM)}
        assert {(record.outcome, record.finish) for record in w.ended} == {(Outcome.COMPLETED, "stop")}
        assert len(w.ended) == len(cuts)


@run
async def test_a_stream_byte_by_byte() -> None:
    async with world() as w:
        w.upstream.enqueue(cut(stream(WORDS), every=1))
        reply = await ask(w.gateway.server.port, streaming())
        assert reply.body == body_of(stream(WORDS, usage_shape="none"))
        await w.idle()
        assert w.ended[0].usage == Usage(5, len(WORDS), 0, Source.UPSTREAM)


# F-6
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}'
LAST = (
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":3,"completion_tokens":1}}'
)
TWO_LINES = LAST.replace(b'"usage"', b'\ndata: "usage"')
ODD = {
    "CR LF": [EVENT + b"\r\n\r\n", LAST + b"\r\n\r\n", b"data: [DONE]\r\n\r\n"],
    "CR": [EVENT + b"\r\r", LAST + b"\r\r", b"data: [DONE]\r\r"],
    "comments": [b": hello\n\n", EVENT + b"\n\n", b":\n" + LAST + b"\n\n", b"data: [DONE]\n\n"],
    "other fields": [b"id: 1\nevent: delta\nretry: 5\n" + EVENT + b"\n\n", LAST + b"\n\n", b"data: [DONE]\n\n"],
    "several data lines": [EVENT + b"\n\n", TWO_LINES + b"\n\n", b"data: [DONE]\n\n"],
    "no space after the colon": [EVENT.replace(b": {", b":{") + b"\n\n", LAST.replace(b": {", b":{") + b"\n\n"],
    "no last blank line": [EVENT + b"\n\n", LAST + b"\n\n", b"data: [DONE]"],
    "no last blank line after usage": [EVENT + b"\n\n", LAST],
    "no DONE": [EVENT + b"\n\n", LAST + b"\n\n"],
    "bytes after DONE": [EVENT + b"\n\n", LAST + b"\n\n", b"data: [DONE]\n\n", b"data: {}\n\n", b"\n\n\n"],
    "a byte order mark": [b"\xef\xbb\xbf" + EVENT + b"\n\n", LAST + b"\n\n"],
}


@pytest.mark.parametrize("pieces", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("framing", ["chunked", "close", "length"])
@run
async def test_odd_streams_pass_unchanged_and_end_once(pieces: list[bytes], framing: str) -> None:
    async with world() as w:
        w.upstream.enqueue(framed(pieces, "text/event-stream; charset=utf-8", framing=framing))  # type: ignore[arg-type]
        reply = await ask(w.gateway.server.port, streaming())
        assert (reply.status, reply.body) == (200, b"".join(pieces))
        await w.idle()
        [record] = w.ended
        assert (record.outcome, record.finish) == (Outcome.COMPLETED, "stop")
        assert record.usage == Usage(3, 1, 0, Source.UPSTREAM)


# F-8
@pytest.mark.parametrize("shape", ["none", "separate", "last", "content", "every"])
@pytest.mark.parametrize("asks", [True, False])
@run
async def test_usage_is_asked_for_and_taken_out_again(shape: UsageShape, asks: bool) -> None:
    """Whatever the engine's way of reporting: only an event that is there for usage alone goes, and only if the client
    did not ask for it; the client's other stream options arrive."""
    async with world() as w:
        script = stream(4, prompt=9, usage_shape=shape)
        w.upstream.enqueue(script)
        options = {"continuous_usage_stats": True} | ({"include_usage": True} if asks else {})
        reply = await ask(w.gateway.server.port, streaming(stream_options=options))
        seen = await w.upstream.request(1)
        assert seen.json["stream_options"] == {"continuous_usage_stats": True, "include_usage": True}
        events = body_of(script).split(b"\n\n")
        kept = [event for event in events if asks or b'"choices":[]' not in event]
        assert reply.body == b"\n\n".join(kept)
        await w.idle()
        [record] = w.ended
        source = Source.COUNTED if shape == "none" else Source.UPSTREAM
        assert (record.usage.completion, record.usage.source) == (4, source)


@run
async def test_a_request_that_does_not_stream_is_not_asked_for_usage() -> None:
    async with world() as w:
        await w.post(CHAT, chat())
        await w.post("/v1/embeddings", {"model": "m", "input": "x"})
        assert "stream_options" not in (await w.upstream.request(1)).json
        assert "stream_options" not in (await w.upstream.request(2)).json
        await w.idle()


# Breaking off
@run
async def test_an_event_that_broke_in_its_middle_does_not_swallow_the_error() -> None:
    """The half event is ended first, so that a parser sees the error as an event of its own."""
    async with world() as w:
        half = EVENT[:30]
        w.upstream.enqueue([*framed([EVENT + b"\n\n", half], "text/event-stream")[:-1], Reset()])
        reply = await ask(w.gateway.server.port, streaming())
        first, second, last, empty = reply.body.split(b"\n\n")
        assert (first, second, empty) == (EVENT, half, b"")
        assert json.loads(last.removeprefix(b"data: "))["error"]["code"] == "failed-midstream"
        await w.idle()


@run
async def test_a_stream_of_announced_length_that_breaks_off_ends_with_an_error_too() -> None:
    """What its upstream had announced does not keep the error event out."""
    async with world() as w:
        pieces = [EVENT + b"\n\n", LAST + b"\n\n"]
        w.upstream.enqueue([*framed(pieces, "text/event-stream", framing="length")[:2], Reset()])
        reply = await ask(w.gateway.server.port, streaming(stream_options={"include_usage": True}))
        first, last, empty = reply.body.split(b"\n\n")
        assert (first, empty, reply.whole) == (EVENT, b"", True)
        assert json.loads(last.removeprefix(b"data: "))["error"]["code"] == "failed-midstream"
        await w.idle()


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/1.0"])
@run
async def test_a_body_that_is_no_stream_is_cut_where_it_broke(version: str) -> None:
    """It must not be taken for whole: no end of chunks, fewer bytes than announced."""
    async with world() as w:
        for script in (
            [*framed([b'{"a":', b"1}"], "application/json", framing="length")[:2], Reset()],
            [*framed([b'{"a":', b"1}"], "application/json")[:2], Reset()],
        ):
            w.upstream.enqueue(script)
            reply = await ask(w.gateway.server.port, request(CHAT, chat(), version=version))
            assert reply.body in (b"", b'{"a":')
            assert not reply.whole or version == "HTTP/1.0"
        await w.idle()
        assert {record.outcome for record in w.ended} == {Outcome.FAILED_MIDSTREAM}


@run
async def test_an_error_that_an_engine_reports_inside_a_stream() -> None:
    """vLLM and SGLang send an error event and end the stream in good order; it passes, and is no completion."""
    async with world() as w:
        error = b'data: {"error": {"message": "out of memory", "type": "server_error"}}\n\n'
        w.upstream.enqueue(framed([EVENT + b"\n\n", error, b"data: [DONE]\n\n"], "text/event-stream"))
        reply = await ask(w.gateway.server.port, streaming())
        assert reply.body == EVENT + b"\n\n" + error + b"data: [DONE]\n\n"
        await w.idle()
        assert w.ended[0].outcome is Outcome.FAILED_MIDSTREAM


@run
async def test_a_client_of_the_last_century() -> None:
    """HTTP/1.0 knows no chunks: the stream ends with the connection."""
    async with world() as w:
        w.upstream.enqueue(stream(3))
        reply = await ask(w.gateway.server.port, request(CHAT, chat(stream=True), version="HTTP/1.0"))
        assert reply.header("transfer-encoding") is None
        assert reply.body == body_of(stream(3, usage_shape="none"))
        await w.idle()


@run
async def test_a_slow_reader_holds_the_upstream_back() -> None:
    """Backpressure: what nobody reads is not read from the upstream either."""
    async with world() as w:
        script = framed([b"data: " + b"x" * 65_000 + b"\n\n"] * 1000, "text/event-stream")
        w.upstream.enqueue(script)
        async with Wire(w.gateway.server.port) as wire:
            wire.send(streaming())
            await wire.head()
            wire.stop_reading()
            seen = await w.upstream.request(1)
            sent = -1
            while sent != seen.sent:
                sent = seen.sent
                await turns(1000)
            assert sent < len(sent_bytes(script)) // 2
            wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
            while seen.sent < sent + 1_000_000:
                await wire.chunk()
        await w.idle()


@run
async def test_an_upstream_that_falls_silent_in_the_middle() -> None:
    async with world("timeouts: {idle: 100ms}") as w:
        w.upstream.enqueue([*stream(9)[:3], Hang()])
        reply = await ask(w.gateway.server.port, streaming())
        assert b'"failed-midstream"' in reply.body
        await w.idle()
        assert (w.ended[0].outcome, w.ended[0].usage.completion) == (Outcome.FAILED_MIDSTREAM, 2)


@run
async def test_chunk_extensions_and_trailers_of_an_upstream_stay_there() -> None:
    async with world() as w:
        fields = [("content-type", "text/event-stream"), ("transfer-encoding", "chunked"), ("trailer", "x-cost")]
        data = EVENT + b"\n\n"
        extended = chunk(data).replace(b"\r\n", b";a=1\r\n", 1)
        w.upstream.enqueue([Send(head(200, fields) + extended), Send(b"0\r\nx-cost: 5\r\n\r\n")])
        async with Wire(w.gateway.server.port) as wire:
            wire.send(streaming())
            reply = await wire.head()
            assert reply.header("trailer") is None
            assert await wire.reader.readexactly(len(chunk(data)) + 5) == chunk(data) + b"0\r\n\r\n"
        await w.idle()
