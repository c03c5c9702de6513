"""Once a comment went out the status is 200: what the upstream then answers still reaches the client, in the stream."""

import json

import pytest
from tests.gateway.harness import CHAT, World, chat, run, world
from tests.gateway.wire import Reply, Wire, request

from fairq.core.cost import Source, Usage
from fairq.core.lifecycle import Outcome
from fairq.testing.replies import Framing, Gate, Reset, Script, Send, answer, completion, framed, head

COMMENTS = "queue: {waiting_comments: 10ms}"


async def after_a_comment(w: World, script: Script) -> Reply:
    """The reply to a streaming request that got a comment before the upstream answered; its body is what followed."""
    w.upstream.enqueue([Gate("go"), *completion(1)], script)
    first = w.later(CHAT, chat())
    await w.running(1)
    async with Wire(w.gateway.server.port) as wire:
        wire.send(request(CHAT, chat(stream=True), x_request_id="it"))
        reply = await wire.head()
        assert await wire.chunk() == b": waiting, position 1\n\n"
        await w.upstream.release("go")
        await wire.body(reply)
    await first
    await w.idle()
    reply.body = reply.body.rpartition(b": waiting, position 1\n\n")[2]
    return reply


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "too many tokens: 9 > 8", "type": "x"}}, ": too many tokens: 9 > 8"),
        ({"object": "error", "message": "of older vLLM"}, ": of older vLLM"),
        ({"detail": "Not Found"}, ': {"detail": "Not Found"}'),
        (b" no JSON at all \n", ": no JSON at all"),
        (b"", ""),
        ({"error": "e" * 100_000}, ": " + "e" * 500),
        (b"b" * 2_000_000, ": " + "b" * 500),
    ],
    ids=["envelope", "without one", "another shape", "text", "nothing", "long", "huge"],
)
@run
async def test_an_upstreams_own_error_reaches_the_client(body: object, message: str) -> None:
    for framing in ("length", "chunked"):
        async with world(COMMENTS, slots=1) as w:
            reply = await after_a_comment(w, answer(body, 400, framing=framing))
            assert reply.whole
            error = json.loads(reply.body.removeprefix(b"data: ").removesuffix(b"\n\n"))["error"]
            assert error["message"] == f"the upstream answered 400{message}"
            assert (error["code"], w.outcome("it")) == ("failed-upstream", Outcome.FAILED_UPSTREAM)
            assert next(each for each in w.ended if each.id == "it").usage == Usage()


@pytest.mark.parametrize("framing", ["length", "chunked"])
@run
async def test_an_answer_that_is_no_stream_is_one_event(framing: Framing) -> None:
    """It was paid for. Line ends within it would end the event's line, and are mere space in JSON."""
    told = {"choices": [{"index": 0, "message": {"content": "a\nb"}}]}
    body = json.dumps(told | {"usage": {"prompt_tokens": 4, "completion_tokens": 6}}, indent=1).encode()
    script = framed([body[:20], body[20:]], "application/json; charset=utf-8", framing=framing)
    async with world(COMMENTS, slots=1) as w:
        reply = await after_a_comment(w, script)
        event, done, empty = reply.body.split(b"\n\n")
        assert (done, empty, reply.whole) == (b"data: [DONE]", b"", True)
        assert b"\n" not in event
        assert json.loads(event.removeprefix(b"data: ")) == json.loads(body)
        ended = next(each for each in w.ended if each.id == "it")
        assert (ended.outcome, ended.usage) == (Outcome.COMPLETED, Usage(4, 6, 0, Source.UPSTREAM))


@run
async def test_an_answer_that_breaks_off_in_its_one_event_ends_with_an_error_of_its_own() -> None:
    script = [Send(head(200, [("content-type", "application/json"), ("content-length", "100")]) + b'{"id":'), Reset()]
    async with world(COMMENTS, slots=1) as w:
        reply = await after_a_comment(w, script)
        broken, error, empty = reply.body.split(b"\n\n")
        assert (broken, empty, w.outcome("it")) == (b'data: {"id":', b"", Outcome.FAILED_MIDSTREAM)
        assert json.loads(error.removeprefix(b"data: "))["error"]["code"] == "failed-midstream"


@run
async def test_who_waits_no_more_gets_no_comment() -> None:
    """A comment that falls due when it is decided already that the request leaves the queue."""
    async with world("queue: {waiting_comments: 10s}", slots=1) as w:
        w.upstream.enqueue([Gate("go"), *completion(1)])
        first = w.later(CHAT, chat())
        await w.running(1)
        second = w.later(CHAT, chat(stream=True), x_request_id="it")
        await w.waiting(1)
        dispatcher = w.gateway.first_pool.dispatcher
        call = dispatcher.calls["it"]
        dispatcher.evict("it")
        call._comment()  # type: ignore[attr-defined]
        reply = await second
        assert (reply.status_code, reply.headers["x-fairq-outcome"]) == (429, "refused-queue-full")
        await w.upstream.release("go")
        await first
        await w.idle()
