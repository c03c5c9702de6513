"""FCFS, SJF, SRTF and round robin: the article's lab, OSTEP's programs, and their theorems."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.cpu_oracles import Task, best_flow_time, best_order_wait, least, round_robin
from tests.sim.timelines import by_task, job, run, simulate, slices, ticks

LAB = [job("A", 0, 7), job("B", 1, 4), job("C", 2, 1), job("D", 4, 3)]  # the article's default


@pytest.mark.parametrize(
    ("policy", "timeline", "waiting", "response"),
    [
        ("fcfs", "A0-7 B7-11 C11-12 D12-15", 5.75, 5.75),
        ("sjf", "A0-7 C7-8 D8-11 B11-15", 4.75, 4.75),
        ("srtf", "A0-1 B1-2 C2-3 B3-6 D6-9 A9-15", 2.75, 0.5),
        (
            "rr:quantum=1",
            "A0-1 B1-2 A2-3 C3-4 B4-5 A5-6 D6-7 B7-8 A8-9 D9-10 B10-11 A11-12 D12-13 A13-15",
            5.25,
            0.75,
        ),
        ("rr:quantum=2", "A0-2 B2-4 C4-5 A5-7 D7-9 B9-11 A11-13 D13-14 A14-15", 5.75, 1.5),
        ("rr:quantum=3", "A0-3 B3-6 C6-7 A7-10 D10-13 B13-14 A14-15", 6.75, 3),
    ],
)
def test_the_articles_lab(policy: str, timeline: str, waiting: float, response: float) -> None:
    result = simulate(policy, LAB)
    assert slices(result) == timeline
    assert result["mean"]["waiting"] == waiting
    assert result["mean"]["response"] == response


def test_the_articles_table_of_fcfs_task_by_task() -> None:
    result = simulate("fcfs", LAB)
    rows = [[task[key] for key in ("completion", "turnaround", "waiting", "response")] for task in result["tasks"]]
    assert rows == [[7, 7, 0, 0], [11, 10, 6, 6], [12, 10, 9, 9], [15, 11, 8, 8]]


def test_an_expired_task_goes_first_where_that_is_asked_for() -> None:
    """The other reading of a quantum boundary: what cpusched-ash-win-cpu 1.0.1 computes for the same tasks."""
    run = simulate("rr:quantum=2,expired-first=on", LAB)
    assert slices(run) == "A0-4 B4-6 C6-7 A7-9 D9-11 B11-13 A13-14 D14-15"
    three = [job("A", 0, 5), job("B", 1, 2), job("C", 3, 2)]
    assert slices(simulate("rr:quantum=2,expired-first=on", three)) == "A0-4 B4-6 A6-7 C7-9"


def test_an_expired_task_may_overtake_only_what_comes_at_that_instant() -> None:
    """B came at 1, so its turn is before A's; C comes as A's quantum ends, so after."""
    run = simulate("rr:quantum=2,expired-first=on,overtakes=instant", LAB)
    assert slices(run).startswith("A0-2 B2-4 A4-6 C6-7")


OSTEP: list[tuple[list[int], str, tuple[float, float, float]]] = [
    ([200, 100, 5], "fcfs", (166.67, 268.33, 166.67)),
    ([200, 100, 5], "sjf", (36.67, 138.33, 36.67)),
    ([200, 100, 5], "rr", (1.00, 175.00, 73.33)),
    ([7, 4, 1, 3], "fcfs", (7.5, 11.25, 7.5)),
    ([7, 4, 1, 3], "sjf", (3.25, 7, 3.25)),
    ([7, 4, 1, 3], "rr", (1.5, 10, 6.25)),
    ([7, 4, 1, 3], "rr:quantum=3", (4, 11.5, 7.75)),
    ([9, 8, 5], "fcfs", (8.67, 16, 8.67)),
    ([9, 8, 5], "sjf", (6, 13.33, 6)),
    ([9, 8, 5], "rr", (1, 19.33, 12)),
    ([9, 8, 5], "rr:quantum=3", (3, 19.67, 12.33)),
]


@pytest.mark.parametrize(("lengths", "policy", "means"), OSTEP)
def test_ostep_scheduler(lengths: list[int], policy: str, means: tuple[float, float, float]) -> None:
    """What OSTEP's cpu-sched/scheduler.py prints, to its two decimals."""
    mean = simulate(policy, [job(f"J{n}", 0, length) for n, length in enumerate(lengths)])["mean"]
    assert [round(mean[key], 2) for key in ("response", "turnaround", "waiting")] == list(means)


