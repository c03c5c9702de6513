"""EDF and rate monotonic on periodic tasks: SimSo's responses, response-time analysis, and the theorems."""

from fractions import Fraction
from itertools import pairwise
from math import lcm

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.sim.cpu_oracles import response_time
from tests.sim.timelines import by_task, job, misses, periodic, responses, simulate, slices

from fairq.sim.source import InvalidScenario

Set = list[tuple[int, int]]
"""(wcet, period) each, more urgent first."""


@pytest.mark.parametrize(
    ("tasks", "policy", "task", "expected"),
    [
        ([(2, 5), (4, 7)], "rm", "T2", [8, 7, 6, 7, 6]),
        ([(2, 5), (4, 7)], "edf", "T1", [2, 3, 4, 2, 2, 3]),
        ([(2, 5), (4, 7)], "edf", "T2", [6, 5, 6, 5, 4]),
        ([(3, 7), (3, 12), (5, 20)], "rm", "T3", [20, 14, 15]),
        ([(3, 7), (3, 12), (5, 20)], "edf", "T2", [6, 8, 3, 5, 7]),
        ([(3, 7), (3, 12), (5, 20)], "edf", "T3", [14, 14, 9]),
        ([(2, 4), (4, 10)], "rm", "T2", [8, 6]),
    ],
)
def test_responses_of_successive_jobs_as_simso_finds_them(
    tasks: Set, policy: str, task: str, expected: list[int]
) -> None:
    found = responses(simulate(policy, periodic(*tasks)), task)
    assert found[: len(expected)] == expected


def test_rate_monotonic_misses_where_edf_holds() -> None:
    """U = 2/5 + 4/7 = 0.971: above the Liu-Layland bound, below 1."""
    tasks = periodic((2, 5), (4, 7))
    assert misses(simulate("rm", tasks)) == 1
    assert misses(simulate("edf", tasks)) == 0


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([(2, 4), (4, 10)], [2, 8]),
        ([(2, 5), (4, 7)], [2, 8]),
        ([(3, 7), (3, 12), (5, 20)], [3, 6, 20]),
        ([(1, 4), (2, 6), (3, 12)], [1, 3, 10]),
        ([(1, 4), (1, 5), (3, 9)], [1, 2, 7]),
        ([(20, 100), (40, 150), (100, 350)], [20, 60, 240]),
        ([(40, 100), (40, 150), (100, 350)], [40, 80, 300]),
        ([(5, 20), (20, 50), (35, 80)], [5, 30, None]),
    ],
)
def test_the_first_job_of_all_together_has_the_analysed_response(tasks: Set, expected: list[int | None]) -> None:
    result = simulate("rm", periodic(*tasks), horizon=max(period for _, period in tasks))
    for n, response in enumerate(expected):
        deadline = tasks[n][1]
        first = responses(result, f"T{n + 1}")[0]
        if response is None:
            assert first is None or first > deadline
        elif response <= deadline:
            assert first == response


@st.composite
def sets(draw: st.DrawFn, most: Fraction = Fraction(1)) -> Set:
    tasks: Set = []
    for _ in range(draw(st.integers(1, 4))):
        period = draw(st.sampled_from([2, 3, 4, 5, 6, 8, 10, 12, 15, 20]))
        room = most - sum((Fraction(c, t) for c, t in tasks), Fraction(0))
        if (top := min(int(room * period), period)) >= 1:
            tasks.append((draw(st.integers(1, top)), period))
    assume(tasks)
    return sorted(tasks, key=lambda task: task[1])


@given(sets(), st.lists(st.integers(0, 12), min_size=4, max_size=4))
@settings(max_examples=60, deadline=None)
def test_edf_misses_nothing_up_to_full_utilisation(tasks: Set, offsets: list[int]) -> None:
    """Liu and Layland's theorem 7, over the hyperperiod, also with offsets."""
    assert misses(simulate("edf", periodic(*tasks))) == 0
    shifted = [task | {"offset": offset} for task, offset in zip(periodic(*tasks), offsets, strict=False)]
    assert misses(simulate("edf", shifted)) == 0


