"""What a replay sends, when, and what it makes of the answers; against a server that does as told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from fairq.core.cost import Source, Usage
from fairq.gateway.http1 import Framing, ResponseHead
from fairq.load.call import Call, Result
from fairq.load.plan import Identity
from fairq.load.session import Session, Settings
from fairq.load.target import Unreachable
from fairq.testing.clock import eventually, turns
from fairq.testing.connection import Received
from fairq.testing.replies import Close, Gate, Hang, Reset, Send, answer, stream
from fairq.testing.upstream import ScriptedUpstream

Test = Callable[[ScriptedUpstream, Path], Awaitable[None]]


def scripted(test: Test) -> Callable[[Path], None]:
    """Run a coroutine test with a fresh upstream."""

    def run(tmp_path: Path) -> None:
        async def inside() -> None:
            async with ScriptedUpstream() as upstream:
                await test(upstream, tmp_path)

        asyncio.run(inside())

    run.__name__ = test.__name__
    return run


def trace(folder: Path, *rows: tuple[float, str, int, int]) -> Path:
    path = folder / "mine.csv"
    lines = [",".join(map(str, row)) for row in (("arrival_s", "client", "input_tokens", "output_tokens"), *rows)]
    path.write_text("\n".join(lines))
    return path


def together(folder: Path, count: int) -> Path:
    return trace(folder, *[(0, "a", 1, 1)] * count)


async def played(path: Path, upstream: ScriptedUpstream, **settings: Any) -> list[Result]:
    session = Session(Settings(trace=path, target=upstream.url, **settings))
    await session.run()
    return sorted(session.results, key=lambda result: result.place)


@scripted
async def test_each_request_has_its_tenants_key_and_its_recorded_lengths(
    upstream: ScriptedUpstream, folder: Path
) -> None:
    path = trace(folder, (5, "ann", 7, 3), (5, "bob", 1000, 2), (5.01, "ann", 0, 0))
    identity = Identity(keys={"ann": "k-ann"}, key="k-rest", header="x-fairq-tenant")
    results = await played(path, upstream, identity=identity, speed=10)
    assert [result.outcome for result in results] == ["completed"] * 3
    seen = {request.header("x-fairq-tenant"): [] for request in upstream.requests}
    for request in upstream.requests:
        seen[request.header("x-fairq-tenant")].append(request)
    assert {request.header("authorization") for request in seen["ann"]} == {"Bearer k-ann"}
    assert {request.header("authorization") for request in seen["bob"]} == {"Bearer k-rest"}

    def lengths(request: Received) -> tuple[int, int]:
        return len(request.json["messages"][0]["content"].split()), request.json["max_tokens"]

    assert sorted(map(lengths, seen["ann"])) == [(1, 1), (7, 3)]  # nothing can be asked in no words
    assert list(map(lengths, seen["bob"])) == [(1000, 2)]
    for request in upstream.requests:
        assert request.header("host") == f"127.0.0.1:{upstream.port}"  # and only once
        assert request.json["model"] == "scripted"
        assert request.json["ignore_eos"] is True
        assert request.json["stream_options"] == {"include_usage": True}


@scripted
async def test_prompts_differ_but_for_recorded_prefixes(upstream: ScriptedUpstream, folder: Path) -> None:
    path = folder / "mine.csv"
    path.write_text("arrival_s,input_tokens,output_tokens,blocks_4\n0,10,1,1 2 3\n0,10,1,1 2 4\n0,10,1,9 8 7\n")
    await played(path, upstream, api="completions", stream=False, ignore_eos=False)
    prompts = sorted((request.json["prompt"].split() for request in upstream.requests), key=str)
    assert {request.target for request in upstream.requests} == {"/v1/completions"}
    assert not any({"stream", "ignore_eos"} & set(request.json) for request in upstream.requests)
    assert [len(prompt) for prompt in prompts] == [10, 10, 10]
    shared = [[one[:8] == other[:8] and one != other for other in prompts] for one in prompts]
    assert sum(map(sum, shared)) == 2  # the first and the second begin with blocks 1 and 2
    again = Path(folder / "again")
    again.mkdir()
    await played(trace(again, *[(0, "a", 50, 1)] * 2), upstream)
    one, other = (request.json["messages"][0]["content"] for request in upstream.requests[-2:])
    assert one.split()[:5] != other.split()[:5]


@scripted
async def test_a_server_that_never_answers_does_not_slow_its_load(upstream: ScriptedUpstream, folder: Path) -> None:
    upstream.default = [Hang()]
    session = Session(Settings(trace=together(folder, 30), target=upstream.url))
    run = asyncio.create_task(session.run())
    await eventually(lambda: upstream.active == 30, "all sent while none is answered")
    assert session.results == []
    session.stop()
    await run
    assert sorted(result.place for result in session.results) == list(range(30))
    assert {result.outcome for result in session.results} == {"interrupted"}
    assert session.report().interrupted
    await eventually(lambda: upstream.active == 0, "every request given up")


@scripted
async def test_under_a_concurrency_cap_the_others_are_sent_late(upstream: ScriptedUpstream, folder: Path) -> None:
    upstream.default = lambda seen: [Gate("g"), *stream(1)]
    run = asyncio.create_task(played(together(folder, 5), upstream, max_concurrency=2))
    await eventually(lambda: upstream.standing_at("g") == 2)
    released = time.perf_counter_ns()
    await upstream.release("g", times=5)
    results = await run
    assert upstream.most_active == 2
    assert [result.sent > released for result in results] == [False, False, True, True, True]
    start = results[0].sent
    assert all(result.late >= released - start for result in results[2:])  # all five were due at once


@scripted
async def test_arrivals_keep_their_order_and_their_gaps_divided_by_the_speed(
    upstream: ScriptedUpstream, folder: Path
) -> None:
    path = trace(folder, (100, "a", 1, 1), (101, "b", 1, 1), (103, "c", 1, 1))
    session = Session(Settings(trace=path, target=upstream.url, speed=20))
    assert [planned.at for planned in session.plan] == [0, 0.05, 0.15]
    await session.run()
    results = sorted(session.results, key=lambda result: result.place)
    for result, at in zip(results, (0, 0.05, 0.15), strict=True):
        assert result.sent - results[0].sent + results[0].late >= at * 1e9
    assert [result.tenant for result in results] == ["a", "b", "c"]


@scripted
async def test_nothing_is_sent_after_the_duration(upstream: ScriptedUpstream, folder: Path) -> None:
    path = trace(folder, (0, "a", 1, 1), (0.01, "a", 1, 1), (3600, "a", 1, 1))
    assert len(await played(path, upstream, duration=1)) == 2


@scripted
async def test_every_way_to_end_has_its_word(upstream: ScriptedUpstream, folder: Path) -> None:
    refusal = {"error": {"message": "too many waiting", "type": "rate_limit_error"}}
    failure = b'data: {"error": {"message": "engine died"}}\n\n'
    upstream.enqueue(
        answer(refusal, 429, [("x-fairq-outcome", "expired"), ("x-fairq-queue-ms", "1500")]),
        answer(refusal, 503),
        [*stream(4)[:3], Reset()],
        [*stream(4, framing="close")[:3], Send(failure), Close()],
        [*stream(4, framing="close")[:3], Close()],
        [Reset()],
        stream(4, headers=[("x-fairq-queue-ms", "20")]),
        [Send(b"nonsense\r\n\r\n")],
    )
    results = await played(together(folder, 8), upstream, max_concurrency=1)
    assert [result.outcome for result in results] == [
        "expired",
        "http-503",
        "failed-midstream",
        "failed-midstream",
        "failed-midstream",
        "failed-upstream",
        "completed",
        "failed-upstream",
    ]
    assert [result.wait for result in results[:2]] == [1_500_000_000, None]
    assert results[0].detail == "too many waiting"
    assert results[3].detail == "engine died"
    assert results[6].wait == 20_000_000
    assert results[6].usage == Usage(5, 4, 0, Source.UPSTREAM)
    assert results[2].usage.source == Source.COUNTED
    for result in results:
        assert result.sent <= (result.first or result.sent) <= (result.last or result.end) <= result.end


def test_first_and_last_piece_frame_the_answer_and_comments_are_none() -> None:
    found: list[Result] = []
    call = Call(0, "a", 0, lambda _, result: found.append(result))
    framing = Framing("chunked")
    fields = [(b"content-type", b"text/event-stream")]
    call.on_head(ResponseHead(b"", b"POST", 200, b"OK", fields, framing, True), framing)
    call.on_data(b": waiting, position 3\n\n")
    commented = time.perf_counter_ns()
    call.on_data(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n')
    between = time.perf_counter_ns()
    call.on_data(b"data: [DONE]\n\n")
    call.on_end()
    [result] = found
    assert result.outcome == "completed"
    assert result.first is not None
    assert result.last is not None
    assert commented <= result.first <= between <= result.last <= result.end


@scripted
async def test_answers_in_one_piece_have_usage_but_no_first_token(upstream: ScriptedUpstream, folder: Path) -> None:
    (result,) = await played(trace(folder, (0, "a", 2, 9)), upstream, stream=False)
    assert result.outcome == "completed"
    assert result.usage.completion == 9
    assert (result.first, result.last) == (None, None)


@scripted
async def test_a_target_that_was_started_a_moment_ago_is_waited_for(upstream: ScriptedUpstream, folder: Path) -> None:
    await upstream.stop()
    run = asyncio.create_task(played(together(folder, 1), upstream))
    await turns()  # it has asked, in vain
    await upstream.start()
    assert [result.outcome for result in await run] == ["completed"]


@scripted
async def test_a_target_that_is_not_there_or_wants_a_key_is_found_out_before_the_run(
    upstream: ScriptedUpstream, folder: Path
) -> None:
    path = together(folder, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairq.load.target.STARTING", 0.1)
        with pytest.raises(Unreachable, match=r"--target = 'http://127.0.0.1:1': does not answer: .*[Cc]onnect"):
            await Session(Settings(trace=path, target="http://127.0.0.1:1")).run()
    upstream.routes["GET /v1/models"] = answer({"error": {"message": "no key"}}, 401)
    with pytest.raises(Unreachable, match="GET /v1/models has status 401: give --key or --keys"):
        await played(path, upstream)
    upstream.routes["GET /v1/models"] = answer({"message": "what?"}, 404)
    with pytest.raises(Unreachable, match=r"status 404\) lists no models: give --model"):
        await played(path, upstream)
    assert upstream.requests == []
    await played(path, upstream, model="mine")
    upstream.routes["GET /v1/models"] = answer({"data": []})
    await played(path, upstream)
    assert [request.json["model"] for request in upstream.requests] == ["mine"] * 3 + ["default"] * 3


@scripted
async def test_a_target_or_a_console_that_takes_the_question_and_never_answers_is_unreachable(
    upstream: ScriptedUpstream, folder: Path
) -> None:
    path = together(folder, 3)
    upstream.routes["GET /v1/models"] = upstream.routes["GET /api/state?tenants=1000"] = [Hang()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairq.load.target.PATIENCE", 0.1)
        with pytest.raises(Unreachable, match=r"--target = .*: no answer to GET /v1/models within 0.1 s"):
            await played(path, upstream)
        with pytest.raises(Unreachable, match=r"--console = .*: no answer to GET /api/state.* within 0.1 s"):
            await played(path, upstream, console=upstream.url)
    assert upstream.requests == []
