"""Each phase has its time, measured on a clock that the test moves."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.http1.harness import Clock, MemoryClient, MemoryTransport, Recorder, memory_server, nothing_left, on_asyncio

from fairq.gateway.http1 import ClientLimits, Exchange, Limits, Upstream
from fairq.gateway.http1.client import Transfer
from fairq.gateway.http1.deadlines import Deadlines, Timed
from fairq.gateway.http1.link import Link

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10000\r\n\r\n"
SLACK = 0.5  # two ticks


class Alarm(Timed):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.rang: list[float] = []

    def expire(self) -> None:
        self.rang.append(self.clock.now)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(["arm", "disarm", "forget", "advance", "jump"]), st.floats(0, 20)),
        max_size=40,
    )
)
def test_a_deadline_is_never_early_and_at_most_two_ticks_late(steps: list[tuple[int, str, float]]) -> None:
    clock = Clock()
    alarms = [Alarm(clock) for _ in range(5)]
    due = [math.inf] * 5

    def check() -> None:
        for number, alarm in enumerate(alarms):
            if alarm.rang:
                assert len(alarm.rang) == 1
                assert due[number] <= alarm.rang.pop()
                due[number] = math.inf
            assert due[number] + SLACK >= clock.now

    for number, action, seconds in steps:
        if action == "arm":
            clock.deadlines.arm(alarms[number], seconds)
            due[number] = clock.now + seconds
        elif action in ("disarm", "forget"):
            getattr(clock.deadlines, action)(alarms[number])
            due[number] = math.inf
        elif action == "advance":
            clock.advance(seconds)
        else:
            clock.jump(seconds * 100)
        check()
    for alarm in alarms:
        clock.deadlines.forget(alarm)
    assert not any(clock.deadlines._buckets.values())


def test_an_alarm_may_forget_and_rearm_others_while_it_rings() -> None:
    clock = Clock()
    late = Alarm(clock)

    class Meddler(Alarm):
        def expire(self) -> None:
            super().expire()
            if len(self.rang) == 1:
                clock.deadlines.forget(victim)
                clock.deadlines.arm(late, 5)
                clock.deadlines.arm(self, 1)

    victim, meddler = Alarm(clock), Meddler(clock)
    for alarm in (meddler, victim, late):
        clock.deadlines.arm(alarm, 1)
    clock.now += 2
    clock.deadlines.sweep()
    assert len(meddler.rang) == 1
    clock.advance(1.75)
    assert len(meddler.rang) == 2
    before = len(late.rang)  # it, and the victim, may have rung in the same tick as the meddler, before it
    clock.advance(3 + SLACK)
    assert len(late.rang) == before + 1
    assert len(victim.rang) <= 1


def test_an_idle_connection_is_closed_after_its_time() -> None:
    server, clock = memory_server(lambda exchange: exchange.respond(200, [], b""), Limits(idle_seconds=10))
    client = MemoryClient(server)
    clock.advance(9)
    client.send(GET)
    assert client.answered.startswith(b"HTTP/1.1 200")
    clock.advance(9.9)
    assert not client.closed
    clock.advance(0.1 + SLACK)
    client.transport.settle()
    assert client.transport.lost
    assert nothing_left(server)


@pytest.mark.parametrize("dribble", [False, True])
def test_a_head_must_be_complete_in_its_time_however_many_bytes_come(dribble: bool) -> None:
    server, clock = memory_server(limits=Limits(head_seconds=10))
    client = MemoryClient(server)
    client.send(b"G")
    for byte in b"ET / HT":
        clock.advance(1)
        if dribble:
            client.send(bytes((byte,)))
    assert not client.closed
    clock.advance(3 + SLACK)
    assert client.answered.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in client.answered
    clock.advance(2 + SLACK)
    client.transport.settle()
    assert nothing_left(server)


def test_a_slow_sender_is_cut_off_and_a_steady_one_is_not() -> None:
    refused: list[int] = []

    def app(exchange: Exchange) -> None:
        exchange.on_refused = lambda status, reason: refused.append(status)
        exchange.read_body(lambda body: exchange.respond(200, [], b"%d" % len(body)), 100_000)

    limits = Limits(sender_rate=100, sender_seconds=5)
    server, clock = memory_server(app, limits)
    steady, slow = MemoryClient(server), MemoryClient(server)
    for client in (steady, slow):
        client.send(POST)
    for _ in range(100):
        steady.send(b"x" * 110)
        slow.send(b"x" * 90)
        clock.advance(1)
        if refused:
            break
    assert refused == [408]
    assert slow.answered.startswith(b"HTTP/1.1 408 ")
    steady.send(b"x" * 10_000)
    assert steady.answered.startswith(b"HTTP/1.1 200 ")


def test_a_request_that_waits_for_its_turn_has_no_deadline() -> None:
    waiting: list[Exchange] = []
    server, clock = memory_server(lambda exchange: exchange.read_body(lambda body: waiting.append(exchange), 100_000))
    for request in (GET, POST + b"x" * 10_000):
        client = MemoryClient(server)
        client.send(request)
        clock.advance(3600)
        waiting.pop().respond(200, [], b"at last")
        assert client.answered.endswith(b"at last")


@pytest.mark.parametrize("finished", [False, True])
def test_a_stalled_reader_is_cut_off_and_a_slow_one_is_not(finished: bool) -> None:
    gone: list[Exchange] = []

    def app(exchange: Exchange) -> None:
        exchange.on_gone = lambda: gone.append(exchange)
        exchange.start(200, [])
        exchange.write(b"x" * 100_000)
        if finished:
            exchange.finish()

    server, clock = memory_server(app, Limits(reader_rate=100, reader_seconds=5))
    client = MemoryClient(server)
    client.transport.stuck = True
    client.send(GET)
    for _ in range(60):
        client.transport.drain(150)
        clock.advance(1)
    assert not gone
    clock.advance(10 + 2 * SLACK)
    assert len(gone) == 1
    assert gone[0].stalled
    assert gone[0].closed
    client.transport.settle()
    assert nothing_left(server)


def test_a_reader_that_has_caught_up_has_no_deadline() -> None:
    exchanges: list[Exchange] = []

    def app(exchange: Exchange) -> None:
        exchange.start(200, [])
        exchange.write(b"x" * 100_000)
        exchanges.append(exchange)

    server, clock = memory_server(app, Limits(reader_rate=100, reader_seconds=5))
    client = MemoryClient(server)
    client.transport.stuck = True
    client.send(GET)
    client.transport.drain()
    clock.advance(3600)
    exchanges[0].finish()
    client.transport.drain()
    assert not client.transport.closing


def linked(limits: ClientLimits) -> tuple[Clock, Upstream, Link, Recorder, MemoryTransport, Transfer]:
    clock = Clock()
    upstream = Upstream("unused", 1, limits=limits, deadlines=clock.deadlines)
    link = Link(upstream)
    transport = MemoryTransport()
    transport.protocol = link
    link.connection_made(transport)
    recorder = Recorder()
    transfer = Transfer(upstream, b"GET", b"GET / HTTP/1.1\r\n\r\n", b"", recorder)
    link.carry(transfer)
    return clock, upstream, link, recorder, transport, transfer


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("informational", [b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 2"])
def test_the_first_byte_has_its_time(informational: bytes) -> None:
    clock, upstream, link, recorder, transport, _ = linked(ClientLimits(first_byte_seconds=30))
    clock.advance(20)
    if informational:
        link.data_received(informational)
    clock.advance(9.9)
    assert recorder.events == []
    clock.advance(0.1 + SLACK)
    assert recorder.failure is not None
    assert (recorder.failure.kind, recorder.failure.started) == ("timeout", False)
    assert transport.aborted
    transport.settle()
    assert not upstream.links


def test_silence_in_the_middle_of_a_response_has_its_time() -> None:
    clock, _, link, recorder, transport, _ = linked(ClientLimits(idle_seconds=10))
    link.data_received(CHUNKED)
    for _ in range(20):
        clock.advance(8)
        link.data_received(b"1\r\nx\r\n")
    assert recorder.failure is None
    clock.advance(9.9)
    assert recorder.failure is None
    clock.advance(0.1 + 2 * SLACK)
    assert recorder.failure is not None
    assert (recorder.failure.kind, recorder.failure.started) == ("timeout", True)
    assert transport.aborted


def test_an_upstream_is_not_blamed_while_the_client_holds_it_back() -> None:
    clock, _, link, recorder, transport, transfer = linked(ClientLimits(idle_seconds=10))
    link.data_received(CHUNKED)
    transfer.pause()
    assert not transport.reading
    clock.advance(3600)
    assert recorder.failure is None
    transfer.resume()
    assert transport.reading
    link.data_received(b"0\r\n\r\n")
    assert recorder.ended


def test_an_unused_connection_is_closed_after_its_time() -> None:
    clock, upstream, link, recorder, transport, _ = linked(ClientLimits(keepalive_seconds=4))
    link.data_received(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert recorder.ended
    assert link in upstream._idle
    clock.advance(3.9)
    assert not transport.closing
    clock.advance(0.1 + SLACK)
    transport.settle()
    assert not upstream._idle
    assert not upstream.links


class Silent(Upstream):
    async def open(self) -> Link:
        await asyncio.Event().wait()
        raise AssertionError("it never opens")


def test_connecting_has_its_time() -> None:
    async def main() -> None:
        clock = Clock()
        upstream = Silent("192.0.2.1", 9, limits=ClientLimits(connect_seconds=3), deadlines=clock.deadlines)
        recorder = Recorder()
        upstream.send(b"GET", b"/", [(b"host", b"h")], b"", recorder)
        clock.advance(3)
        assert recorder.failure is None
        clock.advance(SLACK)
        assert recorder.failure is not None
        assert (recorder.failure.kind, recorder.failure.started) == ("connect", False)
        assert not upstream.transfers
        await upstream.close()

    on_asyncio(main())


def test_the_ticking_stops_with_its_last_user() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        deadlines = Deadlines(loop.time, tick=0.001)
        deadlines.start()
        deadlines.start()
        rang = asyncio.Event()

        class Bell(Timed):
            def expire(self) -> None:
                rang.set()

        deadlines.arm(Bell(), 0.002)
        async with asyncio.timeout(5):
            await rang.wait()
        deadlines.stop()
        assert deadlines._timer is not None
        deadlines.stop()
        assert deadlines._timer is None

    on_asyncio(main())
