"""Reload and shutdown (E-9, E-10): nothing that waits or runs is lost, and a bad reload changes nothing."""

import asyncio
import json
import re
from fractions import Fraction
from typing import Any

import pytest
from tests.gateway.harness import CHAT, Lines, World, chat, read_stream, run, world
from tests.gateway.wire import Wire, request

from fairq.core.errors import FairqError
from fairq.core.lifecycle import Outcome
from fairq.gateway.config import Config, parse
from fairq.gateway.gateway import Gateway
from fairq.gateway.keys import config_line
from fairq.testing.clock import eventually
from fairq.testing.replies import Gate, completion, spaced, stream
from fairq.testing.upstream import ScriptedUpstream

TRUSTED = """
identity: {trusted_tenant_headers_from: [127.0.0.1], anonymous: allow}
tenants: [{id: alice, weight: 3}, {id: bob}]
"""


def with_upstreams(config: Config, upstreams: list[dict[str, Any]]) -> Config:
    [pool] = json.loads(config.model_dump_json(exclude_unset=True))["pools"]
    [checked] = parse(json.dumps({"pools": [pool | {"upstreams": upstreams}]})).pools
    return config.model_copy(update={"pools": (checked,)})


def listed(name: str, server: ScriptedUpstream, slots: int) -> dict[str, Any]:
    return {"name": name, "url": server.url, "max_inflight": slots}


async def queue_up(w: World, tenant: str, count: int) -> list[asyncio.Task[Any]]:
    before = w.pool.scheduler.policy.waiting()
    tasks = [w.later(CHAT, chat(), x_fairq_tenant=tenant, x_request_id=f"{tenant}{i}") for i in range(count)]
    await w.waiting(before + count)
    return tasks


@run
async def test_reload_loses_nobody() -> None:
    """E-9: weights change, a tenant with ten queued requests is removed; everybody is served, by the new weights."""
    async with world(TRUSTED, slots=1) as w:
        w.upstream.enqueue([Gate("go"), *completion(1)])
        first = w.later(CHAT, chat())
        await w.running(1)
        queued = await queue_up(w, "alice", 10) + await queue_up(w, "bob", 10)
        config = w.gateway.config
        [_, bob] = config.tenants
        changed = w.gateway.reload(
            config.model_copy(update={"tenants": (bob.model_copy(update={"weight": Fraction(5)}),)})
        )
        assert [change.key for change in changed] == ["tenants[alice]", "tenants[bob].weight"]
        assert w.pool.terms("alice").weight == 1
        await w.upstream.release("go")
        assert {reply.status_code for reply in await asyncio.gather(first, *queued)} == {200}
        await w.idle()
        assert [record.outcome for record in w.ended] == [Outcome.COMPLETED] * 21
        order = [command.tenant for command in w.dispatched[1:]]
        assert order[:12].count("bob") == 10  # five of bob's for one of alice's, and none before the reload


@run
async def test_reload_replaces_upstreams_under_load() -> None:
    """E-9: one goes, one comes, one changes its slots, two at once look different; running requests end where they
    run, waiting ones go to what is there."""
    async with world(upstreams=3, slots=1) as w, ScriptedUpstream() as new:
        for upstream in w.upstreams:
            upstream.default = lambda seen: [Gate("go"), *completion(1)]
        running = [w.later(CHAT, chat()) for _ in range(3)]
        await w.running(3)
        waiting = [w.later(CHAT, chat()) for _ in range(6)]
        await w.waiting(6)
        kept, more = w.upstreams[0], w.upstreams[1]
        w.gateway.reload(
            with_upstreams(w.gateway.config, [listed("u0", kept, 2), listed("u1", more, 2), listed("u9", new, 1)])
        )
        await w.waiting(3)  # one more on u0, one on u1, one on u9
        assert {task.done() for task in (*running, *waiting)} == {False}
        await eventually(lambda: [upstream.standing_at("go") for upstream in w.upstreams] == [2, 2, 1])
        for upstream in w.upstreams:
            upstream.default = lambda seen: completion(1)
        for upstream, count in ((kept, 2), (more, 2), (w.upstreams[2], 1)):
            await upstream.release("go", count)
        replies = await asyncio.gather(*running, *waiting)
        assert {reply.status_code for reply in replies} == {200}
        await w.idle()
        assert set(w.pool.backends) == set(w.pool.scheduler.upstreams) == {"u0", "u1", "u9"}
        assert w.upstreams[2].seen == 1
        assert new.seen >= 1
        await eventually(lambda: not w.upstreams[2].open_connections, "the connections of the one that went are closed")


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"pools": [{"name": "default", "policy": "fcfs"}]}, "pools[default].policy"),
        ({"pools": [{"name": "another"}]}, "pools[default]"),
        ({"listen": {"port": 1}}, "listen.port"),
        ({"limits": {"connections_per_peer": 5}}, "limits.connections_per_peer"),
    ],
)
@run
async def test_a_bad_reload_changes_nothing(change: dict[str, Any], key: str) -> None:
    """E-9: it says which key, and neither the good parts of it nor anything else has been applied."""
    async with world(TRUSTED, slots=1) as w:
        w.upstream.enqueue([Gate("go"), *completion(1)])
        first = w.later(CHAT, chat())
        await w.running(1)
        queued = await queue_up(w, "alice", 3)
        before, lines = w.gateway.config, len(w.lines.all)
        given = {"tenants": [{"id": "alice", "weight": 7}], "queue": {"requests": 1}} | change
        for pool in given.get("pools", [{"name": "default"}]):
            pool["upstreams"] = [listed("u0", w.upstream, 1)]
        if "pools" not in given:
            given["pools"] = [{"name": "default", "upstreams": [listed("u0", w.upstream, 1)]}]
        given.setdefault("listen", {"port": 0})
        with pytest.raises(FairqError, match=rf"^{re.escape(key)}.*: needs a restart of the gateway"):
            w.gateway.reload(parse(json.dumps(given)))
        assert w.gateway.config is before
        assert w.pool.terms("alice").weight == 3
        assert w.pool.admission.total.requests == before.queue.requests
        assert len(w.lines.all) == lines
        await w.upstream.release("go")
        assert {reply.status_code for reply in await asyncio.gather(first, *queued)} == {200}
        await w.idle()


