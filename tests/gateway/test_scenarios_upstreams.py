"""Upstreams that fail, hang, die and appear (G)."""

import asyncio
import json
import random
from collections import Counter

import pytest
from tests.gateway.harness import CHAT, World, chat, run, world
from tests.gateway.test_scenarios_reload import listed, with_upstreams
from tests.gateway.wire import Wire, ask, request

from fairq.core import events as ev
from fairq.core.cost import Source, Usage
from fairq.core.lifecycle import Outcome
from fairq.gateway.config_sections import Health as HealthConfig
from fairq.gateway.health import Health
from fairq.testing.clock import eventually
from fairq.testing.replies import Gate, Hang, Reset, Script, Send, answer, completion, head, stream
from fairq.testing.upstream import ScriptedUpstream

OFTEN = {"interval": "30ms", "timeout": "30ms", "failures": 3}


def probe(w: World, health: dict[str, object]) -> None:
    """Look after the first upstream's health like this, from now on."""
    upstreams = [listed(f"u{i}", server, 4) for i, server in enumerate(w.upstreams)]
    upstreams[0]["health"] = health
    w.gateway.reload(with_upstreams(w.gateway.config, upstreams))


def in_rotation(w: World) -> list[str]:
    return [name for name, backend in w.pool.backends.items() if backend.health.well]


# G-1
@run
async def test_one_hung_upstream_does_not_block_the_others() -> None:
    """One of three accepts and never answers, probes included: it leaves the rotation, what it held is tried
    elsewhere, the others serve all the while; and it comes back when it answers again."""
    async with world("timeouts: {first_byte: 300ms}", upstreams=3) as w:
        hung = w.upstreams[0]
        hung.default = [Hang()]
        hung.routes["GET /health"] = [Hang()]
        sent = [w.later(CHAT, chat()) for _ in range(30)]
        await eventually(lambda: hung.seen > 0)
        probe(w, OFTEN)
        assert {(await reply).status_code for reply in sent} == {200}
        await eventually(lambda: in_rotation(w) == ["u1", "u2"])
        seen = hung.seen
        assert 0 < seen <= 4
        assert {(await w.post(CHAT, chat())).status_code for _ in range(10)} == {200}
        assert hung.seen == seen
        hung.routes["GET /health"] = answer({})
        hung.default = completion(1)
        await eventually(lambda: in_rotation(w) == ["u0", "u1", "u2"])
        await asyncio.gather(*(w.post(CHAT, chat()) for _ in range(30)))
        assert hung.seen > seen
        await w.idle()
        assert Counter(record.outcome for record in w.ended) == {Outcome.COMPLETED: 70}


@run
async def test_an_upstream_that_fails_everything_but_its_probes_leaves_too() -> None:
    """It always has a free slot, so it would draw every request to itself; and those, once tried, wait out of turn."""
    async with world(upstreams=2) as w:
        broken = w.upstreams[0]
        broken.default = [Reset()]
        replies = [await w.post(CHAT, chat()) for _ in range(20)]
        assert {reply.status_code for reply in replies} == {200}
        assert in_rotation(w) == ["u1"]
        assert broken.seen <= 6  # a connection that was used before is tried twice
        await w.idle()


@run
async def test_requests_alone_never_take_the_last_upstream_out() -> None:
    """A request may fail by its own fault; its sender must not be able to stop the service for everybody."""
    async with world() as w:
        w.upstream.default = [Reset()]
        for _ in range(10):
            assert (await w.post(CHAT, chat())).status_code == 502
        w.upstream.default = answer({}, 500)
        for _ in range(10):
            assert (await w.post(CHAT, chat())).status_code == 500
        assert in_rotation(w) == ["u0"]
        assert w.complaints == []
        w.upstream.default = completion(1)
        assert (await w.post(CHAT, chat())).status_code == 200
        await w.idle()


@run
async def test_a_dead_upstream_is_noticed_by_its_first_failing_requests() -> None:
    """No need to wait for the probe's interval: a failing request asks for a probe at once."""
    async with world() as w:
        probe(w, {"interval": "10m", "timeout": "1s", "failures": 2})
        backend = w.pool.backends["u0"]
        await eventually(lambda: backend._probe is not None and backend._probe.over)
        await w.upstream.stop()
        assert (await w.post(CHAT, chat())).headers["x-fairq-outcome"] == "failed-connect"
        await eventually(lambda: in_rotation(w) == [])
        assert (await w.post(CHAT, chat())).headers["x-fairq-outcome"] == "refused-no-upstream"
        assert (await w.client.get("/ready")).status_code == 503
        await w.idle()


@run
async def test_a_probe_whose_answer_never_ends_ends() -> None:
    """It has answered, so it is not well and not ill: without its whole answer in time the probe has failed."""
    async with world(upstreams=2) as w:
        w.upstreams[0].routes["GET /health"] = [Send(head(200, [("content-length", "9")])), Hang()]
        probe(w, OFTEN)
        await eventually(lambda: in_rotation(w) == ["u1"])
        w.upstreams[0].routes["GET /health"] = answer({})
        await eventually(lambda: in_rotation(w) == ["u0", "u1"])


