"""What a request costs (B): every token counts once, however it is reported, and nothing else does."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from tests.gateway.harness import CHAT, World, chat, run, world
from tests.gateway.slots import OPENER, TRUSTING, Told, asks, backlogged, told, while_both_wait
from wire import Wire, request

from fairq.core.commands import Ended
from fairq.core.cost import Source, Usage
from fairq.core.lifecycle import Outcome
from fairq.form import form
from fairq.gateway.relay import Relay
from fairq.testing.connection import Received
from fairq.testing.replies import Gate, Hang, Reset, Script, UsageShape, answer, completion, stream, usage

UPSTREAM, COUNTED = Source.UPSTREAM, Source.COUNTED


@pytest.mark.parametrize("path", [CHAT, "/v1/completions"])
@pytest.mark.parametrize("shape", ["separate", "last", "content", "every", "none"])
@run
async def test_a_stream_is_charged_although_its_client_did_not_ask_for_usage(shape: UsageShape, path: str) -> None:
    """B-1: the upstream is asked, the client sees no event that only reports, and the cost is right: 5 + 2 * 10."""
    is_chat = path == CHAT
    body = chat(stream=True) if is_chat else {"model": "m", "prompt": [1, 2, 3, 4, 5], "stream": True}
    async with world("cost: {alpha: 1, beta: 2}") as w:
        w.upstream.enqueue(stream(10, chat=is_chat, usage_shape=shape))
        reply = await w.post(path, body)
        await w.idle()
        assert w.upstream.requests[0].json["stream_options"] == {"include_usage": True}
        assert '"choices":[]' not in reply.text.replace(" ", "")
        assert reply.text.count('"w') == 10 or reply.text.count("w10 ") == 1
        [record] = w.ended
        assert record.usage.completion == 10
        if shape != "none":
            assert record.usage == Usage(5, 10, 0, UPSTREAM)
            assert record.actual == 25


# B-2
LENGTH = 10  # tokens of each answer


async def read_some(w: World, tenant: str, tokens: int) -> int:
    """Read a stream up to a token and leave. Returns how many came."""
    seen = b""
    async with Wire(w.gateway.server.port) as wire:
        wire.send(request(CHAT, chat(f"{tokens}", stream=True), x_fairq_tenant=tenant))
        assert (await wire.head()).status == 200
        while (piece := await wire.chunk()) and (seen := seen + piece).count(b'"content":"w') < tokens:
            pass
        if tokens < LENGTH:
            wire.reset()
        else:
            while await wire.chunk():
                pass
    return seen.count(b'"content":"w')


def so_far(seen: Received) -> Script:
    """The upstream has not sent more than the client will read when it leaves."""
    tokens = int(seen.json["messages"][0]["content"])
    whole = stream(LENGTH)
    return whole if tokens == LENGTH else [*whole[: tokens + 1], Hang()]


async def leave_early(settlement: str, tokens: int) -> tuple[list[Ended], Told]:
    """E leaves thirty streams after so many tokens, H reads thirty whole ones, on two slots. E's records."""
    slots, requests = 2, 30
    config = TRUSTING + f"cost: {{alpha: 0, beta: 1, default_output: {LENGTH}}}"
    async with world(config, slots=slots, pool=f"settlement: {settlement}") as w:
        w.upstream.enqueue(*[[Gate("open"), *completion(LENGTH)]] * slots)
        openers = [w.later(CHAT, chat(), x_fairq_tenant=OPENER) for _ in range(slots)]
        await w.running(slots)
        w.upstream.default = so_far
        leaving = [asyncio.create_task(read_some(w, "E", tokens)) for _ in range(requests)]
        reading = [asyncio.create_task(read_some(w, "H", LENGTH)) for _ in range(requests)]
        await w.waiting(2 * requests)
        await w.upstream.release("open", slots)
        assert await asyncio.gather(*leaving) == [tokens] * requests
        assert await asyncio.gather(*reading) == [LENGTH] * requests
        await asyncio.gather(*openers)
        await w.idle()
        return [record for record in w.ended if record.tenant == "E"], told(w)


def shared(found: Told, slots: int = 2) -> bool:
    """Actual service stays within the bound of `forward`; no request here uses more than was expected of it."""
    return found.widest_actual <= 2 * found.largest + 2 * slots * 2 * LENGTH


@pytest.mark.parametrize("tokens", [1, 5, 9])
@pytest.mark.parametrize("settlement", ["fixed", "forward"])
@run
async def test_leaving_before_the_end_is_not_free(settlement: str, tokens: int) -> None:
    """B-2: who leaves is charged what it got (forward) or what was expected of it (fixed), never less than it got."""
    records, found = await leave_early(settlement, tokens)
    assert {record.outcome for record in records} == {Outcome.CANCELLED_RUNNING}
    assert {record.actual for record in records} == {tokens}
    charges = sum(record.charge for record in records)
    if settlement == "fixed":
        assert {record.charge for record in records} == {LENGTH}
    else:
        assert tokens * len(records) <= charges <= tokens * len(records) + 2 * 2 * LENGTH
        assert shared(found)
    assert found.fair


