"""Measures of schedules, worked out by hand."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairq
from fairq.measure.cpu import Story, gaps, jitter, measure, overlap, shares, starvation, waiting_times

A = Story(task="A", arrival=0, work=3, until=5, first_run=0, completion=5, deadline=4)
B = Story(task="B", arrival=1, work=2, until=4, first_run=2, completion=4, deadline=9)
LINE = [("A", 0, 2, "run"), ("B", 2, 4, "run"), ("A", 4, 5, "run"), (None, 5, 8, "idle")]


def test_times_of_one_job() -> None:
    assert (A.turnaround, A.waiting, A.response, A.lateness, A.missed) == (5, 2, 0, 1, True)
    assert (B.turnaround, B.waiting, B.response, B.lateness, B.missed) == (3, 1, 1, -5, False)
    open_ = Story(task="C", arrival=0, work=9, until=8, deadline=8)
    assert (open_.turnaround, open_.waiting, open_.response, open_.lateness, open_.missed) == (None,) * 4 + (True,)
    assert not Story(task="C", arrival=0, work=9, until=7, deadline=8).missed  # it may still make it


def test_a_whole_run() -> None:
    found = measure([A, B], [LINE], end=8, switches=2)
    assert (found.jobs, found.completed, found.misses, found.max_lateness) == (2, 2, 1, 1)
    assert found.turnaround is not None
    assert (found.turnaround.mean, found.turnaround.max) == (4, 5)
    assert (found.throughput, found.utilisation) == (2 / 8, 5 / 8)
    assert (found.longest_wait, found.starvation) == (2, 2)  # A, from 2 to 4, while B ran
    assert found.switches == 2
    assert found.work_conserving
    assert found.jitter is None


def test_waiting_is_ready_and_not_running() -> None:
    assert waiting_times([A, B], [LINE]) == [[(2, 4)], [(1, 2)]]
    asleep = Story(task="A", arrival=0, work=3, until=5, completion=5, away=((2, 3),), slept=1)
    assert waiting_times([asleep], [LINE]) == [[(3, 4)]]
    assert asleep.waiting == 1


def test_idling_while_a_job_is_ready_is_noticed() -> None:
    lazy = [("A", 0, 1, "run"), (None, 1, 2, "idle"), ("A", 2, 4, "run")]
    story = Story(task="A", arrival=0, work=3, until=4, completion=4)
    assert not measure([story], [lazy], end=4, switches=0).work_conserving
    resting = Story(task="A", arrival=0, work=3, until=4, completion=4, away=((1, 2),), slept=1)
    assert measure([resting], [lazy], end=4, switches=0).work_conserving


def test_a_second_idle_processor_counts_only_when_somebody_could_use_it() -> None:
    second = [(None, 0, 8, "idle")]
    assert not measure([A, B], [LINE, second], end=8, switches=2).work_conserving
    alone = Story(task="A", arrival=0, work=2, until=2, completion=2)
    assert measure([alone], [[("A", 0, 2, "run")], second], end=2, switches=0).work_conserving


def test_a_job_behind_the_one_before_it_is_not_ready() -> None:
    first = Story(task="T", arrival=0, work=4, until=4, completion=4)
    next_ = Story(task="T", arrival=3, work=1, until=5, completion=5)
    assert waiting_times([first, next_], [[("T", 0, 5, "run")]]) == [[], []]


def test_starvation_counts_only_what_others_ran() -> None:
    """A waits from 2 to 7: B runs for three ticks of them, one goes into the switch there, one into the switch back."""
    line = [("A", 0, 2, "run"), (None, 2, 3, "switch"), ("B", 3, 6, "run"), (None, 6, 7, "switch"), ("A", 7, 9, "run")]
    a = Story(task="A", arrival=0, work=4, until=9, first_run=0, completion=9)
    b = Story(task="B", arrival=2, work=3, until=6, first_run=3, completion=6)
    found = measure([a, b], [line], end=9, switches=2)
    assert (found.longest_wait, found.starvation) == (5, 3)
    assert found.work_conserving
    assert starvation([(1, 8)], [[("B", 0, 3, "run")], [("C", 2, 5, "run"), ("D", 7, 9, "run")]]) == 5
    assert starvation([(0, 9)], [[]]) == 0


@st.composite
def machines(draw: st.DrawFn) -> dict[str, Any]:
    tasks = [
        {"id": id_, "arrival": draw(st.integers(0, 12)), "burst": draw(st.integers(1, 6))}
        | {"priority": draw(st.integers(0, 2))}
        for id_ in "ABCDE"[: draw(st.integers(1, 5))]
    ]
    machine = {"cpus": draw(st.integers(1, 2)), "switch_cost": draw(st.integers(0, 2))}
    return {"layer": "cpu", "tasks": tasks} | machine


@settings(max_examples=60, deadline=None)
@given(machines(), st.sampled_from(["fcfs", "rr", "rr:quantum=2", "srtf", "priority", "stride"]))
def test_measures_are_those_of_looking_at_every_tick(machine: dict[str, Any], policy: str) -> None:
    """Of tasks that do not sleep, from nothing but the timeline."""
    (told,) = fairq.run(machine, policy).as_json()["runs"]
    end = max(piece["end"] for piece in told["timeline"])
    doing = [[piece for piece in told["timeline"] if piece["start"] <= t < piece["end"]] for t in range(end)]
    ran = [{piece["task"] for piece in pieces if piece["state"] == "run"} for pieces in doing]
    idle = [any(piece["state"] == "idle" for piece in pieces) for pieces in doing]
    longest = starved = 0
    wasted = False
    for task in told["tasks"]:
        waited = without = 0
        for t in range(task["arrival"], task["completion"]):
            if task["id"] in ran[t]:
                waited = without = 0
                continue
            waited, without = waited + 1, without + bool(ran[t])
            longest, starved, wasted = max(longest, waited), max(starved, without), wasted or idle[t]
    found = told["measures"]
    assert (found["longest_wait"], found["starvation"], found["work_conserving"]) == (longest, starved, not wasted)
    assert found["utilisation"] == pytest.approx(sum(map(len, ran)) / (end * machine["cpus"]))
    assert found["throughput"] == pytest.approx(len(told["tasks"]) / end)
    assert found["waiting"]["max"] == max(
        sum(task["id"] not in ran[t] for t in range(task["arrival"], task["completion"])) for task in told["tasks"]
    )


def test_jitter_is_the_spread_within_a_task() -> None:
    jobs = [Story(task="T", arrival=a, work=1, until=c, completion=c) for a, c in ((0, 2), (10, 15), (20, 23))]
    assert jitter(jobs) == 3
    assert jitter([*jobs, Story(task="U", arrival=0, work=1, until=99, completion=99)]) == 3


def test_gaps_and_overlaps() -> None:
    assert gaps([(1, 2), (2, 4), (3, 5)], 0, 7) == [(0, 1), (5, 7)]
    assert not overlap([(0, 2)], [(2, 3)])
    assert overlap([(0, 3)], [(2, 4)])
    assert not overlap([(0, 3)], [])


def test_shares_are_compared_only_while_the_same_tasks_are_active() -> None:
    found = shares([A, B], [LINE], {"A": Fraction(1), "B": Fraction(2)})
    assert [(one.start, one.end, one.service) for one in found] == [
        (0, 1, {"A": 1}),
        (1, 4, {"A": 1, "B": 1}),  # one tick of A, two of B at weight 2
        (4, 5, {"A": 1}),
    ]
    assert found[1].jain == 1


def test_each_tick_counts_at_the_weight_of_its_time() -> None:
    weights = {"A": Fraction(1), "B": Fraction(2)}
    changes = [(2, "B", Fraction(2)), (3, "B", Fraction(4)), (3, "A", Fraction(5)), (4, "B", Fraction(9))]
    found = shares([A, B], [LINE], weights, changes)  # the first is none, and the last of a task that is gone
    assert [(one.start, one.end, one.service) for one in found] == [
        (0, 1, {"A": 1}),
        (1, 3, {"A": 1, "B": Fraction(1, 2)}),
        (3, 4, {"A": 0, "B": Fraction(1, 4)}),
        (4, 5, {"A": Fraction(1, 5)}),
    ]