def test_the_rule_of_rotation_by_itself() -> None:
    """Against the rule as its docstring says it, written a second time, over random histories."""
    dice = random.Random(2)
    for _ in range(200):
        failures = dice.randint(1, 4)
        told: list[str] = []
        in_and_out: list[bool] = []
        probes = 0

        def probe_now() -> None:
            nonlocal probes
            probes += 1

        last = dice.random() < 0.3

        def changed(why: str) -> None:
            told.append(why)  # noqa: B023
            in_and_out.append(health.well)  # noqa: B023

        health = Health(HealthConfig(failures=failures), changed, probe_now, lambda: not last)  # noqa: B023
        well, requests, bad_probes, asked = True, 0, 0, 0
        for _ in range(60):
            match dice.randrange(5):
                case 0:
                    health.answered(dice.choice([200, 404, 429, 501, 505]))
                    requests = 0
                case 1 | 2 as how:
                    if how == 1:
                        health.answered(dice.choice([500, 502, 503, 504, 507, 599]))
                    else:
                        health.failed("reset")
                    requests += 1
                    if well and requests >= failures and not last:
                        well, requests = False, failures - 1
                    elif well:
                        asked += 1
                case 3:
                    health.probed(dice.choice([200, 404]), "")
                    well, bad_probes = True, 0
                case _:
                    health.probed(*dice.choice([(0, "silence"), (500, ""), (503, "")]))
                    bad_probes += 1
                    well = well and bad_probes + requests < failures
            assert health.well == well
            assert probes == asked
        assert all(a != b for a, b in zip([True, *in_and_out], in_and_out, strict=False)), "told only of changes"
        for well, why in zip(in_and_out, told, strict=True):
            assert ("reset" in why or "answered 5" in why or "silence" in why) != well


# G-2
@run
async def test_death_in_the_middle_of_a_stream() -> None:
    """The client gets what came, an error event and the connection's end; the charge is for the ten chunks."""
    async with world(upstreams=2) as w:
        for upstream in w.upstreams:
            upstream.default = [*stream(50)[:11], Reset()]
        async with Wire(w.gateway.server.port) as wire:
            reply = await wire.ask(request(CHAT, chat("tell me", stream=True), x_request_id="it"))
            assert await wire.closed()
        events = reply.body.removesuffix(b"\n\n").split(b"\n\n")
        assert len(events) == 11
        assert json.loads(events[-1].removeprefix(b"data: "))["error"]["code"] == "failed-midstream"
        assert reply.whole
        assert b"[DONE]" not in reply.body
        await w.idle()
        [record], [dispatch] = w.ended, w.dispatched
        assert record.outcome is Outcome.FAILED_MIDSTREAM
        assert record.usage == Usage(dispatch.input_tokens, 10, 0, Source.COUNTED)
        assert record.actual == dispatch.input_tokens + 2 * 10  # alpha 1, beta 2
        assert sum(upstream.seen for upstream in w.upstreams) == 1


# G-3
BEFORE: dict[str, tuple[Script, Outcome]] = {
    "reset": ([Reset()], Outcome.FAILED_UPSTREAM),
    "closed": ([Send(b"HTTP/1.1 200 OK\r\n"), Reset()], Outcome.FAILED_UPSTREAM),
    "502": (answer({}, 502), Outcome.FAILED_UPSTREAM),
    "503": (answer({}, 503), Outcome.FAILED_UPSTREAM),
    "504": (answer({}, 504), Outcome.FAILED_UPSTREAM),
    "garbage": ([Send(b"\0\0\0\0 no HTTP\r\n\r\n")], Outcome.FAILED_UPSTREAM),
    "two lengths": ([Send(head(200, [("content-length", "1"), ("content-length", "2")]))], Outcome.FAILED_UPSTREAM),
    "silence": ([Hang()], Outcome.FAILED_TIMEOUT),
}


@pytest.mark.parametrize(("script", "outcome"), BEFORE.values(), ids=BEFORE.keys())
@run
async def test_failure_before_the_first_byte_is_retried_once_elsewhere(script: Script, outcome: Outcome) -> None:
    """One charge, two attempts, the second on the other upstream; if that fails as well the client is told so."""
    async with world("timeouts: {first_byte: 100ms}", upstreams=2) as w:
        w.upstreams[0].default = script
        reply = await w.post(CHAT, chat(), x_request_id="saved")
        assert reply.status_code == 200
        first, second = w.dispatched
        assert (first.upstream, second.upstream) == ("u0", "u1")
        assert (first.charge > 0, second.charge) == (True, 0)
        assert (await w.upstreams[1].request(1)).json == (await w.upstreams[0].request(1)).json
        w.upstreams[1].default = script
        lost = await w.post(CHAT, chat(), x_request_id="lost")
        await w.idle()
        assert w.outcome("saved") is Outcome.COMPLETED
        assert w.outcome("lost") is outcome
        passed_on = script == answer({}, lost.status_code)
        assert lost.status_code == outcome.status or passed_on
        assert [record.attempts for record in w.ended] == [2, 2]
        assert [record.charge for record in w.ended] == [w.dispatched[0].charge, w.dispatched[2].charge]