@given(sets(), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_edf_misses_something_above_full_utilisation(tasks: Set, extra: int) -> None:
    tasks = [*tasks, (extra, 4), (extra, 4)]
    assume(sum(Fraction(c, t) for c, t in tasks) > 1)
    # Demand exceeds time by at least one tick in each hyperperiod, so a backlog of any length comes up.
    longest = lcm(*(period for _, period in tasks))
    assert misses(simulate("edf", periodic(*tasks), horizon=longest * 12)) > 0


@given(sets(most=Fraction(5, 4)))
@settings(max_examples=60, deadline=None)
def test_the_worst_response_under_rate_monotonic_is_the_analysed_one(tasks: Set) -> None:
    """The synchronous start is the critical instant; exact wherever the analysis finds D met."""
    assume(len({period for _, period in tasks}) == len(tasks))
    result = simulate("rm", periodic(*tasks))
    for n, (_, period) in enumerate(tasks):
        analysed = response_time(tasks, n, limit=period)
        found = responses(result, f"T{n + 1}")
        if analysed is None:
            assert found[0] is None or found[0] > period
            return  # what is less urgent is not analysable either
        assert max(found) == found[0] == analysed


@given(sets(most=Fraction(2, 3)))
@settings(max_examples=40, deadline=None)
def test_below_ln_2_rate_monotonic_misses_nothing(tasks: Set) -> None:
    """n(2^(1/n) - 1) is above 0.69 for every n."""
    assert misses(simulate("rm", periodic(*tasks))) == 0


def test_deadline_monotonic_holds_where_rate_monotonic_does_not() -> None:
    tasks = [
        {"id": "often", "period": 5, "wcet": 2},
        {"id": "urgent", "period": 20, "wcet": 3, "deadline": 4},
    ]
    assert misses(simulate("rm", tasks)) > 0
    assert misses(simulate("rm:by=deadline", tasks)) == 0


def test_an_overloaded_edf_lets_all_miss_and_rate_monotonic_only_the_longest() -> None:
    tasks = periodic((1, 4), (3, 6), (6, 12))  # U = 1.25
    late = {
        policy: {one["task"] for one in simulate(policy, tasks, horizon=240)["jobs"] if one["missed"]}
        for policy in ("edf", "rm")
    }
    assert late == {"edf": {"T1", "T2", "T3"}, "rm": {"T3"}}


def test_a_late_job_is_aborted_at_its_deadline_where_that_is_asked_for() -> None:
    tasks = periodic((2, 5), (4, 7))
    result = simulate("rm", tasks, on_miss="abort")
    first = next(one for one in result["jobs"] if one["task"] == "T2")
    assert first == {
        "task": "T2",
        "release": 0,
        "completion": None,
        "response": None,
        "missed": True,
        "deadline": 7,
        "preemptions": 1,
    }
    assert slices(result).startswith("T10-2 T22-5 T15-7 T27-10")  # its last tick is not run


def test_a_late_job_goes_on_and_the_next_one_of_its_task_waits() -> None:
    result = simulate("fcfs", [{"id": "slow", "period": 4, "wcet": 6, "deadline": 6}], horizon=24)
    assert [one["completion"] for one in result["jobs"]] == [6, 12, 18, 24, None, None]
    assert [one["missed"] for one in result["jobs"]] == [False, True, True, True, True, False]


def test_sporadic_jobs_keep_their_least_gap_and_a_seed_repeats_them() -> None:
    task = {"id": "S", "period": 5, "max_gap": 9, "wcet": 1}
    first = simulate("edf", [task], horizon=500, seed=3)
    releases = [one["release"] for one in first["jobs"]]
    gaps = {later - earlier for earlier, later in pairwise(releases)}
    assert gaps == {5, 6, 7, 8, 9}
    assert first == simulate("edf", [task], horizon=500, seed=3)
    assert first != simulate("edf", [task], horizon=500, seed=4)


def test_arrivals_may_be_listed() -> None:
    result = simulate("edf", [{"id": "S", "arrivals": [0, 7, 8], "wcet": 2, "deadline": 4}])
    assert [(one["release"], one["completion"]) for one in result["jobs"]] == [(0, 2), (7, 9), (8, 11)]


def test_a_task_without_a_deadline_runs_in_the_background() -> None:
    tasks = [job("batch", 0, 5), *periodic((2, 4))]
    for policy in ("edf", "rm"):
        result = simulate(policy, tasks, horizon=12)
        assert misses(result) == 0
        assert by_task(result, "completion") == {"batch": 11}


def test_a_single_job_that_comes_after_the_hyperperiod_is_not_lost() -> None:
    result = simulate("edf", [*periodic((2, 5)), job("A", 7, 10)])
    # A has no deadline, so it runs in 7-10, 12-15, 17-20 and 22-23.
    assert by_task(result, "completion") == {"A": 23}
    assert len(result["jobs"]) == 6  # 7 + (10 + 2) / (1 - 2/5) = 27, so six periods


@given(
    st.lists(st.tuples(st.integers(1, 2), st.sampled_from((6, 8, 12))), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 60), st.lists(st.integers(1, 5), min_size=1, max_size=3)), max_size=3),
    st.lists(st.integers(0, 40), min_size=1, max_size=3, unique=True),
    st.integers(0, 5),
    st.sampled_from(("fcfs", "edf", "rm", "srtf", "rr", "mlfq", "priority:aging=2", "stride", "cfs", "eevdf")),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_without_a_horizon_all_that_comes_once_is_done(
    recurring: list[tuple[int, int]],
    once: list[tuple[int, list[int]]],
    listed: list[int],
    offset: int,
    policy: str,
) -> None:
    tasks = periodic(*recurring)
    tasks[0] |= {"offset": offset}
    tasks += [{"id": f"J{n}", "arrival": at, "bursts": [*run, 1][: len(run) | 1]} for n, (at, run) in enumerate(once)]
    tasks.append({"id": "L", "wcet": 2, "arrivals": sorted(listed)})
    result = simulate(policy, tasks)
    over = [one["completion"] for one in [*result["tasks"], *result["jobs"]] if one.get("task", "") in ("L", "")]
    assert len(over) == len(once) + len(listed)
    assert None not in over


def test_single_jobs_beside_tasks_that_leave_no_time_ask_for_a_horizon() -> None:
    full = periodic((1, 2), (2, 4))
    with pytest.raises(InvalidScenario, match="horizon: missing; the periodic tasks leave no time"):
        simulate("edf", [*full, job("A", 0, 1)])
    assert simulate("edf", [*full, job("A", 0, 1)], horizon=8)["tasks"]
    with pytest.raises(InvalidScenario, match=r"horizon: missing; the hyperperiods until.* try \d+"):
        simulate("edf", [*periodic((1, 5)), job("A", 6_000_000, 1)])


def test_a_hyperperiod_that_is_too_long_offers_a_horizon() -> None:
    with pytest.raises(InvalidScenario, match=r"horizon: missing; the hyperperiod.*try \d+"):
        simulate("edf", periodic((1, 999_983), (1, 999_979), (1, 7)))
    with pytest.raises(InvalidScenario, match="impossible"):
        simulate("edf", [{"id": "T", "period": 9, "wcet": 5, "deadline": 3}])
