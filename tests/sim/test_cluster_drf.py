"""Dominant resource fairness in a cluster: the paper's example, its four properties, tasks that come and go."""

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.program import fairq
from tests.oracle import fluid_drf, max_min

from fairq.sim.cluster.run import ClusterRun
from fairq.sim.cluster.scenario import ClusterScenario

PAPER = "--capacity cpu=9,mem=18 --user A:cpu=1,mem=4 --user B:cpu=3,mem=1"


def command(arguments: str) -> dict[str, Any]:
    result = fairq("sim", "cluster", *arguments.split(), "--json")
    assert result.status == 0, result.err
    document = json.loads(result.out)
    assert document["layer"] == "cluster"
    run: dict[str, Any] = document["runs"][0]
    return run


def test_the_example_of_the_paper_gives_two_thirds_to_each() -> None:
    told = command(f"{PAPER} --policy drf")
    assert told["picks"] == ["A", "B", "A", "B", "A"]
    assert told["tasks"] == {"A": 3, "B": 2}
    assert told["dominant_share"] == {"A": "2/3", "B": "2/3"}
    assert told["used"] == {"cpu": 9, "mem": 14}


def test_another_name_breaks_the_tie_and_changes_the_order_only() -> None:
    """With ties to the other user the picks are B, A, A, B, A."""
    told = command("--capacity cpu=9,mem=18 --user Z:cpu=1,mem=4 --user B:cpu=3,mem=1 --policy drf")
    assert told["picks"] == ["B", "Z", "Z", "B", "Z"]
    assert told["tasks"] == {"Z": 3, "B": 2}


def test_counting_one_resource_only_starves_who_needs_little_of_it() -> None:
    """By CPU alone both get the same CPU, while A takes nearly all the memory."""
    told = command(f"{PAPER} --policy drf:by=cpu")
    assert told["tasks"] == {"A": 4, "B": 1}
    assert told["dominant_share"] == {"A": "8/9", "B": "1/3"}


def run(capacity: Mapping[str, int], users: list[dict[str, Any]], spec: str, **more: Any) -> ClusterRun:
    scenario = ClusterScenario.model_validate({"capacity": dict(capacity), "users": users, **more})
    return ClusterRun(scenario, spec)


def test_skip_lets_a_small_task_pass_a_large_one_and_stop_does_not() -> None:
    """B is at 1/4 per weight and A at 3/10; B's next task needs 5 of the 2 left, A's needs 1."""
    users = [{"id": "A", "demand": {"cpu": 1}, "tasks": 9, "weight": 1}, {"id": "B", "demand": {"cpu": 5}, "weight": 2}]
    stop, skip = (run({"cpu": 10}, users, f"drf:misfit={rule}") for rule in ("stop", "skip"))
    assert "".join(stop.picks) == "ABAA"
    assert "".join(skip.picks) == "ABAAAA"


def test_a_task_that_ends_makes_room_for_the_least_served() -> None:
    """At 3 A holds nothing and B a third: A is next. At 6 only B's are left."""
    users = [
        {"id": "A", "demand": {"gpu": 2}, "tasks": 2, "duration": 3},
        {"id": "B", "demand": {"gpu": 1}, "tasks": 3},
    ]
    done = run({"gpu": 3}, users, "drf")
    assert [(time, kind, user) for time, kind, user, _ in done.steps] == [
        *((0, "start", "A"), (0, "start", "B")),
        *((3, "finish", "A"), (3, "start", "A")),
        *((6, "finish", "A"), (6, "start", "B"), (6, "start", "B")),
    ]


def test_at_one_instant_ends_come_before_arrivals_and_arrivals_before_picks() -> None:
    users = [
        {"id": "A", "demand": {"gpu": 1}, "tasks": 1, "duration": 5},
        {"id": "B", "demand": {"gpu": 1}, "arrival": 5},
    ]
    assert [(time, kind, user) for time, kind, user, _ in run({"gpu": 1}, users, "drf").steps] == [
        *((0, "start", "A"), (5, "finish", "A"), (5, "start", "B")),
    ]


def test_a_horizon_ends_users_without_end() -> None:
    users = [{"id": "A", "demand": {"gpu": 1}, "duration": 4}]
    assert run({"gpu": 1}, users, "drf", horizon=9).picks == ["A", "A", "A"]


