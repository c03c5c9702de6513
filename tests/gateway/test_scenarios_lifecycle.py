"""Slots and lifecycle, the rest of A: clients that leave at any moment, and the races between leaving and going."""

import asyncio
import random
import socket
from collections import Counter

import pytest
from tests.gateway.harness import CHAT, World, chat, run, world
from tests.gateway.wire import Wire, request

from fairq.core import events as ev
from fairq.core.lifecycle import Outcome
from fairq.gateway.config_sections import Upstream
from fairq.testing.clock import eventually
from fairq.testing.replies import Early, Gate, Hang, Pause, Script, Send, answer, completion, head, spaced, stream


def reload_upstreams(w: World, *more: Upstream) -> None:
    """Reload with these upstreams beside those that are there."""
    config = w.gateway.config
    [pool] = config.pools
    w.gateway.reload(
        config.model_copy(update={"pools": (pool.model_copy(update={"upstreams": (*pool.upstreams, *more)}),)})
    )


def one_outcome_each(w: World, ids: list[str]) -> Counter[str]:
    """Outcomes of these requests, each of which has exactly one."""
    found = {record.id: record.outcome for record in (*w.ended, *w.refused)}
    assert sorted(found) == sorted(ids)
    assert sorted(record.id for record in w.logged) == sorted(ids)
    return Counter(found.values())


@run
async def test_clients_that_give_up_at_any_moment_leave_nothing_behind() -> None:
    """A-5: a hundred clients time out while queued, while fairq connects, before headers, and in the middle."""
    dice = random.Random(5)
    scripts: list[Script] = [
        [Hang()],
        [*stream(3)[:1], Hang()],
        spaced(stream(30), Pause(0.005)),
        [Pause(0.02), *completion(2)],
    ]
    # A listener whose queue of unaccepted connections is full lets nobody in and sends nobody away.
    with socket.socket() as mute, socket.socket() as filler:
        mute.bind(("127.0.0.1", 0))
        mute.listen(0)
        filler.connect(mute.getsockname())
        async with world(slots=3) as w:
            w.upstream.default = lambda seen: dice.choice(scripts)
            url = f"http://127.0.0.1:{mute.getsockname()[1]}"
            reload_upstreams(w, Upstream(url=url, max_inflight=2, name="mute"))

            async def give_up(number: int) -> None:
                async with Wire(w.gateway.server.port) as wire:
                    wire.send(request(CHAT, chat(stream=number % 2 == 0), x_request_id=f"r{number}"))
                    await asyncio.sleep(dice.random() * 0.4)
                    if number % 3 == 0:
                        wire.reset()

            await asyncio.gather(*map(give_up, range(100)))
            await w.idle()
            outcomes = one_outcome_each(w, [f"r{number}" for number in range(100)])
            assert outcomes.keys() <= {Outcome.CANCELLED_WAITING, Outcome.CANCELLED_RUNNING, Outcome.COMPLETED}
            assert min(outcomes[Outcome.CANCELLED_WAITING], outcomes[Outcome.CANCELLED_RUNNING]) > 0
            assert any(record.upstream == "mute" for record in w.ended)
            await eventually(lambda: w.upstream.active == 0)


