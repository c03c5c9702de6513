"""What can be seen of a wait (H): while it lasts, in the answer, and afterwards in the record."""

import json
import time
from pathlib import Path

import pytest
from tests.bad.order import Starving
from tests.gateway.harness import CHAT, Lines, World, chat, run, world
from tests.gateway.slots import TOKENS, TRUSTING, asks, backlogged
from tests.ledger.recording import audit, replay, violated, write_segment
from wire import Wire, request

from fairq import policies
from fairq.core.events import Admitted
from fairq.core.lifecycle import Outcome
from fairq.core.lines import encode
from fairq.gateway.dispatcher import Record
from fairq.gateway.pool import Pool
from fairq.ledger.explain import explain
from fairq.ledger.segment import Head, head_of
from fairq.ledger.words import sentences
from fairq.testing.clock import passed
from fairq.testing.replies import Gate, completion, stream


# H-1
@pytest.mark.parametrize("streams", [False, True])
@run
async def test_an_answer_says_how_long_it_waited(streams: bool) -> None:
    """H-1: milliseconds from arrival to dispatch, as the record has them, of one that waited and one that did not."""
    async with world(slots=1) as w:
        w.upstream.default = lambda seen: [Gate("go"), *(stream(1) if streams else completion(1))]
        first = w.later(CHAT, chat(stream=streams), x_request_id="first")
        await w.running(1)
        second = w.later(CHAT, chat(stream=streams), x_request_id="second")
        await w.waiting(1)
        await passed(time.monotonic_ns() + 20_000_000)
        await w.upstream.release("go", 2)
        replies = {"first": await first, "second": await second}
        await w.idle()
        waits = {record.id: record.wait for record in w.ended}
        for id_, reply in replies.items():
            assert reply.headers["x-request-id"] == id_
            assert int(reply.headers["x-fairq-queue-ms"]) == waits[id_] // 1_000_000
        assert waits["second"] >= 20_000_000
        assert waits["first"] < waits["second"]


async def comment(wire: Wire) -> bytes:
    return (await wire.chunk()).strip()


async def position(wire: Wire, expected: int) -> None:
    """Comments come until the one with this position; they never count up."""
    last = 1 << 30
    while last > expected:
        text = await comment(wire)
        assert text.startswith(b": waiting, position ")
        now = int(text.rpartition(b" ")[2])
        assert now <= last
        last = now
    assert last == expected


@run
async def test_a_waiting_stream_is_told_its_place_among_its_own() -> None:
    """H-1: three of A wait and one of B: positions 1, 2, 3 and 1, which go down as requests before them go."""
    async with world(TRUSTING + "queue: {waiting_comments: 10ms}", slots=1) as w:
        w.upstream.default = lambda seen: [Gate("go"), *stream(1)]
        first = w.later(CHAT, chat(), x_fairq_tenant="A")
        await w.running(1)
        async with (
            Wire(w.gateway.server.port) as one,
            Wire(w.gateway.server.port) as two,
            Wire(w.gateway.server.port) as three,
            Wire(w.gateway.server.port) as other,
        ):
            for number, (wire, tenant) in enumerate(((one, "A"), (two, "A"), (three, "A"), (other, "B")), 1):
                wire.send(request(CHAT, chat(stream=True), x_fairq_tenant=tenant))
                await w.waiting(number)
            for wire, place in ((one, 1), (two, 2), (three, 3), (other, 1)):
                assert (await wire.head()).status == 200
                await position(wire, place)
            await w.upstream.release("go")
            await first
            await w.waiting(3)  # the queues had been empty, so both are level, and A is the first by name
            await position(two, 1)
            await position(three, 2)
            await w.upstream.release("go")
            await w.waiting(2)  # now it is B's turn
            await position(three, 2)
            await w.upstream.release("go", 3)
            for wire in (one, two, three, other):
                rest = b""
                while piece := await wire.chunk():
                    rest += piece
                assert rest.endswith(b"data: [DONE]\n\n")
        await w.idle()


# H-2
class Kept(Lines):
    """Lines as bytes too, with the head before them."""

    def __init__(self) -> None:
        super().__init__()
        self.head: Head | None = None
        self.raw: list[bytes] = []

    def open(self, pool: Pool) -> None:
        self.head = head_of(pool.scheduler, wall=0, monotonic=0)

    def record(self, pool: str) -> Record:
        decoded = super().record(pool)

        def keep(lines: bytes) -> None:
            self.raw += lines.splitlines(keepends=True)
            decoded(lines)

        return keep

    def save(self, folder: Path) -> Path:
        assert self.head is not None
        return write_segment(folder, 1, [encode(self.head) + b"\n", *self.raw])


