"""The simulated server as its users see it: through the official client, and over plain HTTP."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI
from prometheus_client.parser import text_string_to_metric_families

from fairq.engines.server import SimulatedServer
from fairq.engines.settings import EngineSettings
from fairq.testing.clock import eventually

MESSAGES: list[Any] = [{"role": "user", "content": "Whose work runs next?"}]
FAST = EngineSettings(speed=5_000)
SLOW = EngineSettings(speed=1, max_sequences=2)  # 28 ms a token: a test leaves long before the end

Test = Callable[[SimulatedServer, AsyncOpenAI], Awaitable[None]]


def serving(settings: EngineSettings) -> Callable[[Test], Callable[[], None]]:
    def decorate(test: Test) -> Callable[[], None]:
        async def inside() -> None:
            server = SimulatedServer(settings)
            await server.start()
            try:
                async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
                    await test(server, client)
                await eventually(lambda: not server.engine.running, "engine empty")
                assert server.engine.kv_usage == 0
            finally:
                await server.stop()

        def run() -> None:
            asyncio.run(inside())

        run.__name__ = test.__name__
        return run

    return decorate


async def metric(server: SimulatedServer, name: str, **labels: str) -> float:
    """The sum of a metric's samples that have these labels."""
    async with httpx.AsyncClient() as http:
        text = (await http.get(f"{server.url}/metrics")).text
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    matching = [each.value for each in samples if each.name == name and labels.items() <= each.labels.items()]
    assert matching, f"no sample {name} {labels}"
    return sum(matching)


@serving(FAST)
async def test_streamed_and_whole_answers_say_the_same(server: SimulatedServer, client: AsyncOpenAI) -> None:
    whole = await client.chat.completions.create(model="simulated", messages=MESSAGES, max_tokens=20)
    stream = await client.chat.completions.create(
        model="simulated", messages=MESSAGES, max_tokens=20, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    said = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert len(said) == 20
    assert "".join(said) == whole.choices[0].message.content
    assert whole.choices[0].finish_reason == "length"
    assert [c.choices[0].finish_reason for c in chunks if c.choices] == [None] * 20 + ["length"]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert whole.usage is not None
    # "user: Whose work runs next?\n" is 28 bytes, four to a token
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens, whole.usage.total_tokens) == (7, 20, 27)
    assert [chunk.usage for chunk in chunks[:-1]] == [None] * 21
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage
    assert whole.system_fingerprint == "fairq-simulated"


@serving(FAST)
async def test_text_depends_on_prompt_and_seed_alone(server: SimulatedServer, client: AsyncOpenAI) -> None:
    async def say(prompt: str, **more: Any) -> str:
        answer = await client.completions.create(model="simulated", prompt=prompt, max_tokens=16, **more)
        return str(answer.choices[0].text)

    texts = await asyncio.gather(say("a"), say("b"), say("a"), say("a", seed=1), say("a", seed=1))
    assert texts[0] == texts[2]
    assert texts[3] == texts[4]
    assert len(set(texts)) == 3
    longer = await client.completions.create(model="simulated", prompt="a", max_tokens=17)
    assert longer.choices[0].text.startswith(texts[0])


@serving(FAST)
async def test_natural_lengths_vary_and_a_limit_cuts_them(server: SimulatedServer, client: AsyncOpenAI) -> None:
    async def lengths(**limit: Any) -> list[tuple[int, str]]:
        answers = await asyncio.gather(
            *(client.completions.create(model="simulated", prompt=f"p{k}", **limit) for k in range(12))
        )
        return [(answer.usage.completion_tokens, answer.choices[0].finish_reason) for answer in answers]

    free = await lengths()
    assert {finish for _, finish in free} == {"stop"}
    assert len({count for count, _ in free}) > 6
    assert 40 < sorted(count for count, _ in free)[6] < 500
    cut = await lengths(max_tokens=100)
    assert cut == [(min(count, 100), "length" if count > 100 else "stop") for count, _ in free]
    forced = await lengths(max_tokens=150, extra_body={"ignore_eos": True})
    assert forced == [(150, "length")] * 12