def test_a_task_without_an_estimate_is_known_and_one_with_a_lie_gains() -> None:
    honest = [job("short", 0, 2), job("long", 0, 10)]
    lying = [job("short", 0, 2), job("long", 0, 10, estimate=1)]
    for policy in ("sjf", "srtf"):
        assert by_task(simulate(policy, honest), "completion") == {"short": 2, "long": 12}
        assert by_task(simulate(policy, lying), "completion") == {"short": 12, "long": 10}


def test_srtf_takes_a_job_that_outlived_its_estimate_to_be_about_to_end() -> None:
    tasks = [job("late", 0, 6, estimate=2), job("tiny", 3, 1)]
    assert slices(simulate("srtf", tasks)) == "late0-6 tiny6-7"


def test_a_long_task_starves_under_srtf_while_short_ones_keep_coming() -> None:
    tasks = [job("long", 0, 10), *(job(f"s{n}", 1 + 2 * n, 2) for n in range(20))]
    completions = by_task(simulate("srtf", tasks), "completion")
    assert completions["long"] == max(completions.values()) == 50


def test_the_convoy_effect() -> None:
    tasks = [job("truck", 0, 100), *(job(f"bike{n}", 1, 1) for n in range(9))]
    fcfs, rr = simulate("fcfs", tasks)["mean"], simulate("rr:quantum=1", tasks)["mean"]
    assert fcfs["waiting"] == (sum(range(99, 108))) / 10
    assert rr["waiting"] < fcfs["waiting"] / 10


task_lists = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 6)), min_size=1, max_size=6)


def as_jobs(tasks: list[Task]) -> list[dict[str, Any]]:
    return [job(str(n), arrival, burst) for n, (arrival, burst) in enumerate(tasks)]


def named(line: list[int | None]) -> list[str]:
    return ["." if task is None else str(task) for task in line]


@given(task_lists, st.integers(1, 7))
@settings(max_examples=80, deadline=None)
def test_round_robin_is_the_articles_loop(tasks: list[Task], quantum: int) -> None:
    assert ticks(simulate(f"rr:quantum={quantum}", as_jobs(tasks))) == named(round_robin(tasks, quantum))


@given(task_lists)
@settings(max_examples=80, deadline=None)
def test_sjf_and_srtf_take_the_least_and_ties_go_by_arrival_then_input(tasks: list[Task]) -> None:
    expected = least(tasks, lambda task, _: tasks[task][1], preemptive=False)
    assert ticks(simulate("sjf", as_jobs(tasks))) == named(expected)
    assert ticks(simulate("srtf", as_jobs(tasks))) == named(least(tasks, lambda _, left: left, preemptive=True))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4)), min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_no_schedule_at_all_has_a_smaller_flow_time_than_srtf(tasks: list[Task]) -> None:
    assert sum(by_task(simulate("srtf", as_jobs(tasks)), "turnaround").values()) == best_flow_time(tasks)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_no_order_has_a_smaller_wait_than_sjf_when_all_are_there(bursts: list[int]) -> None:
    waits = by_task(simulate("sjf", as_jobs([(0, burst) for burst in bursts])), "waiting")
    assert sum(waits.values()) == best_order_wait(bursts)


@given(task_lists)
@settings(max_examples=40, deadline=None)
def test_a_quantum_that_nobody_outlasts_is_fcfs(tasks: list[Task]) -> None:
    longest = max(burst for _, burst in tasks)
    assert ticks(simulate(f"rr:quantum={longest}", as_jobs(tasks))) == ticks(simulate("fcfs", as_jobs(tasks)))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_everyone_present_first_runs_within_n_minus_1_quanta(bursts: list[int], quantum: int) -> None:
    first = by_task(simulate(f"rr:quantum={quantum}", as_jobs([(0, burst) for burst in bursts])), "response")
    assert all(first[str(n)] <= n * quantum for n in range(len(bursts)))