RESOURCES = ("cpu", "mem", "disk")
POSITIVE = st.dictionaries(
    st.sampled_from("ABCD"),
    st.tuples(st.fixed_dictionaries(dict.fromkeys(RESOURCES, st.integers(1, 6))), st.integers(1, 3)),
    min_size=2,
)
CAPACITY = st.fixed_dictionaries(dict.fromkeys(RESOURCES, st.integers(20, 60)))
Users = dict[str, tuple[dict[str, int], int]]


def allocation(capacity: Mapping[str, int], users: Users, spec: str = "drf") -> dict[str, int]:
    """User -> tasks; everybody always has another one."""
    listed = [{"id": user, "demand": demand, "weight": weight} for user, (demand, weight) in users.items()]
    told: dict[str, int] = run(capacity, listed, spec).as_json()["tasks"]
    return told


def task_share(capacity: Mapping[str, int], demand: Mapping[str, int]) -> Fraction:
    return max(Fraction(demand[r], capacity[r]) for r in capacity)


@settings(max_examples=60, deadline=None)
@given(capacity=CAPACITY, users=POSITIVE)
def test_nobody_gets_less_than_from_a_cluster_of_its_own_share_but_for_a_task(
    capacity: dict[str, int], users: Users
) -> None:
    """Sharing incentive. Where a task did not fit, 1 - its share is less than all shares of that resource together, and
    each is at most w_i (the least s/w) + a task. So the least s/w is above (1 - all tasks' shares - one more) / W."""
    for spec in ("drf", "drf:misfit=skip"):
        tasks = allocation(capacity, users, spec)
        sizes = {user: task_share(capacity, demand) for user, (demand, _) in users.items()}
        total = sum(weight for _, weight in users.values())
        missing = sum(sizes.values()) + max(sizes.values())
        for user, (_, weight) in users.items():
            assert tasks[user] * sizes[user] / weight > (1 - missing) / total


@settings(max_examples=60, deadline=None)
@given(capacity=CAPACITY, users=POSITIVE)
def test_nobody_could_run_more_with_what_another_has_but_for_a_task(capacity: dict[str, int], users: Users) -> None:
    """Envy-freeness: in another's bundle, less one of its tasks and scaled to one's own weight, no more of one's own
    tasks would fit."""
    tasks = allocation(capacity, users)
    for user, (demand, weight) in users.items():
        for other, (bundle, weight_of_other) in users.items():
            held = {r: max(tasks[other] - 1, 0) * bundle[r] * Fraction(weight, weight_of_other) for r in capacity}
            assert min(held[r] / demand[r] for r in capacity) <= tasks[user]


@settings(max_examples=60, deadline=None)
@given(
    capacity=CAPACITY,
    users=st.dictionaries(
        st.sampled_from("ABCD"),
        st.tuples(
            st.fixed_dictionaries(dict.fromkeys(RESOURCES, st.integers(0, 6))).filter(lambda d: any(d.values())),
            st.integers(1, 3),
        ),
        min_size=1,
    ),
)
def test_with_skip_nothing_is_left_that_anybody_could_use(capacity: dict[str, int], users: Users) -> None:
    """Pareto efficiency: no further task of anyone fits."""
    tasks = allocation(capacity, users, "drf:misfit=skip")
    left = {r: capacity[r] - sum(tasks[user] * demand[r] for user, (demand, _) in users.items()) for r in capacity}
    assert all(amount >= 0 for amount in left.values())
    for demand, _ in users.values():
        assert any(demand[r] > left[r] for r in capacity)


def fluid(capacity: Mapping[str, int], users: Users) -> dict[str, Fraction]:
    demands = {user: demand for user, (demand, _) in users.items()}
    return fluid_drf(capacity, demands, {user: weight for user, (_, weight) in users.items()})