@pytest.mark.parametrize("status", [400, 401, 404, 422, 429, 500])
@run
async def test_an_answer_is_not_retried(status: int) -> None:
    """The engine has judged the request: asking another one would only do the work, or the harm, twice."""
    async with world(upstreams=2) as w:
        w.upstreams[0].default = answer({"error": {}}, status)
        assert (await w.post(CHAT, chat())).status_code == status
        assert w.upstreams[1].seen == 0
        await w.idle()


@run
async def test_nothing_is_retried_after_the_first_byte() -> None:
    async with world(upstreams=2) as w:
        w.upstreams[0].default = [*stream(3)[:1], Reset()]  # only the head: the status is out
        reply = await ask(w.gateway.server.port, request(CHAT, chat(stream=True)))
        assert b"failed-midstream" in reply.body
        assert w.upstreams[1].seen == 0
        await w.idle()


@run
async def test_a_lone_upstream_is_not_asked_twice() -> None:
    async with world() as w:
        w.upstream.default = answer({"sorry": True}, 503)
        reply = await w.post(CHAT, chat())
        assert (reply.status_code, reply.json(), w.upstream.seen) == (503, {"sorry": True}, 1)
        await w.idle()


@run
async def test_a_closed_keep_alive_connection_is_no_failure() -> None:
    """vLLM closes idle connections after five seconds: the request goes over a new one, and is no retry."""
    async with world() as w:
        assert (await w.post(CHAT, chat())).status_code == 200
        assert w.upstream.close_idle() > 0
        assert (await w.post(CHAT, chat())).status_code == 200
        await w.idle()
        assert [record.attempts for record in w.ended] == [1, 1]


# G-8
@run
async def test_scale_from_zero() -> None:
    """No upstream at all; one appears while the requests' time to live lasts: they are served, by their shares."""
    async with world("queue: {time_to_live: 20s}", pool="wait_for_upstream: 20s", slots=1) as w:
        config = w.gateway.config
        w.gateway.reload(with_upstreams(config, []))
        assert (await w.client.get("/ready")).status_code == 503
        tasks = [w.later(CHAT, chat()) for _ in range(5)]
        await w.waiting(5)
        w.gateway.reload(config)
        assert {(await task).status_code for task in tasks} == {200}
        assert (await w.client.get("/ready")).status_code == 200
        await w.idle()


@run
async def test_scale_from_zero_takes_too_long() -> None:
    """Whichever is over first, the wait for an upstream or the time to live, ends the request and says which."""
    for ttl, wait, outcome in (("20s", "80ms", "refused-no-upstream"), ("80ms", "20s", "expired")):
        async with world(f"queue: {{time_to_live: {ttl}}}", pool=f"wait_for_upstream: {wait}") as w:
            w.gateway.reload(with_upstreams(w.gateway.config, []))
            reply = await w.post(CHAT, chat())
            assert reply.headers["x-fairq-outcome"] == outcome
            assert int(reply.headers["retry-after"]) >= 1
            await w.idle()


@run
async def test_an_upstream_that_starts_slowly_gets_its_requests_when_it_is_up() -> None:
    """A cold start: connection refused, then 503 while it loads, then well."""
    async with ScriptedUpstream() as cold, world("queue: {time_to_live: 20s}", pool="wait_for_upstream: 20s") as w:
        await cold.stop()
        only = listed("cold", cold, 2) | {"health": OFTEN}
        w.gateway.reload(with_upstreams(w.gateway.config, [only]))
        await eventually(lambda: in_rotation(w) == [])
        task = w.later(CHAT, chat())
        await w.waiting(1)
        cold.routes["GET /health"] = answer({"status": "loading"}, 503)
        await cold.start()
        before = cold.routed["GET /health"]
        await eventually(lambda: cold.routed["GET /health"] > before + 1)
        assert not task.done()
        cold.routes["GET /health"] = answer({})
        assert (await task).status_code == 200
        await w.idle()


@run
async def test_a_drained_upstream_finishes_what_it_has_and_gets_nothing_new() -> None:
    async with world(upstreams=2, slots=1) as w:
        for upstream in w.upstreams:
            upstream.default = lambda seen: [Gate("go"), *completion(1)]
        running = [w.later(CHAT, chat()) for _ in range(2)]
        await w.running(2)
        w.gateway.drain_upstream("default", "u0", True)
        queued = [w.later(CHAT, chat()) for _ in range(2)]
        await w.waiting(2)
        await w.upstreams[0].release("go")
        await eventually(lambda: w.upstreams[0].active == 0)
        assert w.pool.scheduler.policy.waiting() == 2
        await w.upstreams[1].release("go", 3)
        assert {(await task).status_code for task in (*running, *queued)} == {200}
        assert [upstream.seen for upstream in w.upstreams] == [1, 3]
        w.gateway.drain_upstream("default", "u0", False)
        assert w.of(ev.UpstreamChanged)[-1].draining is False
        await w.idle()