async def an_eventful_day(policy: str, settlement: str) -> World:
    """Two tenants of different weight, and everything that can happen to a request between them."""
    config = TOKENS + "tenants: [{id: B, weight: 2, max_inflight: 1}]\nqueue: {requests: 40}"
    asked = [("A", asks(100)), ("B", asks(300)), ("A", asks(20, max_tokens=50))] * 10
    async with backlogged(asked, config, slots=2, policy=policy, settlement=settlement) as engine:
        w = engine.w
        await engine.run(5)
        w.gateway.pause("A", True)
        await engine.run(3)
        await engine.send([("C", asks(10))] * 12)  # some give way
        w.gateway.set_weight("B", "5/3")
        w.gateway.pause("A", False)
        await engine.run(6)
        impatient = await w.post(CHAT, chat(), x_fairq_tenant="C", x_fairq_max_queue_wait="0", x_request_id="impatient")
        assert impatient.status_code == 429
        async with Wire(w.gateway.server.port) as wire:
            wire.send(request(CHAT, chat("1 1"), x_fairq_tenant="A", x_request_id="leaves"))
            await w.waiting(w.pool.scheduler.policy.waiting() + 1)
        await w.post(CHAT, {"model": "m"}, x_fairq_tenant="A")  # refused
    return w


@pytest.mark.parametrize("settlement", ["fixed", "forward"])
@pytest.mark.parametrize(("policy", "fair"), [("sfq", True), ("request-rr", True), ("starving", False)])
@run
async def test_the_record_replays_byte_for_byte(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, policy: str, fair: bool, settlement: str
) -> None:
    """H-2: the same decisions again, from the events alone, whatever the policy; and one that lies is found out."""
    monkeypatch.setattr("tests.gateway.harness.Lines", Kept)
    monkeypatch.setitem(policies.POLICIES, "starving", Starving)
    w = await an_eventful_day(policy, settlement)
    assert isinstance(w.lines, Kept)
    folder = w.lines.save(tmp_path / "pool")
    result = replay(folder)
    assert result.identical
    assert result.decisions == len(w.dispatched) + len(w.ended) + sum(b'"is":"Reject"' in line for line in w.lines.raw)
    assert not violated(audit(folder))
    assert {record.outcome for record in w.ended} >= {Outcome.COMPLETED, Outcome.CANCELLED_WAITING, Outcome.EXPIRED}
    if not fair:
        claims = json.loads(encode(w.lines.head))
        claims["setup"]["policy"] = "sfq"
        lying = write_segment(tmp_path / "lying", 1, [json.dumps(claims).encode() + b"\n", *w.lines.raw])
        assert "least meter first" in violated(audit(lying))


@run
async def test_why_it_waited_is_told_by_tags_and_layers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """H-2: who was served meanwhile, each with its meter; and how much of the wait a pause made."""
    monkeypatch.setattr("tests.gateway.harness.Lines", Kept)
    w = await an_eventful_day("sfq", "fixed")
    assert isinstance(w.lines, Kept)
    folder = w.lines.save(tmp_path / "pool")
    longest = max((record for record in w.ended if record.tenant == "A"), key=lambda record: record.wait)
    found = explain(folder, longest.id)
    assert found.tenant == "A"
    assert sum(found.waited.values()) == longest.wait
    assert found.waited["paused"] > 0
    came, went = lines_of(w, longest.id)
    between = [line for line in w.dispatched if came < line.seq < went]
    assert sum(served.requests for served in found.served) == len(between)
    shown = [(step.seq, step.id, step.charge, step.why) for step in found.steps]
    every = [(line.seq, line.id, line.charge, line.why) for line in between]
    half = len(shown) // 2  # a long story has its middle left out
    assert shown == every[:half] + every[len(every) - len(shown) + half :]
    assert len(shown) + found.left_out == len(every)
    told = "\n".join(sentences(found))
    assert "its tenant was paused" in told
    assert "its meter was the least" in told
    for served in found.served:
        assert f"{served.tenant} {served.requests} request" in told


def lines_of(w: World, id_: str) -> tuple[int, int]:
    """The events at which a request came and went to an upstream."""
    [came] = [line.seq for line in w.of(Admitted) if line.request.id == id_]
    return came, next(line.seq for line in w.dispatched if line.id == id_)