WORK_CONSERVING = ("fcfs", "sjf", "srtf", "rr:quantum=2", "mlfq", "priority:aging=3", "edf")


@given(task_lists, st.sampled_from(WORK_CONSERVING), st.integers(1, 3))
@settings(max_examples=80, deadline=None)
def test_no_processor_is_idle_while_a_task_is_ready_and_times_add_up(tasks: list[Task], policy: str, cpus: int) -> None:
    result = simulate(policy, as_jobs(tasks), cpus=cpus)
    lines = [ticks(result, cpu) for cpu in range(cpus)]
    for now, column in enumerate(zip(*lines, strict=True)):
        busy = [one for one in column if one != "."]
        assert len(busy) == len(set(busy)), "a task runs on two processors at once"
        unfinished = [t for t in result["tasks"] if t["arrival"] <= now < t["completion"]]
        assert len(busy) == min(cpus, len(unfinished))
    assert result["measures"]["work_conserving"]
    for task in result["tasks"]:
        assert sum(line.count(task["id"]) for line in lines) == task["burst"]
        assert task["completion"] - task["arrival"] == task["turnaround"] == task["waiting"] + task["burst"]


def test_the_labs_view_has_a_first_state_and_one_step_for_every_tick() -> None:
    steps = list(run("fcfs", LAB, record="ticks").trace().steps())
    assert len(steps) == 16  # "1 / 16"
    assert steps[0].remaining == {"A": 7, "B": 4, "C": 1, "D": 3}
    assert steps[0].queues == {"ready": ["A"]}
    assert [step.what["ran"][0] for step in steps[1:]] == [*"AAAAAAABBBBCDDD"]
    assert [step.remaining.get("A", 0) for step in steps] == [7, 6, 5, 4, 3, 2, 1, *[0] * 9]
    assert steps[4].queues == {"ready": ["B", "C", "D"]}
    assert all(step.why for step in steps[1:])


@given(task_lists, st.sampled_from(WORK_CONSERVING))
@settings(max_examples=25, deadline=None)
def test_a_trace_tells_what_the_run_did(tasks: list[Task], policy: str) -> None:
    """Also when it is watched at every tick."""
    result = simulate(policy, as_jobs(tasks))
    every = list(run(policy, as_jobs(tasks), record="ticks").trace().steps())
    assert [step.what["ran"][0] or "." for step in every][1:] == ticks(result)
    events = list(run(policy, as_jobs(tasks)).trace().steps())
    ran = [(int(a.time), int(b.time), b.what["ran"][0]) for a, b in pairwise(events)]
    assert [who or "." for start, end, who in ran for _ in range(start, end)] == ticks(result)


def test_among_equals_a_preempted_job_goes_first_or_as_in_the_textbook_last() -> None:
    """Silberschatz, Galvin, Gagne, Operating System Concepts: six processes, quantum 10, "placed at the end"."""
    tasks = [
        {"id": f"P{n}", "arrival": arrival, "burst": burst, "priority": priority}
        for n, (priority, burst, arrival) in enumerate(
            [(40, 20, 0), (30, 25, 25), (30, 25, 30), (35, 15, 60), (5, 10, 100), (10, 10, 105)], 1
        )
    ]

    def after(policy: str) -> list[tuple[str | None, int, int]]:
        return [
            (one["task"], one["start"], one["end"]) for one in simulate(policy, tasks)["timeline"] if one["end"] > 60
        ]

    rest = [(None, 90, 100), ("P5", 100, 105), ("P6", 105, 115), ("P5", 115, 120)]
    told = [("P4", 60, 75), ("P2", 75, 80), ("P3", 80, 90), *rest]
    assert after("priority:quantum=10,preempted=last") == told
    assert after("priority:quantum=10") == [("P4", 60, 75), ("P3", 75, 80), ("P2", 80, 85), ("P3", 85, 90), *rest]
