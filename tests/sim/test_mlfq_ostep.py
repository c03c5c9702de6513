"""The multi-level feedback queue beside OSTEP's mlfq.py, and OSTEP's rules as properties."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.timelines import by_task, job, run, simulate, slices, ticks

from fairq.core.errors import ConfigError


def jobs(*given_: tuple[int, int, int], io: int = 5) -> list[dict[str, Any]]:
    """OSTEP's -l: (start, run time, an I/O of `io` ticks after every so many own ticks)."""
    return [
        job(f"J{n}", start, length, **({"io": {"every": every, "for": io}} if every else {}))
        for n, (start, length, every) in enumerate(given_)
    ]


def levels(policy: str, tasks: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Who ran in each tick, and at which level, from the trace."""
    steps = list(run(policy, tasks, record="ticks").trace().steps())
    return [(step.what["ran"][0], step.why.values["level"]) for step in steps if step.why]


@pytest.mark.parametrize(
    ("tasks", "policy", "turnarounds"),
    [
        (jobs((0, 180, 0), (100, 20, 0)), "mlfq:quantum=10", [200, 20]),
        (jobs((0, 50, 0), (0, 50, 1)), "mlfq:quantum=10", [58, 305]),
        (jobs((0, 200, 0), (0, 200, 0)), "mlfq:quantum=10,boost=50", [390, 400]),
        (jobs((0, 50, 0), (0, 50, 9), io=1), "mlfq:levels=2,quantum=10,anti-gaming=off", [100, 65]),
        (jobs((0, 50, 0), (0, 50, 9), io=1), "mlfq:levels=2,quantum=10", [77, 102]),
        (jobs((0, 3, 0), (0, 15, 0), (0, 10, 0)), "mlfq:quantum=10", [3, 28, 23]),
    ],
)
def test_ostep_mlfq(tasks: list[dict[str, Any]], policy: str, turnarounds: list[int]) -> None:
    assert list(by_task(simulate(policy, tasks), "turnaround").values()) == turnarounds


def test_a_late_short_job_starts_on_top_and_sinks_like_the_long_one() -> None:
    """OSTEP: J0@2[0,10)@1[10,20)@0[20,100) J1@2[100,110)@1[110,120) J0@0[120,200); its queue 2 is our level 0."""
    line = levels("mlfq:quantum=10", jobs((0, 180, 0), (100, 20, 0)))
    blocks = [(("J0", 0), 10), (("J0", 1), 10), (("J0", 2), 80), (("J1", 0), 10), (("J1", 1), 10), (("J0", 2), 80)]
    assert line == [who for who, length in blocks for _ in range(length)]


def test_a_boost_lifts_everybody_to_the_top() -> None:
    """OSTEP -B 50: J0@2[0,10) J1@2[10,20) J0@1[20,30) J1@1[30,40) J0@0[40,50) J1@2[50,60) J0@2[60,70)."""
    line = levels("mlfq:quantum=10,boost=50", jobs((0, 200, 0), (0, 200, 0)))
    expected = [("J0", 0), ("J1", 0), ("J0", 1), ("J1", 1), ("J0", 2), ("J1", 0), ("J0", 0)]
    assert line[:70] == [who for who in expected for _ in range(10)]


def test_sleeping_just_before_the_quantum_ends_pays_only_without_the_allotment() -> None:
    honest, gamer = jobs((0, 50, 0), (0, 50, 9), io=1)

    def share(anti_gaming: str) -> float:
        line = ticks(simulate(f"mlfq:levels=2,quantum=10,anti-gaming={anti_gaming}", [honest, gamer]))
        return line[:50].count("J1") / 50

    assert share("off") > 0.7
    assert share("on") < 0.5


def test_one_level_is_round_robin() -> None:
    tasks = [job("A", 0, 7), job("B", 1, 4), job("C", 2, 1), job("D", 4, 3)]
    for quantum in (1, 2, 3):
        mlfq = simulate(f"mlfq:levels=1,quantum={quantum},allotment=1000", tasks)
        assert slices(mlfq) == slices(simulate(f"rr:quantum={quantum}", tasks))


def test_aging_lets_a_starving_job_rise() -> None:
    short = [job(f"s{n:02}", 2 * n, 2) for n in range(1, 40)]
    tasks = [job("long", 0, 8), *short]
    starved = by_task(simulate("mlfq:quantum=2", tasks), "completion")["long"]
    risen = by_task(simulate("mlfq:quantum=2,aging=6", tasks), "completion")["long"]
    assert starved == 86  # after all the others
    assert risen < 40


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ("quantum=0", "at least 1"),
        ("quantum=2/4", "3 (the levels)"),
        ("allotment=x", "ticks"),
        ("levels=0", "at least"),
    ],
)
def test_levels_that_make_no_sense_are_refused(spec: str, rule: str) -> None:
    with pytest.raises(ConfigError, match="mlfq") as caught:
        simulate(f"mlfq:{spec}", [job("A", 0, 1)])
    assert rule in str(caught.value)


sleepers = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 30), st.integers(0, 5)), min_size=1, max_size=5).map(
    lambda rows: jobs(*rows, io=3)
)


@given(sleepers, st.sampled_from(["2/3/4", "3", "1/2/4"]), st.sampled_from(["", "4/6/8", "5"]))
@settings(max_examples=40, deadline=None)
def test_a_job_gets_no_more_than_its_allotment_at_a_level(tasks: list[Any], quanta: str, allotment: str) -> None:
    given_ = f"mlfq:quantum={quanta}" + (f",allotment={allotment}" if allotment else "")
    limits = [int(part) for part in (allotment or quanta).split("/")] * 3
    got: dict[tuple[str, int], int] = {}
    for who in levels(given_, tasks):
        got[who] = got.get(who, 0) + 1
    assert all(ticks_ <= limits[level] for (_, level), ticks_ in got.items() if level < 2)


@given(sleepers, st.integers(8, 25))
@settings(max_examples=30, deadline=None)
def test_between_two_boosts_a_job_that_is_there_has_been_on_top(tasks: list[Any], boost: int) -> None:
    """Rule 5, at every boost: whoever is there is at the top at that moment, with a fresh allotment."""
    for step in run(f"mlfq:boost={boost}", tasks, record="ticks").trace().steps():
        if step.time and int(step.time) % boost == 0:
            assert set(step.show["level"].values()) <= {0}
            assert set(step.show["used"].values()) <= {0}