@run
async def test_a_reload_that_fails_while_it_is_prepared_changes_nothing() -> None:
    """A certificate that was there when the file was checked, and is gone when the upstream is made."""
    async with world(TRUSTED) as w:
        config = w.gateway.config
        [pool] = config.pools
        [upstream] = pool.upstreams
        gone = upstream.model_copy(update={"url": "https://127.0.0.1:1", "ca": "/nowhere/ca.pem", "name": "u1"})
        bad = config.model_copy(
            update={"tenants": (), "pools": (pool.model_copy(update={"upstreams": (upstream, gone)}),)}
        )
        with pytest.raises(OSError, match="No such file"):
            w.gateway.reload(bad)
        assert w.gateway.config is config
        assert set(w.pool.backends) == {"u0"}
        assert w.pool.terms("alice").weight == 3
        assert (await w.post(CHAT, chat())).status_code == 200
        await w.idle()


@run
async def test_a_removed_key_is_revoked_at_once() -> None:
    """Its running and waiting requests go on; the next one with it is refused. The gateway does not open by that."""
    keys = f"tenants: [{{id: alice, keys: ['{config_line('fq-one')}', '{config_line('fq-two')}']}}]"
    async with world(keys, slots=1) as w:
        w.upstream.enqueue([Gate("go"), *completion(1)])
        one, two = {"authorization": "Bearer fq-one"}, {"authorization": "Bearer fq-two"}
        running = w.later(CHAT, chat(), **one)
        await w.running(1)
        waiting = w.later(CHAT, chat(), **one)
        await w.waiting(1)
        [alice] = w.gateway.config.tenants
        for left in ((config_line("fq-two"),), ()):
            w.gateway.reload(
                w.gateway.config.model_copy(update={"tenants": (alice.model_copy(update={"keys": left}),)})
            )
            assert (await w.post(CHAT, chat(), **one)).status_code == 401
        assert (await w.post(CHAT, chat(), **two)).status_code == 401
        assert (await w.post(CHAT, chat())).status_code == 401
        await w.upstream.release("go")
        assert [(await running).status_code, (await waiting).status_code] == [200, 200]
        await w.idle()


@run
async def test_times_change_by_a_reload() -> None:
    """What is not marked as needing a restart takes effect: here, how long an upstream may stay silent."""
    async with world() as w:
        w.upstream.enqueue([Gate("never")])
        shorter = w.gateway.config.timeouts.model_copy(update={"first_byte": 0.05, "keep_alive": 1.0})
        w.gateway.reload(w.gateway.config.model_copy(update={"timeouts": shorter}))
        assert (await w.post(CHAT, chat())).status_code == 504
        assert w.gateway.server.limits.idle_seconds == 1.0
        await w.idle()


@run
async def test_shutdown_with_five_queued_and_five_streaming() -> None:
    """E-10: streams end whole, within the grace; queued requests get 503 at once, and nothing new is taken."""
    async with world("timeouts: {drain: 10s}", slots=5) as w:
        w.upstream.default = lambda seen: spaced(stream(4), Gate("more"))

        async def streaming() -> list[str]:
            async with w.client.stream("POST", CHAT, json=chat(stream=True)) as response:
                assert response.status_code == 200
                return await read_stream(response)

        streams = [asyncio.create_task(streaming()) for _ in range(5)]
        await w.running(5)
        queued = [w.later(CHAT, chat()) for _ in range(5)]
        await w.waiting(5)
        drained = asyncio.create_task(w.gateway.drain())
        for reply in await asyncio.gather(*queued):
            assert (reply.status_code, reply.headers["x-fairq-outcome"]) == (503, "refused-shutting-down")
            assert (reply.headers["retry-after"], reply.headers["connection"]) == ("1", "close")
        assert not drained.done()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", w.gateway.server.port)
        await w.upstream.release("more", 5 * (len(stream(4)) - 1))
        assert all(lines[-1] == "data: [DONE]" for lines in await asyncio.gather(*streams))
        await asyncio.wait_for(drained, 5)
        await w.idle()
        outcomes = [record.outcome for record in w.ended]
        assert outcomes.count(Outcome.REFUSED_SHUTTING_DOWN) == outcomes.count(Outcome.COMPLETED) == 5
        assert w.upstream.seen == 5


