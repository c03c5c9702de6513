"""Jain's index, jointly backlogged intervals and pairwise gaps, against published values and brute force."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq.measure.fairness import BackloggedIntervals, PairGaps, jain

AMOUNTS = st.fractions(min_value=0, max_value=30, max_denominator=4)


@pytest.mark.parametrize(
    ("people", "dollars", "fairness"), [(20, 1, "1/5"), (10, 2, "1/10"), (100, Fraction(1, 5), "1")]
)
def test_twenty_dollars_for_k_of_a_hundred_people_are_k_percent_fair(people: int, dollars: int, fairness: str) -> None:
    """The example by which TR-301 explains the index."""
    assert jain([dollars] * people + [0] * (100 - people)) == Fraction(fairness)


def test_an_uneven_share_worked_by_hand() -> None:
    """1, 3, 5: 9 squared over 3 times 35."""
    assert jain([1, 3, 5]) == Fraction(81, 105)


@pytest.mark.parametrize("values", [[], [0], [0, 0, Fraction(0)]])
def test_nothing_served_has_no_index(values: list[int]) -> None:
    assert jain(values) is None


@given(st.lists(AMOUNTS, min_size=1, max_size=8), st.fractions(min_value=Fraction(1, 9), max_value=9))
def test_the_index_lies_between_one_nth_and_one_and_ignores_the_unit(values: list[Fraction], scale: Fraction) -> None:
    index = jain(values)
    if index is None:
        assert not any(values)
    else:
        assert Fraction(1, len(values)) <= index <= 1
        assert (index == 1) == (len(set(values)) == 1)
        assert jain([scale * value for value in values]) == index


def test_the_baseline_starts_anew_when_the_set_changes() -> None:
    """A serves 100 alone; from the moment B joins only what comes after counts."""
    run = BackloggedIntervals()
    run.enter("A", 0)
    run.charge("A", 100)
    run.enter("B", 5)
    for flow in "ABAB":
        run.charge(flow, 3)
    run.leave("B", 9)
    run.charge("B", 50)
    run.charge("A", 7)
    found = run.close(10)
    assert [(interval.start, interval.end, interval.service) for interval in found] == [
        (0, 5, {"A": 100}),
        (5, 9, {"A": 6, "B": 6}),
        (9, 10, {"A": 7}),
    ]
    assert [interval.jain for interval in found] == [1, 1, 1]


def test_the_dispatch_that_empties_a_queue_belongs_to_the_interval_it_ends() -> None:
    run = BackloggedIntervals()
    run.enter("A", 0)
    run.enter("B", 0)
    run.charge("A", 2)
    run.charge("B", 4)
    run.leave("B", 0)
    run.leave("A", 3)
    (joint, alone) = run.close(3)
    assert joint.service == {"A": 2, "B": 4}
    assert joint.jain == Fraction(36, 40)
    assert (alone.start, alone.end, alone.service, alone.jain) == (0, 3, {"A": 0}, None)


def test_time_without_a_backlog_is_no_interval() -> None:
    run = BackloggedIntervals()
    run.charge("A", 5)
    run.enter("A", 10)
    run.leave("A", 10)
    run.enter("A", 20)
    run.enter("A", 21)
    run.leave("B", 22)
    assert [(interval.start, interval.end) for interval in run.close(30)] == [(20, 30)]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["enter", "leave"]), st.sampled_from("ABCD"), st.just(Fraction(0))),
        st.tuples(st.just("charge"), st.sampled_from("ABCD"), AMOUNTS),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_gaps_and_intervals_are_those_of_brute_force(steps: list[tuple[str, str, Fraction]]) -> None:
    """Keep everything, then look at all stretches: the definition, word for word."""
    gaps, intervals = PairGaps(), BackloggedIntervals()
    backlogged: set[str] = set()
    history: list[tuple[frozenset[str], dict[str, Fraction]]] = []  # the set during step t, and its charges
    for time, (kind, flow, amount) in enumerate(steps):
        if kind == "charge":
            history.append((frozenset(backlogged), {flow: amount} if flow in backlogged else {}))
            gaps.charge(flow, amount)
            intervals.charge(flow, amount)
            continue
        for run in (gaps, intervals):
            (run.enter if kind == "enter" else run.leave)(flow, time)
        (backlogged.add if kind == "enter" else backlogged.discard)(flow)
        history.append((frozenset(backlogged), {}))

    found = gaps.close(len(steps))
    for one, other in combinations("ABCD", 2):
        worst = Fraction(0)
        together = [time for time, (flows, _) in enumerate(history) if {one, other} <= flows]
        for first in together:
            difference = Fraction(0)
            for time in range(first, len(history)):
                flows, charges = history[time]
                if not {one, other} <= flows:
                    break
                difference += charges.get(one, 0) - charges.get(other, 0)
                worst = max(worst, abs(difference))
        pair = found.get((one, other))
        assert (pair.gap if pair else 0) == worst
        if pair:
            assert pair.duration == len(together)
            assert pair.service[0] == sum(history[time][1].get(one, 0) for time in together)

    listed = intervals.close(len(steps))
    assert sum(interval.end - interval.start for interval in listed) == sum(bool(flows) for flows, _ in history)
    for interval in listed:
        assert isinstance(interval.start, int)
        assert isinstance(interval.end, int)
        inside = history[interval.start : interval.end]
        assert {flows for flows, _ in inside} == {frozenset(interval.service)}
        for flow, service in interval.service.items():
            assert service == sum(charges.get(flow, 0) for _, charges in inside)


def test_only_the_watched_flows_make_pairs() -> None:
    gaps = PairGaps(["A", "B"])
    for flow in "ABC":
        gaps.enter(flow, 0)
    gaps.charge("C", 9)
    gaps.charge("A", 2)
    assert {pair: found.gap for pair, found in gaps.close(1).items()} == {("A", "B"): 2}
