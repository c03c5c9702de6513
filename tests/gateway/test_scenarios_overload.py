"""Overload (E-1, E-2, E-4, E-6): storms are answered, queues are bounded in number, bytes and time, engines are not."""

import asyncio
import itertools
import os
import time
from collections import Counter

import pytest
from tests.gateway.harness import CHAT, World, chat, run, world
from tests.gateway.slots import TRUSTING
from tests.gateway.wire import Wire, request

from fairq.core import events as ev
from fairq.core.commands import Dispatch, Ended
from fairq.core.events import Refused
from fairq.core.lifecycle import Outcome
from fairq.gateway.admission import Admission, Bounds
from fairq.gateway.backoff import REMEMBERED, Backoffs
from fairq.gateway.config import Config
from fairq.gateway.pool import SECOND
from fairq.testing.clock import eventually
from fairq.testing.replies import Gate, Hang, Pause, completion, stream


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def occupied_at_refusals(w: World) -> set[tuple[int, int]]:
    """(running, waiting) at each refusal for a full queue."""
    running: set[str] = set()
    waiting: set[str] = set()
    found = set()
    for line in w.lines.all:
        match line:
            case ev.Admitted():
                waiting.add(line.request.id)
            case Dispatch():
                waiting.discard(line.id)
                running.add(line.id)
            case Ended():
                waiting.discard(line.id)
                running.discard(line.id)
            case Refused(outcome=Outcome.REFUSED_QUEUE_FULL):
                found.add((len(running), len(waiting)))
    return found


@run
async def test_a_storm_of_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """E-1: 200 clients like SDKs, two retries each, that wait as they are told. They are told to wait longer and
    longer; while anything is refused every slot and every place is in use; a retry is charged once, when it runs.

    Time runs fifty times faster for the gateway and for its clients."""
    real, fast = time.monotonic_ns, 50
    monkeypatch.setattr(time, "monotonic_ns", lambda: real() * fast)
    async with world("tenant_defaults: {queue: {requests: 20}}\nqueue: {time_to_live: 600s}", slots=4) as w:
        w.upstream.default = lambda seen: [Pause(0.002), *completion(1)]
        waits: list[int] = []

        async def client(number: int) -> int:
            for attempt in range(3):
                async with Wire(w.gateway.server.port) as wire:
                    reply = await wire.ask(request(CHAT, chat(), x_request_id=f"c{number}-{attempt}"))
                if reply.status == 200:
                    return 200
                assert reply.header("x-fairq-outcome") == "refused-queue-full"
                told = int(reply.header("retry-after") or "")
                waits.append(told)
                await asyncio.sleep(told / fast)
            return reply.status

        statuses = Counter(await asyncio.gather(*map(client, range(200))))
        await w.idle()
        assert statuses.keys() <= {200, 429}
        assert 1 <= min(waits) < max(waits) <= 32
        assert occupied_at_refusals(w) == {(4, 20)}
        assert statuses[200] == w.upstream.seen == len(w.dispatched) == len(w.ended)
        assert sum(record.charge for record in w.ended) == sum(command.charge for command in w.dispatched)


@run
async def test_a_thousand_streams_at_once() -> None:
    """E-2: each gets 200 or 429; nothing else, and no descriptor stays open."""
    before = descriptors()
    async with world("queue: {requests: 500}", slots=64) as w:
        w.upstream.default = lambda seen: [Gate("go"), *stream(3)] if seen.number <= 64 else stream(3)

        async def client(number: int) -> int:
            async with Wire(w.gateway.server.port) as wire:
                reply = await wire.ask(request(CHAT, chat(stream=True), x_request_id=f"c{number}"))
                if reply.status == 200:
                    assert reply.body.endswith(b"data: [DONE]\n\n")
                else:
                    assert int(reply.header("retry-after") or "") >= 1
                return reply.status

        clients = [asyncio.create_task(client(number)) for number in range(1000)]
        await eventually(lambda: len(w.refused) == 1000 - 564, "436 refusals", within=20)
        await w.upstream.release("go", 64)
        assert Counter(await asyncio.gather(*clients)) == {200: 564, 429: 436}
        await w.idle()
    await eventually(lambda: descriptors() <= before, "every descriptor closed")


@run
async def test_a_queue_without_configuration_ends_waiting_after_a_minute() -> None:
    """E-4: the default time to live is 60 s, and the deadline is set from the arrival on."""
    async with world(slots=1) as w:
        w.upstream.default = [Hang()]
        running, waiting = w.later(CHAT, chat()), w.later(CHAT, chat())
        await w.waiting(1)
        [request] = [line.request for line in w.of(ev.Admitted)][1:]
        assert w.pool.scheduler.next_deadline() == request.expires == request.arrival + 60 * SECOND
        running.cancel()
        waiting.cancel()
        await w.idle()


@run
async def test_stuck_upstreams_end_in_expiry() -> None:
    """E-4: the upstream never answers; what waits for it ends as `expired`, with Retry-After and no charge."""
    async with world("queue: {time_to_live: 100ms}", slots=1) as w:
        w.upstream.default = [Hang()]
        running = w.later(CHAT, chat())
        await w.running(1)
        replies = await asyncio.gather(*(w.post(CHAT, chat()) for _ in range(5)))
        assert {reply.status_code for reply in replies} == {429}
        assert {reply.headers["x-fairq-outcome"] for reply in replies} == {"expired"}
        assert all(int(reply.headers["retry-after"]) >= 1 for reply in replies)
        assert all(reply.json()["error"]["type"] == "rate_limit_error" for reply in replies)
        assert sum(record.charge for record in w.ended) == 0
        running.cancel()
        await w.idle()