@run
async def test_the_grace_is_over() -> None:
    """E-10: a stream that does not end gets an error event and no [DONE]; a request without a byte yet gets 503; the
    upstream's connections are closed."""
    async with world("timeouts: {drain: 100ms}", slots=2) as w:
        w.upstream.enqueue([*stream(4)[:3], Gate("never")], [Gate("never")])
        async with Wire(w.gateway.server.port) as one, Wire(w.gateway.server.port) as two:
            one.send(request(CHAT, chat(stream=True), x_request_id="streaming"))
            head = await one.head()
            two.send(request(CHAT, chat(), x_request_id="thinking"))
            await w.running(2)
            await w.gateway.drain()
            broken, refused = await one.body(head), await two.reply()
        *_, last, empty = broken.body.split(b"\n\n")
        assert json.loads(last.removeprefix(b"data: "))["error"]["code"] == "failed-midstream"
        assert empty == b""
        assert broken.whole
        assert b"[DONE]" not in broken.body
        assert (refused.status, refused.header("x-fairq-outcome")) == (503, "refused-shutting-down")
        await w.idle()
        assert w.outcome("streaming") is Outcome.FAILED_MIDSTREAM
        assert w.outcome("thinking") is Outcome.REFUSED_SHUTTING_DOWN
        await eventually(lambda: not w.upstream.open_connections)


@run
async def test_a_body_that_becomes_whole_during_the_shutdown_is_refused() -> None:
    async with world("timeouts: {drain: 5s}") as w, Wire(w.gateway.server.port) as wire:
        whole = request(CHAT, chat(), x_request_id="late")
        wire.send(whole[:-1])
        await eventually(lambda: any(c.exchange is not None for c in w.gateway.server.connections))
        drained = asyncio.create_task(w.gateway.drain())
        await eventually(lambda: w.gateway.draining)
        wire.send(whole[-1:])
        reply = await wire.reply()
        assert (reply.status, w.outcome("late")) == (503, Outcome.REFUSED_SHUTTING_DOWN)
        await drained
        await w.idle()


@run
async def test_a_port_that_is_taken_leaves_nothing_running() -> None:
    """The pools had started before the listener failed: their probes and connections end."""
    async with world() as w:
        taken = w.gateway.config.listen.model_copy(update={"port": w.gateway.server.port})
        second = Gateway(w.gateway.config.model_copy(update={"listen": taken}), Lines())
        before = asyncio.all_tasks()
        with pytest.raises(OSError, match="in use"):
            await second.start()
        await eventually(lambda: asyncio.all_tasks() <= before)
        assert not any(backend.client.links for pool in second.pools.values() for backend in pool.backends.values())


@run
async def test_a_pool_that_becomes_one_for_every_model_lists_them() -> None:
    async with world(pool="models: [m]") as w:
        assert [*w.pool.models()] == ["m"]
        [pool] = w.gateway.config.pools
        [upstream] = pool.upstreams
        often = upstream.health.model_copy(update={"interval": 0.02})
        pool = pool.model_copy(update={"upstreams": (upstream.model_copy(update={"health": often}),)})
        for models in (("m",), ("m", "*")):  # the second time nothing changes about the upstream itself
            wider = pool.model_copy(update={"models": models})
            w.gateway.reload(w.gateway.config.model_copy(update={"pools": (wider,)}))
        await eventually(lambda: [*w.pool.models()] == ["m", "scripted"])


@run
async def test_a_revoked_key_is_refused_on_a_connection_that_used_it_before() -> None:
    """The very same bytes over one socket: what was read of a head holds only as long as the rules it was read by."""
    keys = f"tenants: [{{id: alice, keys: ['{config_line('fq-one')}', '{config_line('fq-two')}']}}]"
    async with world(keys) as w, Wire(w.gateway.server.port) as wire:
        bytes_ = request(CHAT, chat(), authorization="Bearer fq-one")
        assert [(await wire.ask(bytes_)).status for _ in range(3)] == [200] * 3
        [connection] = w.gateway.server.connections
        [alice] = w.gateway.config.tenants
        left = alice.model_copy(update={"keys": alice.keys[1:]})
        w.gateway.reload(w.gateway.config.model_copy(update={"tenants": (left,)}))
        assert (await wire.ask(bytes_)).status == 401
        assert w.gateway.server.connections == {connection}
        w.gateway.reload(w.gateway.config.model_copy(update={"tenants": (alice,)}))
        assert (await wire.ask(bytes_)).status == 200
        await w.idle()