@pytest.mark.skipif(form() == "compiled", reason="a compiled class cannot be broken for a test")
@run
async def test_free_leaving_would_be_unfair(monkeypatch: pytest.MonkeyPatch) -> None:
    """That the test above can fail: without a report, nothing is counted."""
    monkeypatch.setattr(Relay, "usage", lambda relay, *_: relay._reader.usage or Usage(source=COUNTED))
    records, found = await leave_early("forward", 9)
    assert sum(record.charge for record in records) < 9 * len(records)
    assert max(found.actual.values()) == found.actual["H"]
    assert found.order[:30].count("E") > 20


@run
async def test_several_tokens_in_an_event_are_several() -> None:
    """B-2: an engine that speculates sends four tokens at a time, as streams that ran to their end have shown. Who
    leaves after six events has had 24."""
    async with world(TRUSTING + "cost: {alpha: 0, beta: 1, default_output: 40}", pool="settlement: forward") as w:
        w.upstream.default = lambda seen: stream(10, counts=usage(5, 40))
        for _ in range(3):
            await read_some(w, "H", LENGTH)
        w.upstream.default = lambda seen: [*stream(10)[:7], Hang()]
        assert await read_some(w, "E", 6) == 6
        await w.idle()
        assert w.ended[-1].usage == Usage(w.dispatched[-1].input_tokens, 24, 0, COUNTED)


@run
async def test_leaving_without_a_stream_is_not_free_either() -> None:
    """B-2: how far the engine got is not known, so the estimate stands."""
    async with world("cost: {alpha: 0, beta: 1, default_output: 40}") as w:
        w.upstream.enqueue([Hang()])
        task = w.later(CHAT, chat())
        await w.upstream.request(1)
        task.cancel()
        await w.idle()
        assert (w.ended[0].charge, w.ended[0].actual, w.ended[0].usage.source) == (40, 40, COUNTED)


# B-3
@pytest.mark.parametrize(("read", "counted"), [(100, 100), (50, 50)])
@run
async def test_running_usage_is_not_summed(read: int, counted: int) -> None:
    """B-3: each of a hundred events says how much it has been so far. The last one seen counts."""
    async with world("cost: {alpha: 1, beta: 2}") as w:
        whole = stream(100, usage_shape="every")
        w.upstream.enqueue(whole if read == 100 else [*whole[: read + 1], Hang()])
        options = {"include_usage": True, "continuous_usage_stats": True}
        async with Wire(w.gateway.server.port) as wire:
            wire.send(request(CHAT, chat(stream=True, stream_options=options)))
            await wire.head()
            seen = b""
            while seen.count(b'"content":"w') < read:
                seen += await wire.chunk()
            if read == 100:
                while await wire.chunk():
                    pass
        await w.idle()
        assert w.upstream.requests[0].json["stream_options"] == options
        assert w.ended[0].usage == Usage(5, counted, 0, UPSTREAM)
        assert w.ended[0].actual == 5 + 2 * counted


# B-4
@pytest.mark.parametrize("streams", [False, True])
@run
async def test_reasoning_counts_once(streams: bool) -> None:
    """B-4: 80 of the 100 tokens were thought, not said. They are among the 100."""
    counts = usage(10, 100, reasoning=80)
    async with world("cost: {alpha: 1, beta: 2}") as w:
        w.upstream.enqueue(stream(20, counts=counts) if streams else completion(20, counts=counts))
        await w.post(CHAT, chat(stream=streams))
        await w.idle()
        assert w.ended[0].usage == Usage(10, 100, 0, UPSTREAM)
        assert w.ended[0].actual == 10 + 2 * 100


# B-6
@pytest.mark.parametrize(
    ("fields", "predicted"),
    [
        ({}, 300),  # absent never means all that the model can hold
        ({"max_tokens": None, "max_completion_tokens": None}, 300),
        ({"max_tokens": 10**9}, 300),
        ({"max_tokens": 7}, 7),
        ({"max_completion_tokens": 7}, 7),
        ({"max_tokens": 1, "max_completion_tokens": 10_000}, 300),  # the larger one counts
        ({"max_tokens": 10_000, "max_completion_tokens": 1}, 300),
        ({"max_tokens": 1, "max_completion_tokens": 9}, 9),
        ({"max_tokens": 10**9, "n": 3}, 900),
    ],
)
@run
async def test_what_a_limit_says_about_the_estimate(fields: dict[str, Any], predicted: int) -> None:
    """B-6: a limit can only lower what is predicted."""
    async with world("cost: {alpha: 0, beta: 1, default_output: 300, context_length: 4096}") as w:
        w.upstream.default = completion(1)
        assert (await w.post(CHAT, chat(**fields))).status_code == 200
        await w.idle()
        assert w.dispatched[0].output_tokens == w.dispatched[0].charge == predicted
        sent = w.upstream.requests[0].json
        assert {key: sent[key] for key in fields} == fields


