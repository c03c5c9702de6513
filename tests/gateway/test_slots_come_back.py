"""Slots and lifecycle: whatever ends a request, its slot is free again and it has exactly one outcome (A)."""

import asyncio
from itertools import cycle

from tests.gateway.harness import CHAT, chat, run, world

from fairq.core.lifecycle import Outcome
from fairq.testing.replies import Gate, Hang, Reset, answer, spaced, stream


@run
async def test_aborted_stream_gives_its_slot_back() -> None:
    """A-1: read three chunks, close the socket; the next request is served."""
    async with world(slots=1) as w:
        w.upstream.enqueue(spaced(stream(50), Gate("more")))
        async with w.client.stream("POST", CHAT, json=chat(stream=True)) as response:
            seen = await w.upstream.request(1)
            lines = response.aiter_lines()
            for _ in range(3):
                await w.upstream.release("more")
                await anext(lines)
        await seen.ended()
        assert w.upstream.disconnects == 1
        assert (await w.post(CHAT, chat())).status_code == 200
        await w.idle()
        assert [record.outcome for record in w.ended] == [Outcome.CANCELLED_RUNNING, Outcome.COMPLETED]


@run
async def test_upstream_failures_do_not_strand_slots() -> None:
    """A-2: 502, 504, resets and hangs, twenty times, on two slots."""
    async with world("timeouts: {first_byte: 0.2}", slots=2) as w:
        ways = cycle([answer({}, 502), answer({}, 504), [Reset()], [Hang()]])
        w.upstream.default = lambda seen: next(ways)
        replies = await asyncio.gather(*(w.post(CHAT, chat()) for _ in range(20)))
        assert {reply.status_code for reply in replies} == {502, 504}
        await w.idle()


@run
async def test_leaving_without_streaming_reaches_the_upstream() -> None:
    """A-4: a request that is not a stream is cancelled too."""
    async with world() as w:
        w.upstream.enqueue([Hang()])
        task = w.later(CHAT, chat())
        seen = await w.upstream.request(1)
        task.cancel()
        await asyncio.wait_for(seen.ended(), 1)
        await w.idle()
        assert w.ended[0].outcome == Outcome.CANCELLED_RUNNING


@run
async def test_leaving_the_queue_costs_nothing() -> None:
    """A-7: five of ten queued requests leave; they reach no upstream and are charged nothing."""
    async with world(slots=1) as w:
        w.upstream.enqueue([Gate("go"), *answer({})])
        first = w.later(CHAT, chat())
        await w.running(1)
        queued = [w.later(CHAT, chat(f"number {i}")) for i in range(10)]
        await w.waiting(10)
        for task in queued[3:8]:
            task.cancel()
        await w.waiting(5)
        await w.upstream.release("go")
        await first
        for task in queued[:3] + queued[8:]:
            assert (await task).status_code == 200
        await w.idle()
        left = [record for record in w.ended if record.outcome == Outcome.CANCELLED_WAITING]
        assert len(left) == 5
        assert all(record.charge == 0 and not record.upstream for record in left)
        assert w.upstream.seen == 6


@run
async def test_a_slot_is_held_until_the_body_ends() -> None:
    """A-9: headers alone do not free it."""
    async with world(slots=1) as w:
        w.upstream.enqueue(spaced(stream(3), Gate("more")))
        async with w.client.stream("POST", CHAT, json=chat(stream=True)) as response:
            assert response.status_code == 200
            second = w.later(CHAT, chat())
            await w.waiting(1)
            assert w.upstream.seen == 1
            reading = asyncio.create_task(response.aread())
            await w.upstream.release("more", len(stream(3)) - 1)
            await reading
        assert (await second).status_code == 200
        await w.idle()
