"""Every way in which a request can end (E-3): status, headers, envelope, and what is recorded.

The cases are keyed by the core's closed enum: an outcome without a case here fails.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from tests.gateway.harness import CHAT, World, chat, run, world
from tests.gateway.wire import Reply, Wire, ask, request

from fairq.core.lifecycle import Outcome
from fairq.gateway.config_sections import Tenant, TenantDefaults
from fairq.gateway.keys import config_line
from fairq.testing.clock import eventually
from fairq.testing.replies import Gate, Hang, Reset, answer, completion, stream

KEYS = f"tenants: [{{id: alice, models: [m], keys: ['{config_line('fq-alice')}']}}]"


@dataclass
class Case:
    """
    make      brings the outcome about for the request with id "it", and returns what its client got
    status    what the client saw; None: it got nothing, or it left
    recorded  the ledger's status, where it is another one
    """

    make: Callable[[World], Awaitable[Reply | None]]
    status: int | None
    config: str = ""
    kind: str = ""
    retry_after: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    recorded: int | None = None
    slots: int = 1


def post(w: World, body: object = None, **headers: str) -> Awaitable[Reply]:
    data = request(CHAT, chat() if body is None else body, x_request_id="it", **headers)
    return ask(w.gateway.server.port, data)


async def plain(w: World) -> Reply:
    return await post(w)


async def forbidden(w: World) -> Reply:
    return await post(w, chat(model="other"), authorization="Bearer fq-alice")


async def invalid(w: World) -> Reply:
    return await post(w, b'{"model": "m", "messages": 7}')


async def too_large(w: World) -> Reply:
    return await post(w, chat("x" * 3000))


async def unknown_model(w: World) -> Reply:
    [pool] = w.gateway.config.pools
    only = pool.model_copy(update={"models": ("known",)})
    w.gateway.reload(w.gateway.config.model_copy(update={"pools": (only,)}))
    return await post(w)


async def behind_a_full_queue(w: World) -> Reply:
    w.upstream.default = [Hang()]
    running, waiting = w.later(CHAT, chat()), w.later(CHAT, chat())
    await w.waiting(1)
    reply = await post(w)
    running.cancel()
    waiting.cancel()
    return reply


async def no_upstream(w: World) -> Reply:
    [pool] = w.gateway.config.pools
    none = pool.model_copy(update={"upstreams": ()})
    w.gateway.reload(w.gateway.config.model_copy(update={"pools": (none,)}))
    return await post(w)


async def while_draining(w: World) -> Reply:
    w.upstream.default = [Gate("go"), *completion(1)]
    running = w.later(CHAT, chat())
    await w.running(1)
    async with Wire(w.gateway.server.port) as wire:
        wire.send(request(CHAT, chat(), x_request_id="it"))
        await w.waiting(1)
        drained = asyncio.create_task(w.gateway.drain())
        reply = await wire.reply()
        assert await wire.closed()
    await w.upstream.release("go")
    assert (await running).status_code == 200
    await drained
    return reply


async def expired(w: World) -> Reply:
    w.upstream.default = [Hang()]
    running = w.later(CHAT, chat())
    await w.running(1)
    reply = await post(w)
    running.cancel()
    return reply


async def left_waiting(w: World) -> None:
    w.upstream.default = [Hang()]
    running = w.later(CHAT, chat())
    await w.running(1)
    async with Wire(w.gateway.server.port) as wire:
        wire.send(request(CHAT, chat(), x_request_id="it"))
        await w.waiting(1)
    running.cancel()


async def left_running(w: World) -> None:
    w.upstream.default = [Hang()]
    async with Wire(w.gateway.server.port) as wire:
        wire.send(request(CHAT, chat(), x_request_id="it"))
        await w.running(1)


async def unreachable(w: World) -> Reply:
    await w.upstream.stop()
    return await post(w)


async def silent(w: World) -> Reply:
    w.upstream.default = [Hang()]
    return await post(w)


async def resets(w: World) -> Reply:
    w.upstream.default = [Reset()]
    return await post(w)


async def breaks_off(w: World) -> Reply:
    w.upstream.default = [*stream(5)[:3], Reset()]
    return await post(w, chat(stream=True))


async def stalls(w: World) -> None:
    w.upstream.default = answer(b"x" * (64 << 20))
    async with Wire(w.gateway.server.port) as wire:
        wire.stop_reading()
        wire.send(request(CHAT, chat(), x_request_id="it"))
        await eventually(lambda: w.ended)


CASES: dict[Outcome, Case | None] = {
    Outcome.REFUSED_UNAUTHORIZED: Case(
        plain, 401, KEYS, "authentication_error", headers={"www-authenticate": 'Bearer realm="fairq"'}
    ),
    Outcome.REFUSED_FORBIDDEN: Case(forbidden, 403, KEYS, "permission_error"),
    Outcome.REFUSED_INVALID: Case(invalid, 400, kind="invalid_request_error"),
    Outcome.REFUSED_TOO_LARGE: Case(too_large, 413, "limits: {body_bytes: 2kB}", "invalid_request_error"),
    Outcome.REFUSED_UNKNOWN_MODEL: Case(unknown_model, 404, kind="not_found_error"),
    Outcome.REFUSED_RATE_LIMIT: None,  # see below
    Outcome.REFUSED_QUEUE_FULL: Case(
        behind_a_full_queue, 429, "tenant_defaults: {queue: {requests: 1}}", "rate_limit_error", retry_after=True
    ),
    Outcome.REFUSED_NO_UPSTREAM: Case(no_upstream, 503, kind="server_error", retry_after=True),
    Outcome.REFUSED_SHUTTING_DOWN: Case(
        while_draining, 503, kind="server_error", headers={"retry-after": "1", "connection": "close"}
    ),
    Outcome.EXPIRED: Case(expired, 429, "queue: {time_to_live: 50ms}", "rate_limit_error", retry_after=True),
    Outcome.CANCELLED_WAITING: Case(left_waiting, None, recorded=499),
    Outcome.CANCELLED_RUNNING: Case(left_running, None, recorded=0),
    Outcome.FAILED_CONNECT: Case(unreachable, 502, kind="server_error"),
    Outcome.FAILED_TIMEOUT: Case(silent, 504, "timeouts: {first_byte: 50ms}", "server_error"),
    Outcome.FAILED_UPSTREAM: Case(resets, 502, kind="server_error"),
    Outcome.FAILED_MIDSTREAM: Case(breaks_off, 200),
    Outcome.STALLED_CLIENT: Case(stalls, None, "timeouts: {reader: 300ms}\nlimits: {reader_rate: 1MB}", recorded=200),
    Outcome.COMPLETED: Case(plain, 200),
}


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if CASES[outcome] is not None])
@run
async def test_row_of_the_table(outcome: Outcome) -> None:
    case = CASES[outcome]
    assert case is not None
    async with world(case.config, slots=case.slots) as w:
        reply = await case.make(w)
        await w.idle()
        [record] = [record for record in (*w.ended, *w.refused) if record.id == "it"]
        assert record.outcome is outcome
        assert [logged.outcome for logged in w.logged if logged.id == "it"] == [outcome]
        if reply is None:
            assert case.status is None
            assert record.status == case.recorded
            return
        assert reply.status == record.status == case.status
        assert reply.header("x-request-id") == "it"
        for name, value in case.headers.items():
            assert reply.header(name) == value
        if case.status == 200:
            assert reply.header("x-fairq-queue-ms") is not None
            return
        assert reply.header("x-fairq-outcome") == outcome.value
        assert reply.header("content-type") == "application/json"
        assert reply.error.keys() == {"message", "type", "param", "code"}
        assert reply.error["type"] == case.kind
        promised = case.retry_after or "retry-after" in case.headers
        assert (reply.header("retry-after") is not None) == promised
        if promised:
            assert 1 <= int(reply.header("retry-after") or "") <= 32


def test_no_request_can_be_over_a_rate_yet() -> None:
    """`refused-rate-limit` is in the closed enum for limits by rate. There is nothing to configure one by: when there
    is, it needs a row above."""
    assert CASES[Outcome.REFUSED_RATE_LIMIT] is None
    fields = (*Tenant.model_fields, *TenantDefaults.model_fields)
    assert not [name for name in fields if "rate" in name or "per_minute" in name]


@run
async def test_what_an_upstream_refuses_passes_through() -> None:
    """Its own 4xx and 5xx, body and all, are the answer; the record and a header say that it was the upstream."""
    async with world() as w:
        for status in (400, 404, 422, 429, 500, 503):
            body = {"error": {"message": f"no {status}", "type": "engine", "param": None, "code": None}}
            w.upstream.enqueue(answer(body, status, [("retry-after", "7")]))
            reply = await w.post(CHAT, chat(), x_request_id=f"r{status}")
            assert (reply.status_code, reply.json()) == (status, body)
            assert reply.headers["x-fairq-outcome"] == "failed-upstream"
            assert reply.headers["retry-after"] == "7"
            assert w.outcome(f"r{status}") is Outcome.FAILED_UPSTREAM
        await w.idle()
        assert {record.status for record in w.ended} == {400, 404, 422, 429, 500, 503}
        assert all(record.actual == 0 for record in w.ended)


@run
async def test_a_redirect_is_not_followed() -> None:
    async with world(upstreams=2) as w:
        w.upstream.enqueue(answer(b"", 307, [("location", w.upstreams[1].url + CHAT)]))
        reply = await w.post(CHAT, chat(), x_request_id="it")
        assert (reply.status_code, w.outcome("it")) == (307, Outcome.FAILED_UPSTREAM)
        assert [upstream.seen for upstream in w.upstreams] == [1, 0]
        await w.idle()


@run
async def test_an_unreachable_upstream_is_not_the_clients_fault_nor_its_wait() -> None:
    """No upstream is 503, never 429; it is said at once unless the configuration lets requests wait for one."""
    async with world(pool="wait_for_upstream: 100ms") as w:
        [pool] = w.gateway.config.pools
        none = pool.model_copy(update={"upstreams": ()})
        w.gateway.reload(w.gateway.config.model_copy(update={"pools": (none,)}))
        task = w.later(CHAT, chat())
        await w.waiting(1)
        reply = await task
        assert (reply.status_code, reply.headers["x-fairq-outcome"]) == (503, "refused-no-upstream")
        await w.idle()