@serving(FAST)
async def test_a_stop_string_ends_the_text_before_it(server: SimulatedServer, client: AsyncOpenAI) -> None:
    full = (await client.completions.create(model="simulated", prompt="stop here", max_tokens=30)).choices[0].text
    words = full.split(" ")
    across = f"{words[9][-2:]} {words[10][:2]}"  # spans two tokens
    at = full.index(across)
    tokens = full[: at + len(across)].count(" ") + 1
    for stream in (False, True):
        if stream:
            chunks = await client.completions.create(
                model="simulated",
                prompt="stop here",
                max_tokens=30,
                stop=["never said", across],
                stream=True,
                stream_options={"include_usage": True},
            )
            parts = [chunk async for chunk in chunks]
            text = "".join(part.choices[0].text for part in parts if part.choices)
            finish, usage = parts[-2].choices[0].finish_reason, parts[-1].usage
        else:
            answer = await client.completions.create(
                model="simulated", prompt="stop here", max_tokens=30, stop=["never said", across]
            )
            text, finish, usage = answer.choices[0].text, answer.choices[0].finish_reason, answer.usage
        assert text == full[:at]
        assert finish == "stop"
        assert usage is not None
        assert usage.completion_tokens == tokens


@serving(FAST)
async def test_choices_and_prompt_lists_are_numbered_and_counted(server: SimulatedServer, client: AsyncOpenAI) -> None:
    answer = await client.completions.create(model="simulated", prompt=["one", "two"], n=3, max_tokens=5)
    assert [choice.index for choice in answer.choices] == list(range(6))
    assert len({choice.text for choice in answer.choices}) == 6
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (2, 30)
    tokens = await client.completions.create(model="simulated", prompt=[1, 2, 3], max_tokens=1)
    assert tokens.usage is not None
    assert tokens.usage.prompt_tokens == 3
    stream = await client.chat.completions.create(
        model="simulated", messages=MESSAGES, n=2, max_tokens=4, stream=True, stream_options={"include_usage": True}
    )
    texts = ["", ""]
    async for chunk in stream:
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert [len(text.split()) for text in texts] == [4, 4]
    assert texts[0] != texts[1]


