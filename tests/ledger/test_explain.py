"""What `explain` says of a request, against stories whose every moment is known."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.ledger.recording import FAR, Recording, router_example, write_segment

from fairq.core import events as ev
from fairq.core.cost import Source, Usage
from fairq.core.job import Flow
from fairq.core.lifecycle import Outcome
from fairq.core.lines import encode
from fairq.core.setup import Setup
from fairq.ledger.explain import SHOWN, explain
from fairq.ledger.explanation import Cause, Layer
from fairq.ledger.segment import LedgerError, Opened
from fairq.ledger.words import sentences

MS = 1_000_000


def story() -> Recording:
    """T2 waits from 0 to 50 ms: 10 without an upstream, 10 for a slot, 10 paused, 20 for a slot again."""
    run = Recording(Setup(pool="gpu", wait_for_upstream=FAR))

    def at(ms: int) -> None:
        run.now = ms * MS

    run.admit("T", 10)  # T1
    run.admit("T", 10, model="llama")  # T2
    at(5)
    run.admit("B", 1)  # B3
    at(10)
    run.upstream(1, "u1")  # B3 goes: its id is less; then it is T1's turn
    at(15)
    run.finish("B3")
    at(20)
    run.emit(ev.Paused, tenant="T")
    at(30)
    run.emit(ev.Resumed, tenant="T")
    at(35)
    run.admit("B", 1)  # B4
    at(40)
    run.finish("T1")
    at(50)
    run.finish("B4")
    at(61)
    usage = Usage(7, 20, 3, Source.UPSTREAM)
    run.emit(
        ev.Finished,
        id="T2",
        outcome=Outcome.COMPLETED,
        usage=usage,
        status=200,
        first_byte=55 * MS,
        last_byte=60 * MS,
        finish="stop",
    )
    return run


def test_every_moment_of_a_wait_has_a_cause(tmp_path: Path) -> None:
    found = explain(story().save(tmp_path / "gpu"), "T2")
    assert found.waited == {
        Cause.NO_UPSTREAM: 10 * MS,
        Cause.OWN_QUEUE: 5 * MS,
        Cause.SLOTS: (5 + 20) * MS,
        Cause.PAUSED: 10 * MS,
    }
    assert sum(found.waited.values()) == 50 * MS
    assert found.layers == {Layer.UPSTREAMS: 10 * MS, Layer.ORDER: 30 * MS, Layer.LIMITS: 10 * MS}
    assert found.layer == Layer.ORDER


def test_who_was_served_meanwhile_and_by_which_tags(tmp_path: Path) -> None:
    found = explain(story().save(tmp_path / "gpu"), "T2")
    assert [(s.tenant, s.requests, s.charge) for s in found.served] == [("T", 1, 10), ("B", 2, 2)]
    assert [(step.id, step.lead) for step in found.steps] == [("B3", 0), ("T1", 0), ("B4", 10)]
    assert all(step.why.code == "least-meter" for step in found.steps)
    assert (found.position, found.rivals) == (2, 0)
    assert [line.id for line in found.own] == ["T2"]


def test_time_at_the_upstream_is_divided(tmp_path: Path) -> None:
    found = explain(story().save(tmp_path / "gpu"), "T2")
    assert (found.first_byte, found.generation, found.delivery) == (5 * MS, 5 * MS, 1 * MS)
    assert (found.outcome, found.status, found.finish) == ("completed", 200, "stop")
    assert (found.estimate, found.charge, found.actual) == (10, 10, 10)
    assert (found.usage.prompt, found.usage.completion, found.usage.cached) == (7, 20, 3)
    assert found.total == 61 * MS


def test_it_reads_as_english(tmp_path: Path) -> None:
    assert list(sentences(explain(story().save(tmp_path / "gpu"), "T2"))) == [
        "T2 of T came at 2001-09-09 01:46:40.000+00:00 to pool gpu (sfq, model llama).",
        "It was number 2 in the queue of T; 0 other tenants had work waiting; T was 0 ahead of virtual time.",
        "It waited 50.0 ms, made to by the order of dispatch ("
        "25.0 ms: all slots were taken, and it was its tenant's next; 10.0 ms: no upstream was usable; "
        "10.0 ms: its tenant was paused;"
        " 5.0 ms: all slots were taken, and earlier requests of its tenant were before it).",
        "Dispatched meanwhile: T 1 request (charged 10), B 2 requests (charged 2).",
        "  +10.0 ms B3 of B went, charged 1: its meter was the least, 0 ahead of virtual time; T was 0 ahead.",
        "  +15.0 ms T1 of T went, charged 10: its meter was the least, 0 ahead of virtual time; T was 0 ahead.",
        "  +40.0 ms B4 of B went, charged 1: its meter was the least, 1 ahead of virtual time; T was 10 ahead.",
        "After 50.0 ms it went to u1: its meter was the least, 9 ahead of virtual time."
        " It was estimated at 10 (0 tokens in, 0 out), charged 10.",
        "At the upstream it took 5.0 ms to the first byte and 5.0 ms to generate, and 1.0 ms until the client had it.",
        "It ended after 61.0 ms: completed, finish reason stop, status 200.",
        "It really cost 10 (7 tokens in (3 cached), 20 out); the estimate was 10.",
    ]


def test_a_cap_is_a_limit(tmp_path: Path) -> None:
    run = Recording(Setup(flows=[Flow(id="T", max_inflight=1)], wait_for_upstream=FAR))
    run.upstream(4)
    run.admit("T", 1)
    run.now = 3
    run.admit("T", 1)
    run.now = 10
    run.finish("T1")
    found = explain(run.save(tmp_path / "pool"), "T2")
    assert found.waited == {Cause.CAPPED: 7}
    assert found.layer == Layer.LIMITS
    assert found.outcome is None
    assert list(sentences(found))[-1] == "It runs."


def test_a_retry_is_told_and_charged_once(tmp_path: Path) -> None:
    run = Recording(Setup(wait_for_upstream=FAR))
    run.upstream(1, "u")
    run.upstream(1, "v")
    run.admit("T", 4)
    run.admit("T", 4)  # fills v
    run.now = 5
    run.emit(ev.AttemptFailed, id="T1", outcome=Outcome.FAILED_CONNECT)
    run.now = 9
    run.finish("T2")
    run.now = 12
    run.finish("T1")
    found = explain(run.save(tmp_path / "pool"), "T1")
    assert [(line.upstream, line.attempt, line.charge) for line in found.own] == [("u", 1, 4), ("v", 2, 0)]
    assert found.waited == {Cause.RETRY: 4}
    assert found.attempts == 2
    assert "After 9 ns it was tried again, at v, without another charge." in list(sentences(found))


def test_a_long_wait_is_summed_up(tmp_path: Path) -> None:
    run = Recording(Setup(wait_for_upstream=FAR))
    run.admit("a", 30)
    for number in range(300):
        run.admit(f"t{number % 10}", 1)
    run.upstream(1)
    run.admit("a", 1)  # after 30 units for each of the others
    while run.running() != ["a302"]:
        run.now += 1
        run.finish(run.running()[0])
    found = explain(run.save(tmp_path / "pool"), "a302")
    assert len(found.steps) == 2 * SHOWN
    assert [step.seq for step in found.steps] == sorted(step.seq for step in found.steps)
    assert found.left_out == 300 - 2 * SHOWN
    assert [(served.tenant, served.requests) for served in found.served] == [(f"t{n}", 30) for n in range(10)]
    told = list(sentences(found))
    assert len(told) < 2 * SHOWN + 12
    assert f"  ... {found.left_out} more decisions ..." in told
    assert "and 2 other tenants 60 requests (charged 60)" in " ".join(told)


def test_a_request_that_left_the_queue(tmp_path: Path) -> None:
    run = Recording(Setup(wait_for_upstream=FAR))
    run.admit("T", 1)
    run.now = 8
    run.emit(ev.Cancelled, id="T1")
    found = explain(run.save(tmp_path / "pool"), "T1")
    assert (found.outcome, found.charge, found.waited) == ("cancelled-waiting", 0, {Cause.NO_UPSTREAM: 8})
    assert found.own == []


def test_a_refused_request_never_queued(tmp_path: Path) -> None:
    run = Recording()
    run.emit(ev.Refused, id="r1", outcome=Outcome.REFUSED_RATE_LIMIT, tenant="T", status=429)
    told = list(sentences(explain(run.save(tmp_path / "pool"), "r1")))
    assert told[-1] == "It was refused before it could queue: refused-rate-limit, status 429."


def test_the_last_life_of_an_id_is_told(tmp_path: Path) -> None:
    run = Recording()
    run.upstream(1)
    for outcome in (Outcome.COMPLETED, Outcome.STALLED_CLIENT):
        run._arrived = 0
        run.admit("T", 1)
        run.finish("T1", outcome)
    found = explain(run.save(tmp_path / "pool"), "T1")
    assert (found.outcome, found.lives) == ("stalled-client", 2)


def test_only_the_segments_that_name_it_are_needed(tmp_path: Path) -> None:
    """Its arrival was in a segment that retention has removed: the head still knows it."""
    run = story()
    cut = next(i for i, line in enumerate(run.lines) if b'"is":"Paused"' in line)
    whole = run.lines
    again = Recording(run.setup)
    from fairq.ledger.reader import Reader

    run.save(tmp_path / "gpu")
    for line in list(Reader(tmp_path / "gpu"))[1 : cut + 1]:
        if hasattr(line.value, "request") or type(line.value).__name__ in ("Finished", "UpstreamChanged"):
            again.scheduler.handle(line.value)
    again.now = again.scheduler.now
    head = replace(again.make_head(), opened=Opened.ROTATED)
    write_segment(tmp_path / "late", 7, [encode(head) + b"\n", *whole[cut:]])
    found = explain(tmp_path / "late", "T2")
    assert found.waited == {Cause.SLOTS: (5 + 20) * MS, Cause.PAUSED: 10 * MS}
    assert [step.id for step in found.steps] == ["B4"]
    assert found.outcome == "completed"
    assert found.truncated
    assert any("earlier decisions are not known" in line for line in sentences(found))


def test_an_unknown_request_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="no request nobody"):
        explain(router_example().save(tmp_path / "pool"), "nobody")
