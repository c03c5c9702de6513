"""Upstreams that are replaced, renamed and removed while they work: nobody is lost, and the old speak no more."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.gateway.harness import CHAT, World, chat, run, world
from tests.gateway.test_scenarios_reload import listed, with_upstreams

from fairq.core import events as ev
from fairq.testing.clock import eventually
from fairq.testing.replies import Hang, Reset, completion
from fairq.testing.upstream import ScriptedUpstream

NEVER = {"interval": "10m"}  # but for the first probe, which is at once


def list_upstreams(w: World, *upstreams: dict[str, Any]) -> None:
    w.gateway.reload(with_upstreams(w.gateway.config, list(upstreams)))


def told(w: World) -> dict[str, tuple[bool, bool]]:
    """What the scheduler believes of each upstream: is it healthy, does it drain?"""
    return {name: (each.healthy, each.draining) for name, each in w.pool.scheduler.upstreams.items()}


@asynccontextmanager
async def held(w: World, count: int) -> AsyncIterator[list["asyncio.Task[Any]"]]:
    """So many requests that run and get no answer."""
    for upstream in w.upstreams:
        upstream.default = [Hang()]
    tasks = [w.later(CHAT, chat()) for _ in range(count)]
    await w.running(count)
    await eventually(lambda: sum(upstream.seen for upstream in w.upstreams) == count)
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()


@run
async def test_the_death_of_a_replaced_server_does_not_take_its_successor_down() -> None:
    """The same name at another address; what still ran on the old server fails there, more often than is allowed."""
    async with world(slots=6) as w, ScriptedUpstream() as new, held(w, 5) as running:
        list_upstreams(w, listed("u0", new, 6) | {"health": NEVER})
        await w.upstream.stop()
        assert {(await task).status_code for task in running} == {502}
        assert told(w) == {"u0": (True, False)}
        assert (await w.post(CHAT, chat())).status_code == 200
        assert new.seen == 1
        await w.idle()
        assert all(line.healthy for line in w.of(ev.UpstreamChanged))


@run
async def test_a_removed_server_stays_removed_when_it_dies() -> None:
    async with world(upstreams=2) as w, held(w, 8):
        list_upstreams(w, listed("u0", w.upstreams[0], 4))
        await w.upstreams[1].stop()
        await eventually(lambda: not w.pool._leaving)
        assert told(w) == {"u0": (True, False)}


@run
async def test_a_probe_of_a_removed_server_that_fails_meanwhile_says_nothing() -> None:
    """Removal and the probe's failure in one turn of the loop."""
    async with world(upstreams=2) as w:
        leaving = w.pool.backends["u1"]
        list_upstreams(w, listed("u0", w.upstreams[0], 4))
        for _ in range(3):
            leaving.health.probed(503, "")
            leaving.health.failed("reset")
        assert told(w) == {"u0": (True, False)}
        assert w.complaints == []


@run
async def test_a_renamed_upstream_keeps_its_queue() -> None:
    """The last of its pool gets another name: what waits goes there, and is not refused between the two."""
    async with world(slots=1) as w, held(w, 1):
        waiting = [w.later(CHAT, chat()) for _ in range(5)]
        await w.waiting(5)
        w.upstream.default = completion(1)
        list_upstreams(w, listed("renamed", w.upstream, 1))
        assert {(await task).status_code for task in waiting} == {200}
        assert set(told(w)) == {"renamed"}


@run
async def test_a_request_that_is_due_when_its_upstream_is_removed_is_still_sent_there() -> None:
    """In one turn of the loop a client leaves, so that the next request is due on its slot, and the file takes that
    upstream away."""
    async with world(upstreams=2, slots=1) as w, held(w, 2):
        due = w.later(CHAT, chat(), x_request_id="due")
        await w.waiting(1)
        for upstream in w.upstreams:
            upstream.default = completion(1)
        [on_u1] = [id_ for id_, job in w.pool.scheduler.jobs.items() if job.upstream == "u1"]
        w.pool.dispatcher.calls[on_u1].abort()
        list_upstreams(w, listed("u0", w.upstreams[0], 1))
        assert (await due).status_code == 200
        [record] = [record for record in w.ended if record.id == "due"]
        assert (record.upstream, record.attempts) == ("u1", 1)
        assert set(w.pool.backends) == set(told(w)) == {"u0"}


@run
async def test_a_request_sent_to_an_upstream_that_is_not_there_is_tried_elsewhere() -> None:
    """Whatever is wrong with an attempt, its slot comes back and its request does not hang."""
    async with world() as w:
        errors: list[BaseException] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context["exception"]))
        w.pool.dispatcher.emit(ev.UpstreamChanged, upstream="ghost", slots=9, healthy=True, draining=False)
        assert [(await w.post(CHAT, chat())).status_code for _ in range(2)] == [200, 200]
        assert "ghost" in {command.upstream for command in w.dispatched}
        assert all(isinstance(error, KeyError) for error in errors)
        await w.idle()


@run
async def test_a_drain_outlives_a_reload() -> None:
    """An operator has taken it out: another number of slots, or another address, does not bring it back."""
    async with world(upstreams=2) as w, ScriptedUpstream() as new:
        w.gateway.drain_upstream("default", "u0", True)
        for changed in (listed("u0", w.upstreams[0], 9), listed("u0", new, 9)):
            list_upstreams(w, changed, listed("u1", w.upstreams[1], 4))
            assert told(w) == {"u0": (True, True), "u1": (True, False)}
        assert [(await w.post(CHAT, chat())).status_code for _ in range(4)] == [200] * 4
        assert (w.upstreams[0].seen, new.seen) == (0, 0)
        w.gateway.drain_upstream("default", "u0", False)
        assert told(w)["u0"] == (True, False)
        await w.idle()


@run
async def test_what_is_known_of_an_address_outlives_a_reload() -> None:
    """It was out of rotation, and other slots do not bring it back; another address is another server."""
    async with world(upstreams=2) as w, ScriptedUpstream() as new:
        broken, other = w.upstreams[0], listed("u1", w.upstreams[1], 4)
        broken.default, broken.routes["GET /health"] = [Reset()], [Hang()]
        for slots in (4, 5, 6):
            list_upstreams(w, listed("u0", broken, slots) | {"health": NEVER | {"failures": 1}}, other)
            if slots == 4:
                assert (await w.post(CHAT, chat())).status_code == 200
            assert told(w) == {"u0": (False, False), "u1": (True, False)}
        list_upstreams(w, listed("u0", new, 4), other)
        assert told(w) == {"u0": (True, False), "u1": (True, False)}
        await w.idle()
        assert broken.seen == 1
