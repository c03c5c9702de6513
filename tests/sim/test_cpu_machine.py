"""What the CPU's event loop itself promises: switches, sleep, several processors, abort, limits."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.timelines import by_task, job, run, simulate, slices, ticks

from fairq.core.errors import ConfigError


def test_a_switch_costs_time_and_going_on_does_not() -> None:
    tasks = [job("A", 0, 3), job("B", 0, 2)]
    result = simulate("rr:quantum=1", tasks, switch_cost=2)
    assert slices(result) == (
        "A0-1 switch1-3 B3-4 switch4-6 A6-7 switch7-9 B9-10 switch10-12 A12-13"  # and not before A's first
    )
    assert result["switches"] == 4
    alone = simulate("rr:quantum=1", tasks[:1], switch_cost=2)
    assert slices(alone) == "A0-3"


def test_a_small_quantum_drowns_in_switches() -> None:
    tasks = [job(f"T{n}", 0, 20) for n in range(5)]
    ends = {
        q: max(by_task(simulate(f"rr:quantum={q}", tasks, switch_cost=1), "completion").values()) for q in (1, 5, 20)
    }
    assert ends == {1: 199, 5: 119, 20: 104}  # 100 ticks of work and one for each of 99, 19, 4 switches


def test_an_arrival_during_a_switch_may_take_the_processor() -> None:
    tasks = [job("A", 0, 1), job("B", 0, 9), job("C", 2, 1)]
    assert slices(simulate("srtf", tasks, switch_cost=3)) == "A0-1 switch1-5 C5-6 switch6-9 B9-18"
    assert by_task(simulate("srtf", tasks, switch_cost=3), "response")["B"] == 9


def test_sleeping_frees_the_processor_and_is_not_waiting() -> None:
    tasks = [job("io", 0, 6, io={"every": 2, "for": 3}) | {}, job("cpu", 0, 6)]
    result = simulate("rr:quantum=2", tasks)
    assert slices(result) == "io0-2 cpu2-6 io6-8 cpu8-10 idle10-11 io11-13"
    assert by_task(result, "waiting") == {"io": 1, "cpu": 4}


def test_bursts_can_be_listed_one_by_one() -> None:
    result = simulate("fcfs", [{"id": "A", "bursts": [2, 5, 1, 1, 3]}])
    assert slices(result) == "A0-2 idle2-7 A7-8 idle8-9 A9-12"


def test_shortest_job_first_compares_next_bursts() -> None:
    tasks = [{"id": "interactive", "bursts": [1, 2, 1, 2, 1, 2, 1]}, job("batch", 0, 3), job("long", 0, 9)]
    assert slices(simulate("sjf", tasks)).startswith("interactive0-1 batch1-4 interactive4-5 long5-14")


def test_two_processors_run_the_two_most_urgent_and_nobody_moves_without_need() -> None:
    tasks = [
        job("A", 0, 6, priority=1),
        job("B", 0, 6, priority=2),
        job("C", 2, 2, priority=3),
        job("D", 3, 1, priority=0),
    ]
    result = simulate("priority:quantum=0", tasks, cpus=2)
    assert "".join(ticks(result, 0)) == "BBBBBBD."
    assert "".join(ticks(result, 1)) == "AACCAAAA"
    assert by_task(result, "preemptions") == {"A": 1, "B": 0, "C": 0, "D": 0}


def test_of_several_running_jobs_the_least_urgent_gives_way() -> None:
    tasks = [job("low", 0, 9, priority=1), job("high", 0, 9, priority=5), job("middle", 3, 2, priority=3)]
    for order in (tasks, [tasks[1], tasks[0], tasks[2]]):
        result = simulate("priority", order, cpus=2)
        assert by_task(result, "preemptions") == {"low": 1, "high": 0, "middle": 0}
        assert by_task(result, "completion") == {"low": 11, "high": 9, "middle": 5}


def test_a_deadline_of_a_single_task_is_absolute() -> None:
    tasks = [job("A", 0, 7), job("B", 1, 4, deadline=6)]
    late = {
        policy: by_task(simulate(policy, [tasks[0] | {"deadline": 20}, tasks[1]]), "missed")
        for policy in ("fcfs", "edf")
    }
    assert late == {"fcfs": {"A": False, "B": True}, "edf": {"A": False, "B": False}}


@pytest.mark.parametrize("policy", ["fcfs", "sjf", "srtf", "rr", "mlfq", "priority", "edf", "rm"])
def test_an_aborted_job_is_gone_wherever_it_was(policy: str) -> None:
    """Running, waiting, asleep, or blocked on a lock that it then never gets; all others end."""
    lock = {"resource": "r", "at": 0, "for": 8}
    tasks: list[dict[str, Any]] = [
        job("running", 0, 9, deadline=10, priority=4, locks=[lock]),
        job("waiting", 0, 9, deadline=9),
        job("blocked", 1, 9, deadline=12, priority=5, locks=[lock]),
        {"id": "asleep", "bursts": [1, 30, 1], "deadline": 20, "priority": 6},
        job("patient", 0, 9, priority=-1, locks=[lock]),
    ]
    result = simulate(policy, tasks, on_miss="abort")
    completion = by_task(result, "completion")
    assert completion["patient"] is not None
    assert completion["asleep"] is None
    assert all(one["missed"] is (one["completion"] is None) for one in result["tasks"] if "missed" in one)


def test_a_run_that_does_not_end_says_so() -> None:
    with pytest.raises(ConfigError, match=r"max_steps = 1000: the run is not over at t = "):
        simulate("rr", [job("A", 0, 10_000), job("B", 0, 10_000)], max_steps=1000)


def test_a_boost_period_does_not_keep_an_idle_machine_awake() -> None:
    tasks = [job("A", 0, 3), job("B", 1_000_000, 3)]
    assert run("mlfq:boost=7", tasks).moments < 20


def test_weights_change_while_the_run_goes_on() -> None:
    tasks = [job("A", 0, 40), job("B", 0, 40)]
    line = ticks(simulate("stride", tasks, changes=[{"at": 20, "task": "A", "weight": 3}]))
    assert line[:20].count("A") == 10
    assert line[20:40].count("A") == 15


@pytest.mark.parametrize("policy", ["fcfs", "edf", "sjf", "rm"])
@pytest.mark.parametrize("changes", [[], [{"at": 0, "task": "B", "weight": 1}]])  # the quick loop, the whole machine
def test_a_job_behind_the_one_before_it_has_its_place_from_its_release(policy: str, changes: list[Any]) -> None:
    tasks = [{"id": "A", "arrivals": [0, 1], "wcet": 3, "deadline": 9}, job("B", 2, 3, deadline=10)]
    line = "".join(ticks(simulate(policy, tasks, changes=changes)))
    assert line == "AAAAAABBB"  # both of A's came before B, and all three are alike to the policy


def test_fairness_is_measured_at_the_weights_of_the_time() -> None:
    tasks = [job("A", 0, 60), job("B", 0, 60)]
    result = run("stride", tasks, changes=[{"at": 20, "task": "A", "weight": 3}])
    before, after, alone = result.fairness()
    assert (before.start, before.end, before.service) == (0, 20, {"A": 10, "B": 10})
    # A's last 50 ticks take 16 or 17 of B's.
    assert (after.start, after.end, after.service) == (20, 86, {"A": Fraction(50, 3), "B": 16})
    assert alone.service == {"B": 34}
    told = result.as_json()["fairness"]
    assert [one["jain"] > 0.999 and one["max_min"] > 0.95 for one in told] == [True] * 3


burst_lists = st.lists(st.integers(1, 4), min_size=1, max_size=5).map(
    lambda bursts: bursts[: (len(bursts) - 1) // 2 * 2 + 1]
)


@given(
    st.lists(st.tuples(st.integers(0, 8), burst_lists), min_size=1, max_size=5), st.integers(1, 3), st.integers(0, 2)
)
@settings(max_examples=60, deadline=None)
def test_with_sleep_switches_and_processors_every_task_gets_exactly_its_work(
    given_: list[tuple[int, list[int]]], cpus: int, switch_cost: int
) -> None:
    tasks = [{"id": str(n), "arrival": at, "bursts": bursts} for n, (at, bursts) in enumerate(given_)]
    for policy in ("rr:quantum=2", "srtf", "mlfq", "priority:aging=9"):
        result = simulate(policy, tasks, cpus=cpus, switch_cost=switch_cost)
        lines = [ticks(result, cpu) for cpu in range(cpus)]
        for n, (at, bursts) in enumerate(given_):
            assert sum(line.count(str(n)) for line in lines) == sum(bursts[::2])
            slept = sum(bursts[1::2])
            assert by_task(result, "turnaround")[str(n)] >= sum(bursts)
            assert by_task(result, "completion")[str(n)] == at + by_task(result, "turnaround")[str(n)]
            assert (
                by_task(result, "waiting")[str(n)] == by_task(result, "turnaround")[str(n)] - sum(bursts[::2]) - slept
            )


def test_a_weight_can_change_before_its_task_has_come() -> None:
    tasks = [job("A", 0, 40), job("B", 10, 40)]
    line = ticks(simulate("stride", tasks, changes=[{"at": 5, "task": "B", "weight": 3}]))
    assert line[10:50].count("B") == 30


@given(
    st.lists(st.tuples(st.integers(0, 10), st.integers(1, 6), st.integers(0, 3)), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(1, 3), st.integers(3, 9)), max_size=3),
    st.sampled_from(
        ["fcfs", "sjf", "srtf", "rr:quantum=2", "edf", "rm", "stride:quantum=2", "lottery", "cfs", "eevdf"]
    ),
)
@settings(max_examples=120, deadline=None)
def test_the_quick_loop_does_what_the_whole_machine_does(
    singles: list[tuple[int, int, int]], recurring: list[tuple[int, int]], policy: str
) -> None:
    tasks: list[dict[str, Any]] = [
        job(f"J{n}", at, burst, weight=1 + priority, deadline=at + burst + 5 * priority)
        for n, (at, burst, priority) in enumerate(singles)
    ]
    tasks += [{"id": f"T{n}", "wcet": wcet, "period": period} for n, (wcet, period) in enumerate(recurring)]
    horizon = {"horizon": 60} if recurring else {}
    quick = run(policy, tasks, **horizon)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairq.sim.cpu.machine.is_alone", lambda *_: False)
        whole = run(policy, tasks, **horizon)
    assert quick.as_json() == whole.as_json()
    assert quick.moments == whole.moments