@run
async def test_nothing_is_predicted_beyond_the_model() -> None:
    """B-6: a tenant that always wrote 900 tokens has a prompt of 960; the model holds 1,000."""
    async with world("cost: {alpha: 0, beta: 1, default_output: 900, context_length: 1000}") as w:
        w.upstream.default = completion(1)
        body = {"model": "m", "prompt": [1] * 960, "max_tokens": 10**9}
        await w.post("/v1/completions", body)
        await w.idle()
        assert (w.dispatched[0].input_tokens, w.dispatched[0].output_tokens) == (960, 40)


@pytest.mark.parametrize("key", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("value", [-1, "100", 1.5, True, [100], {"tokens": 100}, 10**30])
@run
async def test_a_limit_of_a_wrong_kind_is_refused(key: str, value: Any) -> None:
    """B-6: by name, before it costs anything."""
    async with world() as w:
        reply = await w.post(CHAT, chat(**{key: value}))
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, key)
        assert w.refused[0].outcome == Outcome.REFUSED_INVALID
        assert w.upstream.seen == 0


# B-8
@pytest.mark.parametrize("settlement", ["fixed", "forward"])
@pytest.mark.parametrize("failing", [[Reset()], answer({}, 503), answer({}, 502)])
@run
async def test_a_retry_is_charged_once(failing: Script, settlement: str) -> None:
    """B-8: the first upstream fails before its headers, the second serves: one charge, one error carried forward."""
    config = "cost: {alpha: 0, beta: 1, default_output: 30}"
    pool = f"settlement: {settlement}"
    async with world(config, upstreams=2, slots=1, pool=pool) as w:
        w.upstreams[0].default = failing  # a single reset could be a stale connection
        w.upstreams[1].enqueue(completion(1, counts=usage(1, 50)))
        assert (await w.post(CHAT, chat())).status_code == 200
        await w.idle()
        assert [(line.attempt, line.upstream, line.charge) for line in w.dispatched] == [
            (1, "u0", 30),
            (2, "u1", 0),
        ]
        [record] = w.ended
        assert (record.charge, record.actual, record.attempts) == (30, 50, 2)
        assert told(w).charged == Counter({"anonymous": 30})


@pytest.mark.parametrize("settlement", ["fixed", "forward"])
@run
async def test_nothing_is_given_back_twice(settlement: str) -> None:
    """B-8: both upstreams fail, while others wait. Under `forward` the charge comes back once, under `fixed` never."""
    config = TRUSTING + "cost: {alpha: 0, beta: 1, default_output: 30}"
    async with world(config, upstreams=2, slots=1, pool=f"settlement: {settlement}") as w:
        for upstream in w.upstreams:
            upstream.enqueue([Gate("open"), *completion(1, counts=usage(1, 30))])
        openers = [w.later(CHAT, chat(), x_fairq_tenant=OPENER) for _ in range(2)]
        await w.running(2)
        for upstream in w.upstreams:
            upstream.default = lambda seen: (
                [Reset()] if seen.json["messages"][0]["content"] == "fail" else completion(1, counts=usage(1, 30))
            )
        texts = ["fail", *["good"] * 11]
        mine = [w.later(CHAT, chat(text), x_fairq_tenant="A") for text in texts]
        await w.waiting(len(texts))
        others = [w.later(CHAT, chat("good"), x_fairq_tenant="B") for _ in texts]
        await w.waiting(2 * len(texts))
        for upstream in w.upstreams:
            await upstream.release("open")
        statuses = Counter([(await task).status_code for task in (*mine, *others)])
        await asyncio.gather(*openers)
        await w.idle()
        assert statuses == {200: 23, 502: 1}
        charges = [line.charge for line in w.dispatched if line.tenant == "A" and line.attempt == 1]
        assert sum(charges) == 12 * 30 - (30 if settlement == "forward" else 0)
        assert min(charges) == (1 if settlement == "forward" else 30)


# B-9
def within(found: Told, share: float) -> bool:
    one, other = sorted(found.actual.values())
    return other <= one * (1 + share)


def bounded(found: Told, slots: int, late: int, estimate: int) -> bool:
    """design.md's bound of `forward`: 2q + D (e + 2c) (1/w_i + 1/w_j)."""
    return found.widest_actual <= 2 * found.largest + 2 * slots * (late + 2 * estimate)