@run
async def test_leaving_at_the_moment_of_dispatch_is_one_thing_or_the_other() -> None:
    """A-8: the slot becomes free and the waiting client leaves within the same few turns of the loop."""
    async with world(slots=1) as w:
        for turns in range(40):
            w.upstream.enqueue([Gate("go"), *completion(1)], completion(1))
            async with Wire(w.gateway.server.port) as first, Wire(w.gateway.server.port) as second:
                first.send(request(CHAT, chat(), x_request_id=f"first{turns}"))
                await w.running(1)
                second.send(request(CHAT, chat(), x_request_id=f"second{turns}"))
                await w.waiting(1)
                await w.upstream.release("go")
                for _ in range(turns // 2):
                    await asyncio.sleep(0)
                second.reset() if turns % 2 else second.writer.close()
                assert (await first.reply()).status == 200
            await w.idle()
            w.upstream._queue.clear()
        outcomes = Counter(record.outcome for record in w.ended if record.id.startswith("second"))
        assert outcomes.total() == 40
        assert outcomes.keys() <= {Outcome.CANCELLED_WAITING, Outcome.CANCELLED_RUNNING, Outcome.COMPLETED}
        assert len(outcomes) > 1, "the race was never close"
        for record in w.ended:
            if record.outcome is Outcome.CANCELLED_WAITING:
                assert record.charge == 0


@run
async def test_a_client_that_leaves_while_its_request_is_being_dispatched() -> None:
    """A-8 at its narrowest: `Cancelled` is said inside the very event that dispatches."""
    async with world(slots=1) as w:
        w.upstream.enqueue([Gate("go"), *completion(1)], [Hang()])
        first = w.later(CHAT, chat(), x_request_id="first")
        await w.running(1)
        second = w.later(CHAT, chat(), x_request_id="second")
        await w.waiting(1)
        call = w.pool.dispatcher.calls["second"]
        dispatch = call.dispatch

        class Leaving:
            """The call, whose client is found gone just before it would be sent."""

            request, size = call.request, call.size
            reject, abort, cut, ended = call.reject, call.abort, call.cut, call.ended

            def dispatch(self, command: object) -> None:
                w.pool.dispatcher.emit(ev.Cancelled, id="second")
                dispatch(command)  # type: ignore[arg-type]

        w.pool.dispatcher.calls["second"] = Leaving()
        await w.upstream.release("go")
        assert (await first).status_code == 200
        await w.idle()
        assert w.outcome("second") is Outcome.CANCELLED_RUNNING
        second.cancel()


@run
async def test_leaving_before_the_body_is_there_is_an_outcome_too() -> None:
    async with world() as w, Wire(w.gateway.server.port) as wire:
        whole = request(CHAT, chat("a body that never comes whole"), x_request_id="half")
        wire.send(whole[:-10])
        await eventually(lambda: w.gateway.server.connections)
        await eventually(lambda: any(c.exchange is not None for c in w.gateway.server.connections))
        await wire.leave()
        await eventually(lambda: w.refused)
        assert w.outcome("half") is Outcome.CANCELLED_WAITING
        assert w.refused[0].status == 499
        assert w.upstream.seen == 0
        await w.idle()


@run
async def test_leaving_between_two_attempts_takes_no_further_slot() -> None:
    """The first upstream refused; the second is full; the client leaves while its request waits for it."""
    async with world(upstreams=2, slots=1) as w:
        w.upstreams[0].enqueue([Gate("refuse"), *answer({}, 503)])
        w.upstreams[1].enqueue([Gate("go"), *completion(1)])
        async with Wire(w.gateway.server.port) as wire:
            wire.send(request(CHAT, chat(), x_request_id="moving"))
            await w.running(1)
            other = w.later(CHAT, chat(), x_request_id="other")
            await w.running(2)
            await w.upstreams[0].release("refuse")
            await eventually(lambda: w.pool.dispatcher.is_retrying("moving"))
        await eventually(lambda: w.ended)
        assert w.outcome("moving") is Outcome.CANCELLED_RUNNING
        await w.upstreams[1].release("go")
        assert (await other).status_code == 200
        await w.idle()
        assert w.upstreams[1].seen == 1


@run
async def test_a_slot_is_free_while_a_slow_client_still_reads() -> None:
    """The upstream is done and its slot taken by the next one; then the slow client leaves, which is one outcome."""
    async with world(slots=1) as w:
        w.upstream.enqueue(answer(b"x" * 60_000), completion(1))
        async with Wire(w.gateway.server.port, receive_buffer=4096) as wire:
            await eventually(lambda: w.gateway.server.connections)
            [connection] = w.gateway.server.connections
            sock = connection._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            wire.stop_reading()
            wire.send(request(CHAT, chat(), x_request_id="slow"))
            await eventually(lambda: w.of(ev.SlotFreed))
            assert (await w.post(CHAT, chat(), x_request_id="next")).status_code == 200
            assert [record.id for record in w.ended] == ["next"]
        await w.idle()
        assert w.outcome("slow") is Outcome.CANCELLED_RUNNING


@run
async def test_a_reader_that_is_too_slow_is_cut_and_called_so() -> None:
    """`stalled-client`: the upstream is paused meanwhile, and its connection closed at the end."""
    async with world("timeouts: {reader: 300ms}\nlimits: {reader_rate: 1MB}", slots=1) as w:
        w.upstream.enqueue([*answer(b"x" * (64 << 20))])
        async with Wire(w.gateway.server.port) as wire:
            wire.stop_reading()
            wire.send(request(CHAT, chat(), x_request_id="stalled"))
            await eventually(lambda: w.ended)
        await w.idle()
        assert w.outcome("stalled") is Outcome.STALLED_CLIENT
        assert (await w.upstream.request(1)).sent < 64 << 20


@pytest.mark.parametrize("script", [[Early(), Send(head(200, [("content-length", "2")])), Send(b"{}")], answer({})])
@run
async def test_an_upstream_that_answers_before_it_has_the_body(script: Script) -> None:
    """An early answer is passed on, and that connection is not used again."""
    async with world(slots=1) as w:
        w.upstream.enqueue(script, completion(1))
        reply = await w.post(CHAT, chat("y" * 8_000_000))
        assert (reply.status_code, reply.content) == (200, b"{}")
        assert (await w.post(CHAT, chat())).status_code == 200
        await w.idle()
        assert [record.outcome for record in w.ended] == [Outcome.COMPLETED] * 2


@run
async def test_a_bug_that_one_request_meets_costs_no_slot() -> None:
    """Whatever fails inside fairq while a request is sent: it is printed, the client gets 502, the slot is free."""
    printed: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: printed.append(context["exception"]))
    async with world(slots=1) as w:
        backend = w.pool.backends["u0"]
        whole, backend.credential = backend.credential, [(b"authorization", b"broken\r\nvalue")]
        reply = await w.post(CHAT, chat())
        assert reply.status_code == 502
        assert isinstance(printed[0], ValueError)
        backend.credential = whole
        assert (await w.post(CHAT, chat())).status_code == 200
        await w.idle()
        assert [record.outcome for record in w.ended] == [Outcome.FAILED_UPSTREAM, Outcome.COMPLETED]