@run
async def test_the_backlog_stays_here() -> None:
    """E-6: an upstream that accepts anything never sees more than its slots; the rest waits at the gateway."""
    async with world(upstreams=2, slots=3) as w:
        for upstream in w.upstreams:
            upstream.default = lambda seen: [Pause(0.002), *completion(1)]
        replies = await asyncio.gather(*(w.post(CHAT, chat()) for _ in range(100)))
        assert {reply.status_code for reply in replies} == {200}
        assert [upstream.most_active for upstream in w.upstreams] == [3, 3]
        await w.idle()


@run
async def test_a_queue_is_bounded_in_bytes_too() -> None:
    """A body that can never wait here is too large, and trying again is not suggested; one that fits in an emptier
    queue may try again."""
    async with world("tenant_defaults: {queue: {bytes: 3kB}}", slots=1) as w:
        w.upstream.enqueue([Gate("go"), *completion(1)])
        first = w.later(CHAT, chat())
        await w.running(1)
        second = w.later(CHAT, chat("x" * 2000))
        await w.waiting(1)
        full = await w.post(CHAT, chat("x" * 2000))
        assert (full.status_code, full.headers["x-fairq-outcome"]) == (429, "refused-queue-full")
        assert "retry-after" in full.headers
        never = await w.post(CHAT, chat("x" * 4000))
        assert (never.status_code, never.headers["x-fairq-outcome"]) == (413, "refused-too-large")
        assert "retry-after" not in never.headers
        await w.upstream.release("go")
        assert {(await first).status_code, (await second).status_code} == {200}
        await w.idle()


class Refusing(Admission):
    """Whose clock is set by hand."""

    def __init__(self) -> None:
        super().__init__(Bounds(0, 0), lambda tenant: Bounds(0, 0), lambda: self.now)
        self.now = 0

    def storm(self, tenant: str = "") -> list[int]:
        """What 4,000 refusals say, 20 a second."""
        told = []
        for _ in range(4000):
            self.now += SECOND // 20
            told.append(self.retry_after(tenant))
        return told


def test_retry_after_has_its_range_and_calms_down() -> None:
    """Doubled while refusals keep coming, at most 32 s, and 1 s again after a quiet while."""
    admission = Refusing()
    told = admission.storm()
    assert told[0] == 1
    assert max(told) == told[-1] == 32
    assert all(later in (earlier, 2 * earlier) for earlier, later in itertools.pairwise(told))
    admission.now += 1000 * SECOND
    admission.retry_after()
    assert admission.retry_after() == 1


def test_a_storm_of_one_tenant_sends_nobody_else_away() -> None:
    admission = Refusing()
    told = admission.storm("storm")
    assert (max(told), admission.retry_after("calm"), admission.retry_after()) == (32, 1, 1)
    obedient = []
    for _ in range(20):
        obedient.append(admission.retry_after("obedient"))
        admission.now += obedient[-1] * SECOND
    assert obedient == [1] * 20


def test_backoffs_of_quiet_tenants_go_and_there_is_a_bound() -> None:
    backoffs = Backoffs()
    for number in range(2 * REMEMBERED):
        backoffs.refuse(f"at once {number}", 0)
    assert len(backoffs) == REMEMBERED
    for number in range(2 * REMEMBERED):
        backoffs.refuse("still here", (200 + number) * SECOND)
    assert len(backoffs) == 1


@run
async def test_retry_after_tells_each_tenant_of_its_own_refusals() -> None:
    """One tenant's storm, on a clock that makes 50 s of one: another's first refusals, by its own bound and by its
    deadline, say one second."""
    async with world(TRUSTING + "tenant_defaults: {queue: {requests: 1}}", slots=1) as w:
        w.upstream.default = [Hang()]
        now = time.monotonic_ns()
        w.gateway.first_pool.admission.clock = lambda: now
        waiting = [w.later(CHAT, chat(), x_fairq_tenant="A")]
        await w.running(1)
        for place, tenant in enumerate("AB", 1):
            waiting.append(w.later(CHAT, chat(), x_fairq_tenant=tenant))
            await w.waiting(place)
        for _ in range(60):
            now += SECOND // 4
            refused = await w.post(CHAT, chat(), x_fairq_tenant="A")
        assert int(refused.headers["retry-after"]) >= 8
        full = await w.post(CHAT, chat(), x_fairq_tenant="B")
        expired = await w.post(CHAT, chat(), x_fairq_tenant="C", x_fairq_max_queue_wait="0")
        for reply, outcome in ((full, "refused-queue-full"), (expired, "expired")):
            assert (reply.headers["x-fairq-outcome"], reply.headers["retry-after"]) == (outcome, "1")
        for each in waiting:
            each.cancel()
        await w.idle()


def test_the_documented_defaults() -> None:
    queue = Config().queue
    assert (queue.time_to_live, queue.max_time_to_live) == (60.0, 600.0)