@pytest.mark.parametrize(
    ("odd", "honest", "first", "late"),
    [
        ([1000] * 30, [100] * 200, 100, 900),  # ten times as long as it is taken for
        ([100] * 200, [1000] * 30, 1000, 0),  # a tenth
        ([1, 4000] * 60, [2000] * 120, 100, 4000),
    ],
    ids=["tenfold", "a tenth", "1 and 4,000 in turn"],
)
@run
async def test_wrong_estimates_do_not_move_the_shares(odd: list[int], honest: list[int], first: int, late: int) -> None:
    """B-9, on eight slots, over the 200 requests and more in which both wait."""
    config = f"cost: {{alpha: 0, beta: 1, default_output: {first}}}"
    asked = [("odd", asks(length)) for length in odd] + [("honest", asks(length)) for length in honest]
    async with backlogged(asked, config, slots=8, settlement="forward") as engine:
        await engine.run()
        both = while_both_wait(engine.w)
        assert within(both, 0.05)
        assert both.fair
        estimates = [record.estimate for record in engine.w.ended]
        assert bounded(both, 8, late, max(estimates))


@pytest.mark.parametrize(("settlement", "even"), [("forward", True), ("fixed", False)])
@run
async def test_what_can_never_be_learned(settlement: str, even: bool) -> None:
    """B-9: another model's name each time, so 100 is predicted always and 1,000 come."""
    config = "cost: {alpha: 0, beta: 1, default_output: 100}"
    asked = [("odd", asks(1000) | {"model": f"m{n}"}) for n in range(100)]
    asked += [("honest", asks(1000, model="m")) for _ in range(100)]
    async with backlogged(asked, config, slots=8, settlement=settlement) as engine:
        await engine.run()
        assert within(while_both_wait(engine.w), 0.05) == even


@run
async def test_the_next_estimates_follow() -> None:
    """B-9, `fixed`: what was said is final, what will be said has learned, in both directions."""
    config = "cost: {alpha: 0, beta: 1, default_output: 100}"
    async with backlogged([("odd", asks(1000))] * 12 + [("odd", asks(10))] * 40, config) as engine:
        await engine.run()
        charges = [line.charge for line in engine.w.dispatched if line.tenant == "odd"]
        assert charges[0] == 100
        assert 900 <= charges[11] <= 1000
        assert charges[51] <= 20
        assert all(record.charge == record.estimate for record in engine.w.ended)


# B-11
@pytest.mark.parametrize(("discount", "cost"), [(0, 1000 + 20), (0.5, 550 + 20), ("9/10", 190 + 20), (1, 100 + 20)])
@run
async def test_cached_tokens_may_cost_less(discount: object, cost: int) -> None:
    """B-11: 900 of 1,000 were in the cache. They are recorded apart, and the next estimate expects them."""
    async with world(f"cost: {{alpha: 1, beta: 2, default_output: 10, cached_discount: {discount}}}") as w:
        w.upstream.default = completion(10, counts=usage(1000, 10, cached=900))
        for _ in range(30):
            await w.post("/v1/completions", {"model": "m", "prompt": [1] * 1000})
        await w.idle()
        assert {record.usage for record in w.ended} == {Usage(1000, 10, 900, UPSTREAM)}
        assert {record.actual for record in w.ended} == {cost}
        assert w.ended[0].charge == 1020
        assert cost <= w.ended[-1].charge <= cost + 30


# B-12
@pytest.mark.parametrize(("alpha", "counts"), [(1, True), (0, False)])
@run
async def test_reading_costs_too(alpha: int, counts: bool) -> None:
    """B-12: one tenant only sends long prompts, the other only gets long answers. Both are charged what they use;
    with output alone in the price the reader would go on for nothing."""
    reads, writes = asks(1, 2000, max_tokens=1), asks(500, 1, max_tokens=500)
    reads["messages"][0]["content"] += " " + "x" * 8000
    config = f"cost: {{alpha: {alpha}, beta: 4, default_output: 500}}"
    async with backlogged([("reads", reads), ("writes", writes)] * 30, config) as engine:
        await engine.run(30)
        order = told(engine.w).order
        assert (abs(order.count("reads") - order.count("writes")) <= 2) == counts


@run
async def test_an_embedding_costs_its_input() -> None:
    """B-12."""
    async with world("cost: {alpha: 1, beta: 2}") as w:
        w.upstream.enqueue(answer({"object": "list", "data": [], "usage": {"prompt_tokens": 700, "total_tokens": 700}}))
        await w.post("/v1/embeddings", {"model": "m", "input": [[1] * 300, [2] * 400]})
        await w.idle()
        assert (w.ended[0].charge, w.ended[0].actual, w.ended[0].usage) == (700, 700, Usage(700, 0, 0, UPSTREAM))