@serving(FAST)
async def test_continuous_usage_is_cumulative_in_every_chunk(server: SimulatedServer, client: AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model="simulated",
        messages=MESSAGES,
        max_tokens=5,
        stream=True,
        extra_body={"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
    )
    counts = [chunk.usage.completion_tokens async for chunk in stream if chunk.usage]
    assert counts == [1, 2, 3, 4, 5, 5, 5]


@serving(EngineSettings(speed=5_000, context_length=64))
async def test_limits_and_bad_requests(server: SimulatedServer, client: AsyncOpenAI) -> None:
    async def refused(**body: Any) -> str:
        async with httpx.AsyncClient() as http:
            response = await http.post(f"{server.url}/v1/completions", json={"model": "simulated", **body})
        assert response.status_code == 400
        assert response.headers["x-fairq-simulated"] == "1"
        error = response.json()["error"]
        assert error.keys() == {"message", "type", "param", "code"}
        assert error["type"] == "invalid_request_error"
        assert isinstance(error["code"], str)
        return f"{error['code']} {error['message']}"

    assert await refused(prompt="a", max_tokens=-1) == "invalid_value max_tokens = -1: must be an integer of at least 1"
    assert await refused(prompt="a", max_tokens="100") == 'invalid_type max_tokens = "100": must be an integer'
    assert "context_length_exceeded the context length is 64" in await refused(prompt="x" * 4 * 64)
    assert "prompt" in await refused(prompt=[])
    assert "prompt" in await refused(prompt=[1, "a"])
    assert "from 0 to" in await refused(prompt=[-1])
    huge = await client.completions.create(
        model="simulated", prompt="x" * 4 * 60, max_tokens=10**9, extra_body={"ignore_eos": True}
    )
    assert huge.usage is not None
    assert huge.usage.total_tokens == 64
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        await client.completions.create(model="gpt-9", prompt="a")
    with pytest.raises(openai.NotFoundError, match="is not served here"):
        await client.get("/nowhere", cast_to=httpx.Response)


@serving(SLOW)
async def test_a_client_that_leaves_frees_its_sequence(server: SimulatedServer, client: AsyncOpenAI) -> None:
    engine = server.engine
    streaming = await client.chat.completions.create(model="simulated", messages=MESSAGES, stream=True)
    await anext(aiter(streaming))
    whole, waits = (
        asyncio.create_task(client.completions.create(model="simulated", prompt=f"long {k}", max_tokens=3000))
        for k in range(2)
    )
    await eventually(lambda: (len(engine.running), len(engine.waiting)) == (2, 1), "two run and one waits")
    assert await metric(server, "vllm:num_requests_running") == 2
    assert await metric(server, "vllm:num_requests_waiting") == 1
    assert 0 < await metric(server, "vllm:kv_cache_usage_perc") < 1
    waits.cancel()
    await eventually(lambda: not engine.waiting, "the waiting one left")
    await streaming.close()
    await eventually(lambda: len(engine.running) == 1, "the streaming one left")
    whole.cancel()
    await eventually(lambda: not engine.running, "the whole one left")
    assert engine.free_blocks == engine.model.blocks
    assert await metric(server, "vllm:request_success_total", finished_reason="abort") == 3


@serving(EngineSettings(speed=5_000, pool_tokens=128, context_length=128, max_sequences=8))
async def test_the_pool_bounds_what_runs_together(server: SimulatedServer, client: AsyncOpenAI) -> None:
    engine = server.engine
    most = 0
    begin = engine.begin

    def watched() -> int | None:
        nonlocal most
        took = begin()
        most = max(most, len(engine.running))
        return took

    engine.begin = watched  # type: ignore[method-assign]
    await asyncio.gather(
        *(
            client.completions.create(
                model="simulated", prompt=f"{k:040d}", max_tokens=20, extra_body={"ignore_eos": True}
            )
            for k in range(10)
        )
    )
    assert most == 4  # 10 + 20 tokens are two blocks of 16; the pool has eight


@serving(FAST)
async def test_metrics_count_what_usage_said(server: SimulatedServer, client: AsyncOpenAI) -> None:
    answers = await asyncio.gather(
        *(client.completions.create(model="simulated", prompt=f"count {k}", max_tokens=60) for k in range(5))
    )
    usages = [answer.usage for answer in answers if answer.usage]
    assert await metric(server, "vllm:prompt_tokens_total") == sum(usage.prompt_tokens for usage in usages)
    assert await metric(server, "vllm:generation_tokens_total") == sum(u.completion_tokens for u in usages)
    assert await metric(server, "vllm:request_success_total") == 5
    assert await metric(server, "vllm:time_to_first_token_seconds_count", model_name="simulated") == 5


@serving(FAST)
async def test_a_repeated_prefix_is_cached_and_said_so(server: SimulatedServer, client: AsyncOpenAI) -> None:
    async def cached(prompt: str) -> int:
        answer = await client.completions.create(model="simulated", prompt=prompt, max_tokens=1)
        assert answer.usage is not None
        details = answer.usage.prompt_tokens_details
        return (details.cached_tokens or 0) if details else 0

    shared = "s" * 640  # ten blocks of 16 tokens
    assert await cached(shared + "first") == 0
    assert await cached(shared + "second") == 160
    assert await cached(shared) == 159  # the last token is always computed
    assert await cached("other" + shared) == 0
    assert await metric(server, "vllm:prefix_cache_hits_total") == 319


@serving(FAST)
async def test_embeddings_are_unit_vectors_and_repeatable(server: SimulatedServer, client: AsyncOpenAI) -> None:
    first = await client.embeddings.create(model="simulated", input=["one", "two"], dimensions=8)
    plain = await client.embeddings.create(model="simulated", input="one", dimensions=8, encoding_format="float")
    assert [len(each.embedding) for each in first.data] == [8, 8]
    assert first.data[0].embedding == pytest.approx(plain.data[0].embedding, abs=1e-6)
    assert math.hypot(*plain.data[0].embedding) == pytest.approx(1)
    assert first.data[0].embedding != first.data[1].embedding
    assert first.usage.prompt_tokens == 2


@serving(FAST)
async def test_simulated_is_written_everywhere(server: SimulatedServer, client: AsyncOpenAI) -> None:
    models = [model async for model in client.models.list()]
    assert [(model.id, model.owned_by) for model in models] == [("simulated", "fairq-simulated")]
    async with httpx.AsyncClient(base_url=server.url) as http:
        for path in ("/v1/models", "/health", "/metrics", "/nowhere"):
            assert (await http.get(path)).headers["x-fairq-simulated"] == "1"
        assert (await http.get("/health")).json()["simulated"] is True
        assert (await http.get("/v1/completions")).status_code == 405
        asked = {"model": "simulated", "prompt": "a", "max_tokens": 2, "stream": True}
        streamed = await http.post("/v1/completions", json=asked)
    assert streamed.headers["x-fairq-simulated"] == "1"
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert streamed.text.endswith("data: [DONE]\n\n")
    assert '"usage"' not in streamed.text
