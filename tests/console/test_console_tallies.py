"""What the console counts: who gets a place, and how evenly tenants were served while backlogged together."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.recording import FAR, Recording

from fairq.console.events import Ring
from fairq.console.heaviest import MARGIN, SPARE, Heaviest
from fairq.console.pool import LivePool
from fairq.core.job import Flow
from fairq.core.lines import decode
from fairq.core.setup import Setup
from fairq.measure.fairness import jain


def folded(run: Recording, labels: int = 10) -> LivePool:
    pool = LivePool("default", Heaviest(labels), Ring())
    pool.announce(run.head)
    pool.follow()
    for raw in run.lines:
        pool.take(decode(raw), raw[:-1])
    return pool


def served_while_both_wait(weights: dict[str, int], cost: dict[str, int], count: int) -> Recording:
    run = Recording(
        Setup(flows=[Flow(id=name, weight=Fraction(w)) for name, w in weights.items()], wait_for_upstream=FAR)
    )
    for _ in range(count):
        for name in weights:
            run.admit(name, cost[name])
    run.upstream(1)
    for _ in range(count):
        run.now += 1
        run.finish(run.running()[0])
    return run


def test_the_heavy_take_the_places_of_the_light() -> None:
    places = Heaviest(2)
    for name in ("light", "lighter"):
        places.count(name)
    for _ in range(2 * 1 + MARGIN + 1):
        places.count("heavy")
    assert "heavy" in places.named
    assert len(places.named) == 2


def test_a_crowd_of_strangers_takes_no_place_from_the_heavy() -> None:
    gone: list[str] = []
    places = Heaviest(3, gone.append)
    for number in range(10_000):
        places.count(f"stranger-{number}")
        places.count("heavy")
    assert "heavy" in places.named
    assert "heavy" not in gone


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.lists(st.tuples(st.sampled_from([f"t{n}" for n in range(60)]), st.integers(0, 9))))
def test_places_and_memory_are_bounded(limit: int, traffic: list[tuple[str, int]]) -> None:
    named: set[str] = set()
    places = Heaviest(limit, named.discard)
    for name, amount in traffic:
        places.count(name, amount)
        named |= set(places.named)
        assert len(places.named) <= limit
        assert len(places._candidates) <= SPARE * limit
        assert set(places.named) == named, "who lost a place was not told"


def test_jain_of_equal_shares_is_one_and_of_weights_is_one_too() -> None:
    """Service is normalized: three times the weight and three times the service is fair."""
    pool = folded(served_while_both_wait({"a": 3, "b": 1}, {"a": 6, "b": 6}, 40))
    pool.joint.cut()
    index = pool.joint.index(lambda together: together.charged)
    assert index is not None
    assert index > 0.99


def test_service_while_alone_does_not_count() -> None:
    run = Recording()
    for _ in range(50):
        run.admit("alone", 5)
    run.upstream(1)
    while run.running():
        run.now += 1
        run.finish(run.running()[0])
    pool = folded(run)
    pool.joint.cut()
    assert pool.joint.index(lambda together: together.charged) is None


def test_joint_service_is_what_an_eye_sees() -> None:
    """fcfs, a first: both wait while a's first five are served, so the set {a, b} gives all to a, and b nothing."""
    run = Recording(Setup(policy="fcfs", wait_for_upstream=FAR))
    for name in ("a", "b"):
        for _ in range(6):
            run.admit(name, 7)
    run.upstream(1)
    for _ in range(4):
        run.now += 1
        run.finish(run.running()[0])
    pool = folded(run)
    pool.joint.cut()
    [(tenants, together)] = pool.joint.sets.items()
    assert tenants == ("a", "b")
    tag = 1 << 20
    assert together.charged == {"a": 5 * 7 * tag, "b": 0}
    assert jain(together.charged.values()) == Fraction(1, 2)
    assert together.actual == {"a": 4 * 7 * tag, "b": 0}, "the fifth still runs"


def test_labels_hold_for_totals_and_the_rest_is_other() -> None:
    run = Recording()
    run.upstream(1)
    for number in range(100):
        run.admit(f"stranger-{number}", 3)
        run.admit("heavy", 3)
        while run.running():
            run.now += 1
            run.finish(run.running()[0])
    pool = folded(run, labels=2)
    assert len(pool.tenants) <= 2
    counted = sum(totals.charged for totals in (*pool.tenants.values(), pool.other))
    assert counted == 600
    assert pool.tenants["heavy"].outcomes["completed"] == 100
    assert not pool.world.tenants, "nothing of a stranger is left"


@pytest.mark.parametrize("again", [0, 1, 5])
def test_lines_that_come_twice_count_once(again: int) -> None:
    """A connection begins with a head; lines before it may still be on their way, and the ledger knows them too."""
    run = served_while_both_wait({"a": 1, "b": 1}, {"a": 2, "b": 3}, 10)
    pool = folded(run)
    before = (pool.audit.decisions, pool.audit.events, pool.other.charged)
    pool.announce(run.make_head())
    pool.follow()
    for raw in run.lines[len(run.lines) - again :]:
        pool.take(decode(raw), raw[:-1])
    assert (pool.audit.decisions, pool.audit.events, pool.other.charged) == before
    run.admit("a", 2)
    for raw in run.lines[-1:]:
        pool.take(decode(raw), raw[:-1])
    assert pool.audit.events == before[1] + 1
    assert pool.missed == 0


def test_a_gap_is_bridged_by_the_head_and_counted() -> None:
    run = served_while_both_wait({"a": 1, "b": 1}, {"a": 2, "b": 3}, 10)
    seen: Any = folded(run)
    unseen = len(run.lines)
    for _ in range(7):
        run.admit("c", 1)
    missing = run.scheduler.seq - seen.at
    seen.announce(run.make_head())
    seen.follow()
    unseen = len(run.lines)
    run.admit("c", 1)
    for raw in run.lines[unseen:]:
        seen.take(decode(raw), raw[:-1])
    assert seen.missed == missing == 7
    assert seen.world.seq == run.scheduler.seq
    assert len(seen.world.living) == len(run.scheduler.jobs)
    assert seen.audit.checks["sequence"].violations == 0