@settings(max_examples=40, deadline=None)
@given(capacity=CAPACITY, users=POSITIVE)
def test_whole_tasks_follow_the_fluid_to_within_the_sizes_of_a_task_of_each(
    capacity: dict[str, int], users: Users
) -> None:
    """From the same argument as the sharing incentive, on the resource that the fluid uses up first."""
    tasks, exact = allocation(capacity, users), fluid(capacity, users)
    sizes = {user: task_share(capacity, demand) for user, (demand, _) in users.items()}
    level = {user: tasks[user] * sizes[user] / weight for user, (_, weight) in users.items()}
    (target,) = {exact[user] * sizes[user] / weight for user, (_, weight) in users.items()}
    least = min(level.values())
    for user, (_, weight) in users.items():
        assert level[user] <= least + sizes[user] / weight
    assert least <= target
    slack = sum(sizes.values()) + max(sizes.values())
    heaviest = max(
        sum(weight * Fraction(demand[r], capacity[r]) / sizes[user] for user, (demand, weight) in users.items())
        for r in capacity
    )
    assert least > target - slack / heaviest


@settings(max_examples=60, deadline=None)
@given(capacity=CAPACITY, users=POSITIVE, lie=st.fixed_dictionaries(dict.fromkeys(RESOURCES, st.integers(1, 8))))
def test_lying_about_ones_demand_gains_no_true_task(
    capacity: dict[str, int], users: Users, lie: dict[str, int]
) -> None:
    """Strategy-proofness, of the division that the policy follows."""
    liar = min(users)
    demand, weight = users[liar]
    honest = fluid(capacity, users)[liar]
    claimed = fluid(capacity, users | {liar: (lie, weight)})[liar]
    assert min(claimed * Fraction(lie[r], demand[r]) for r in capacity) <= honest


@settings(max_examples=60, deadline=None)
@given(wanted=st.dictionaries(st.sampled_from("ABCDE"), st.integers(1, 30), min_size=1), cpus=st.integers(5, 60))
def test_with_one_resource_it_is_max_min_fair(wanted: dict[str, int], cpus: int) -> None:
    users = [{"id": user, "demand": {"cpu": 1}, "tasks": tasks} for user, tasks in wanted.items()]
    got = run({"cpu": cpus}, users, "drf").as_json()["tasks"]
    fair = max_min(cpus, wanted, dict.fromkeys(wanted, 1))
    assert all(abs(got[user] - fair[user]) < 1 for user in wanted)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("--user A:cpu=1", "capacity: missing"),
        ("--capacity cpu=9", "users: missing"),
        ("--capacity cpu=0 --user A:cpu=1", "capacity.cpu = '0': must be at least 1"),
        ("--capacity cpu=9 --user A:cpu=10", "users[0].demand.cpu = '10': more than the 9 there are"),
        ("--capacity cpu=9 --user A:cpu=0", "must be above 0 for some resource"),
        ("--capacity cpu=9 --user A:cpu=1,wieght=2", "demand.wieght = '2': not in capacity; did you mean weight"),
        ("--capacity cpu=9 --user A:cpu=-1", "must be at least 0"),
        ("--capacity cpu=9 --user A:cpu=1 --user A:cpu=1", "users[1].id = 'A': given twice"),
        ("--capacity cpu=9 --user A:cpu=1,duration=3", "tasks: missing (its tasks end), or give a horizon"),
        ("--capacity cpu=99999999 --user A:cpu=1", "tasks may start, more than"),
        ("--capacity cpu=9 --user A:cpu=1 --policy drf:by=gpu", "drf.by = 'gpu': unknown"),
        ("--capacity cpu=9 --user A:cpu=1 --policy wfq", "needs rate, size, which layer cluster lacks"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments: str, complaint: str) -> None:
    result = fairq("sim", "cluster", *arguments.split())
    assert result.status == 2
    (line,) = result.err.splitlines()
    assert line.startswith("fairq sim cluster: ")
    assert complaint in line


def test_the_recorded_trace_has_a_step_for_each_start_and_end() -> None:
    users = [{"id": "A", "demand": {"gpu": 1}, "tasks": 2, "duration": 3}]
    scenario = ClusterScenario.model_validate({"capacity": {"gpu": 1}, "users": users})
    steps = list(ClusterRun(scenario, "drf", "events").trace().steps())
    assert [(step.time, step.kind, step.running) for step in steps] == [
        *((0, "start", ["A#1"]), (3, "finish", []), (3, "start", ["A#2"]), (6, "finish", [])),
    ]
    assert steps[0].show == {"shares": {"A": 1}}
