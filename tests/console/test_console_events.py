"""Server-sent events: what happens, as it happens, from where a reader was, and never at the cost of memory."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import httpx
import msgspec
import uvicorn
from tests.console.desk import ADMIN, Desk, desk
from tests.gateway.harness import run
from tests.ledger.recording import FAR, Recording

from fairq.console import events, views
from fairq.console.events import Ring, stream
from fairq.console.server import bind
from fairq.console.views import Line, Shortened
from fairq.core.events import Paused, Reconfigured
from fairq.core.job import Flow
from fairq.core.lines import decode
from fairq.core.setup import Setup
from fairq.testing.clock import eventually


def parse(text: str) -> list[dict[str, Any]]:
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in block.splitlines() if not line.startswith(":"))
        if "event" in fields:
            found.append(fields | {"data": json.loads(fields["data"])})
    return found


class Reader:
    """Reads the stream over a real connection until told to stop."""

    def __init__(self, url: str, **headers: str) -> None:
        self.url, self.headers, self.text = url, headers, ""
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async with (
            httpx.AsyncClient(timeout=20) as client,
            client.stream("GET", self.url, headers={k.replace("_", "-"): v for k, v in self.headers.items()}) as reply,
        ):
            assert reply.headers["content-type"].startswith("text/event-stream")
            async for text in reply.aiter_text():
                self.text += text

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in parse(self.text) if event["event"] == kind]

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


class Served:
    """The desk's console on a free port."""

    def __init__(self, d: Desk) -> None:
        self._desk = d
        self._listener = bind("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    async def __aenter__(self) -> "Served":
        config = uvicorn.Config(self._desk.console.app(), log_level="critical", lifespan="off", ws="none")
        self._server = uvicorn.Server(config)
        self._server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        self._task = asyncio.create_task(self._server._serve([self._listener]))
        await eventually(lambda: self._server.started, "the console serves")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._desk.console.closing.set()
        self._server.should_exit = True
        await self._task


@run
async def test_decisions_and_ends_come_as_they_happen(tmp_path: Path) -> None:
    async with desk(tmp_path) as d, Served(d) as served:
        reader = Reader(f"{served.url}/api/events?kinds=dispatch,ended")
        await eventually(lambda: "retry:" in reader.text, "the stream begins")
        await d.chat("a")
        await d.chat("b")
        await eventually(lambda: len(reader.of("ended")) == 2, "two requests ended")
        for kind in ("dispatch", "ended"):
            assert [event["data"]["line"]["tenant"] for event in reader.of(kind)] == ["a", "b"]
        assert reader.of("dispatch")[0]["data"]["line"]["why"]["code"] == "least-meter"
        assert reader.of("dispatch")[0]["data"]["pool"] == "default"
        assert len(reader.of("state")) >= 1
        await reader.stop()


@run
async def test_a_reader_goes_on_where_it_was(tmp_path: Path) -> None:
    async with desk(tmp_path) as d, Served(d) as served:
        first = Reader(f"{served.url}/api/events?kinds=ended&summary=0", last_event_id="0-0")
        for _ in range(3):
            await d.chat("a")
        await eventually(lambda: len(first.of("ended")) == 3, "three ended")
        await first.stop()
        seen = first.of("ended")
        for _ in range(2):
            await d.chat("a")
        await d.folded()
        second = Reader(f"{served.url}/api/events?kinds=ended&summary=0", last_event_id=seen[-1]["id"])
        await eventually(lambda: len(second.of("ended")) == 2, "only the two that are new")
        await second.stop()
        ids = [event["data"]["line"]["id"] for event in (*seen, *second.of("ended"))]
        assert len(set(ids)) == 5


@run
async def test_one_tenant_can_be_watched_alone(tmp_path: Path) -> None:
    async with desk(tmp_path) as d, Served(d) as served:
        reader = Reader(f"{served.url}/api/events?tenant=b&summary=0&kinds=ended")
        await eventually(lambda: "retry:" in reader.text, "the stream begins")
        for name in ("a", "b", "a", "b"):
            await d.chat(name)
        await eventually(lambda: len(reader.of("ended")) == 2, "both of b")
        assert {event["data"]["line"]["tenant"] for event in reader.of("ended")} == {"b"}
        await reader.stop()


@run
async def test_summaries_are_few_however_often_they_are_asked_for(tmp_path: Path) -> None:
    async with desk(tmp_path) as d, Served(d) as served:
        loop = asyncio.get_running_loop()
        reader = Reader(f"{served.url}/api/events?summary=0.001")
        began = loop.time()
        await eventually(lambda: len(reader.of("state")) >= 4, "four summaries")
        assert loop.time() - began >= 0.25, "at most ten a second"
        await reader.stop()


@run
async def test_readers_are_counted_and_bounded(tmp_path: Path) -> None:
    async with desk(tmp_path) as d, Served(d) as served:
        d.console._readers = 64
        async with httpx.AsyncClient() as client:
            reply = await client.get(f"{served.url}/api/events", headers=ADMIN)
        assert reply.status_code == 503
        d.console._readers = 0
        reader = Reader(f"{served.url}/api/events")
        await eventually(lambda: d.console._readers == 1, "one reads")
        await reader.stop()
        await eventually(lambda: d.console._readers == 0, "it is gone")


def fill(ring: Ring, count: int) -> None:
    run = Recording(Setup(wait_for_upstream=FAR))
    run.upstream(1)
    for raw in run.lines:
        for _ in range(count):
            ring.add("default", decode(raw), raw[:-1], lambda time: time / 1e9)


def reading(ring: Ring, position: int, closing: asyncio.Event) -> AsyncIterator[bytes]:
    kinds = frozenset(events.KINDS.values())
    return stream(ring, position, kinds=kinds, tenant=None, summary=lambda: b"{}", every=0, closing=closing)


@run
async def test_a_slow_reader_is_dropped_and_told_what_it_missed() -> None:
    ring, closing = Ring(), asyncio.Event()
    fill(ring, 10)
    slow = reading(ring, 0, closing)
    await anext(slow)
    assert b"event: change" in await anext(slow)
    fill(ring, events.KEPT + 100)
    assert len(ring.items) == events.KEPT
    assert [data async for data in slow] == [], "the stream ends"
    again = reading(ring, ring.position(f"{ring.boot}-10"), closing)
    await anext(again)
    missed = parse((await anext(again)).decode())
    assert missed[0]["event"] == "missed"
    assert missed[0]["data"]["missed"] == 100
    rest = 0
    while rest < events.KEPT:
        rest += len(parse((await anext(again)).decode()))
    assert rest == events.KEPT
    closing.set()
    assert [data async for data in again] == []


def test_ids_that_make_no_sense_read_everything_that_is_kept() -> None:
    ring = Ring()
    fill(ring, 3)
    assert ring.position(None) == 3
    assert ring.position(f"{ring.boot}-2") == 2
    assert ring.position(f"{ring.boot}-999999999999999999999999") == 3
    for odd in ("", "x", "-1", "other-2", f"{ring.boot}-", f"{ring.boot}--2", f"{ring.boot}-٣"):
        assert ring.position(odd) == 0


def test_a_long_line_is_kept_as_a_note() -> None:
    """A change of the configuration names every tenant."""
    ring, run = Ring(), Recording(Setup(wait_for_upstream=FAR))
    flows = [Flow(id=f"tenant-number-{number}") for number in range(2000)]
    setup = run.setup
    run.emit(Reconfigured, flows=flows, default_flow=setup.default_flow, wait_for_upstream=1, cost=setup.cost)
    ring.add("default", decode(run.lines[0]), run.lines[0][:-1], float)
    [item] = ring.items
    assert len(bytes(item.line)) < 200
    note = msgspec.json.decode(item.line, type=Line)
    assert isinstance(note, Shortened)
    assert (note.of, note.bytes) == ("Reconfigured", len(run.lines[0]) - 1)


def test_every_kind_of_event_is_part_of_the_described_type() -> None:
    described = {kind.__struct_config__.tag for kind in get_args(Line)}
    assert described == {kind.__struct_config__.tag for kind in (*events.KINDS, Shortened)}


def test_a_change_of_weights_reads_as_described() -> None:
    ring, run = Ring(), Recording(Setup(wait_for_upstream=FAR))
    flows, setup = [Flow(id="a", weight=Fraction(7, 2)), Flow(id="b", max_inflight=3)], run.setup
    run.emit(
        Reconfigured, flows=flows, default_flow=setup.default_flow, wait_for_upstream=1, cost=setup.cost, by="admin"
    )
    ring.add("default", decode(run.lines[0]), run.lines[0][:-1], float)
    line = msgspec.json.decode(ring.items[0].line, type=Line)
    assert isinstance(line, views.Reconfigured)
    assert line.by == "admin"
    assert [(flow.id, flow.weight, flow.max_inflight) for flow in line.flows] == [("a", "7/2", None), ("b", "1", 3)]


def test_a_reader_may_begin_with_what_was_a_moment_ago() -> None:
    ring, run, now = Ring(), Recording(), time.time()
    for age in (300, 90, 59, 2):
        run.emit(Paused, tenant="a")
        ring.add("default", decode(run.lines[-1]), run.lines[-1][:-1], lambda _, age=age: now - age)  # type: ignore[misc]
    assert ring.position(None, back=0) == 4
    assert [item.number for item in ring.after(ring.position(None, back=60), 9)] == [3, 4]
    assert [item.number for item in ring.after(ring.position(None, back=3600), 9)] == [1, 2, 3, 4]
