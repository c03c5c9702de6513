"""Priority inversion and what each protocol does about it: by rule, by example, by lemma."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.sim.timelines import by_task, job, simulate, slices, ticks

from fairq.core.errors import ConfigError
from fairq.locks import PROTOCOLS, Ceiling, Hold, ImmediateCeiling, Inheritance, Protocol
from fairq.policies.fixed import PROTOCOL


def held(resource: str, at: int, for_: int) -> dict[str, Any]:
    return {"resource": resource, "at": at, "for": for_}


# The rules, one at a time


def test_inheritance_follows_chains_and_falls_back_on_release() -> None:
    locks = Inheritance({"r": 3, "s": 3})
    for job_, priority in (("low", 1), ("middle", 2), ("high", 3)):
        locks.join(job_, priority)
    assert locks.request("low", "r") is None
    assert locks.request("middle", "s") is None
    assert locks.request("middle", "r") == "low"
    assert locks.changed() == [("low", 2)]
    assert locks.request("high", "s") == "middle"
    assert sorted(locks.changed()) == [("low", 3), ("middle", 3)]
    assert locks.release("low", "r") == ["middle"]
    assert locks.changed() == [("low", 1)]


def test_the_most_urgent_waiter_is_woken_and_first_come_among_equals() -> None:
    locks = Protocol({})
    for job_, priority in (("holder", 0), ("first", 1), ("second", 1), ("urgent", 2)):
        locks.join(job_, priority)
        locks.request(job_, "r")
    assert locks.release("holder", "r") == ["urgent"]
    locks.request("urgent", "r")
    assert locks.release("urgent", "r") == ["first"]


def test_a_woken_job_that_goes_away_passes_its_turn_on() -> None:
    locks = Protocol({})
    for job_ in ("holder", "woken", "other"):
        locks.join(job_, 0)
        locks.request(job_, "r")
    assert locks.release("holder", "r") == ["woken"]
    assert locks.leave("woken") == ["other"]


def test_the_ceiling_refuses_a_free_resource_and_only_then_lends_priority() -> None:
    locks = Ceiling({"r": 3, "s": 2})
    for job_, priority in (("low", 1), ("middle", 2), ("high", 3)):
        locks.join(job_, priority)
    assert locks.request("low", "r") is None
    assert locks.changed() == []  # nobody is blocked yet
    assert locks.request("middle", "s") == "low"  # s is free, but 2 is not above r's ceiling 3
    assert locks.changed() == [("low", 2)]
    assert locks.release("low", "r") == ["middle"]
    assert locks.changed() == [("low", 1)]
    assert locks.request("middle", "s") is None
    assert locks.request("high", "r") is None  # 3 is above s's ceiling 2


def test_the_immediate_ceiling_raises_the_holder_before_anybody_is_blocked() -> None:
    locks = ImmediateCeiling({"r": 3, "s": 2})
    locks.join("low", 1)
    assert locks.request("low", "s") is None
    assert locks.changed() == [("low", 2)]
    assert locks.request("low", "r") is None
    assert locks.changed() == [("low", 3)]
    locks.release("low", "r")
    assert locks.changed() == [("low", 2)]


def test_a_circle_is_found_and_named() -> None:
    locks = Protocol({})
    for job_ in "ABC":
        locks.join(job_, 0)
        locks.request(job_, job_.lower())
    assert locks.request("A", "b") == "B"
    assert locks.request("B", "c") == "C"
    assert locks.deadlock("B") == []
    assert locks.request("C", "a") == "A"
    assert locks.deadlock("C") == [Hold("C", "a", "A"), Hold("A", "b", "B"), Hold("B", "c", "C")]


# Known stories


def pathfinder(medium: int) -> list[dict[str, Any]]:
    """Mars Pathfinder: bc_dist (high) needs the mutex that ASI/MET (low) holds when a medium task comes."""
    return [
        job("low", 0, 6, priority=1, locks=[held("mutex", 0, 4)]),
        job("high", 1, 2, priority=9, locks=[held("mutex", 0, 1)]),
        job("medium", 2, medium, priority=5),
    ]


@pytest.mark.parametrize("protocol", ["inheritance", "ceiling", "immediate-ceiling"])
def test_mars_pathfinder(protocol: str) -> None:
    """Without a protocol the high task waits for as long as the medium one runs; with any it does not."""

    def turnaround(protocol: str, medium: int) -> int:
        result = simulate(f"priority:protocol={protocol}", pathfinder(medium))
        return int(by_task(result, "turnaround")["high"])

    lengths = (10, 20, 40)
    assert [turnaround("none", medium) for medium in lengths] == [medium + 5 for medium in lengths]
    assert [turnaround(protocol, medium) for medium in lengths] == [5, 5, 5]


def crossing(protocol: str) -> dict[str, Any]:
    """Two tasks take two locks in opposite orders."""
    tasks = [
        job("low", 0, 4, priority=1, locks=[held("r", 0, 4), held("s", 2, 1)]),
        job("high", 1, 4, priority=2, locks=[held("s", 0, 4), held("r", 1, 1)]),
    ]
    return simulate(f"priority:protocol={protocol}", tasks)


@pytest.mark.parametrize("protocol", ["none", "inheritance"])
def test_opposite_orders_deadlock_without_ceilings(protocol: str) -> None:
    result = crossing(protocol)
    assert result["deadlock"]["cycle"] == [
        {"task": "low", "waits_for": "s", "held_by": "high"},
        {"task": "high", "waits_for": "r", "held_by": "low"},
    ]
    assert by_task(result, "completion") == {"low": None, "high": None}


@pytest.mark.parametrize("protocol", ["ceiling", "immediate-ceiling"])
def test_opposite_orders_cannot_deadlock_with_ceilings(protocol: str) -> None:
    result = crossing(protocol)
    assert "deadlock" not in result
    assert slices(result) == "low0-4 high4-8"


def test_the_others_run_on_when_some_are_deadlocked() -> None:
    tasks = [
        job("low", 0, 4, priority=1, locks=[held("r", 0, 4), held("s", 2, 1)]),
        job("high", 1, 4, priority=2, locks=[held("s", 0, 4), held("r", 1, 1)]),
        job("bystander", 5, 3),
    ]
    assert by_task(simulate("priority", tasks), "completion") == {"low": None, "high": None, "bystander": 8}


def test_chained_blocking_under_inheritance_and_none_under_the_ceiling() -> None:
    """H needs r, then s; each is held by another less urgent task when H comes."""
    tasks = [
        job("L", 0, 5, priority=1, locks=[held("s", 0, 4)]),
        job("M", 1, 5, priority=2, locks=[held("r", 0, 4)]),
        job("H", 2, 4, priority=3, locks=[held("r", 1, 1), held("s", 2, 1)]),
    ]

    def blocked(protocol: str) -> list[str]:
        line = ticks(simulate(f"priority:protocol={protocol}", tasks))
        return [who for who in line[2 : max(n for n, who in enumerate(line) if who == "H")] if who != "H"]

    assert blocked("inheritance") == [*"MMM", *"LLL"]  # two critical sections
    assert set(blocked("ceiling")) == {"L"}  # one


def test_inheritance_blocks_through_a_chain() -> None:
    """H waits for M, M waits for L; a medium task must not get between."""
    tasks = [
        job("L", 0, 6, priority=1, locks=[held("r", 0, 5)]),
        job("M", 1, 5, priority=2, locks=[held("s", 0, 4), held("r", 1, 1)]),
        job("H", 3, 2, priority=9, locks=[held("s", 0, 1)]),
        job("X", 4, 30, priority=5),
    ]
    line = ticks(simulate("priority:protocol=inheritance", tasks))
    assert "X" not in line[: max(n for n, who in enumerate(line) if who == "H")]


def test_osek_immediate_ceiling_defers_everybody_up_to_the_ceiling() -> None:
    """Jings1017/Scheduling_Simulation test 1: T1 holds R1 (ceiling T4); T2-T4 are deferred, T5 runs at once."""
    tasks = [job("T1", 0, 7, priority=1, locks=[held("R1", 0, 6)])]
    tasks += [job(f"T{n}", n - 1, 2, priority=n) for n in (2, 3)]
    tasks += [job("T4", 3, 2, priority=4, locks=[held("R1", 0, 1)]), job("T5", 4, 2, priority=5)]
    line = ticks(simulate("priority:protocol=immediate-ceiling", tasks))
    order = [who for n, who in enumerate(line) if n == 0 or line[n - 1] != who]
    assert order == ["T1", "T5", "T1", "T4", "T3", "T2", "T1"]


@pytest.mark.parametrize("protocol", ["ceiling", "immediate-ceiling"])
def test_ceilings_are_for_one_processor(protocol: str) -> None:
    with pytest.raises(ConfigError, match="one processor"):
        simulate(f"priority:protocol={protocol}", pathfinder(3), cpus=2)


def test_rate_monotonic_tasks_inherit_too() -> None:
    """The long-period holder runs at the short period's priority while the short one waits for its lock."""
    tasks = [
        {"id": "fast", "period": 10, "wcet": 2, "offset": 1, "locks": [held("m", 0, 1)]},
        {"id": "middle", "period": 20, "wcet": 6, "offset": 2},
        {"id": "slow", "period": 40, "wcet": 5, "locks": [held("m", 0, 4)]},
    ]
    first = {
        protocol: simulate(f"rm:protocol={protocol}", tasks, horizon=20)["jobs"][1]
        for protocol in ("none", "inheritance", "ceiling")
    }
    assert {protocol: (job_["task"], job_["response"]) for protocol, job_ in first.items()} == {
        "none": ("fast", 11),  # 6 of them for the middle task
        "inheritance": ("fast", 5),
        "ceiling": ("fast", 5),
    }


# The blocking lemmas

RESOURCES = "rst"


@st.composite
def task_sets(draw: st.DrawFn, nested: bool) -> list[dict[str, Any]]:
    """Jobs with distinct priorities whose critical sections do not overlap, or are properly nested pairs."""
    tasks = []
    for n in range(draw(st.integers(2, 5))):
        locks, at = [], draw(st.integers(0, 2))
        for resource in draw(st.permutations(RESOURCES))[: draw(st.integers(0, 2))]:
            length = draw(st.integers(1, 4))
            locks.append(held(resource, at, length))
            if nested and length > 2:
                inner = draw(st.sampled_from([other for other in RESOURCES if other != resource]))
                locks.append(held(inner, at + 1, 1))
            at += length + draw(st.integers(0, 2))
        burst = at + draw(st.integers(1, 3))
        tasks.append(job(f"P{n}", draw(st.integers(0, 10)), burst, priority=n, locks=locks))
    return tasks


def blocked_ticks(tasks: list[dict[str, Any]], protocol: str) -> dict[str, int]:
    """For each job the ticks between its arrival and its end in which a less urgent one ran."""
    result = simulate(f"priority:protocol={protocol}", tasks)
    assert "deadlock" not in result
    priority = {task["id"]: task["priority"] for task in tasks}
    line = ticks(result)
    return {
        one["id"]: sum(
            who != "." and priority[who] < priority[one["id"]] for who in line[one["arrival"] : one["completion"]]
        )
        for one in result["tasks"]
    }


def lower(tasks: list[dict[str, Any]], one: dict[str, Any]) -> list[dict[str, Any]]:
    return [task for task in tasks if task["priority"] < one["priority"]]


@given(task_sets(nested=False))
@settings(max_examples=80, deadline=None)
def test_inheritance_blocks_at_most_once_per_lower_job_and_per_resource(tasks: list[dict[str, Any]]) -> None:
    """Sha, Rajkumar, Lehoczky: at most min(lower jobs, resources) critical sections."""
    blocked = blocked_ticks(tasks, "inheritance")
    for one in tasks:
        sections = [(task["id"], lock["resource"], lock["for"]) for task in lower(tasks, one) for lock in task["locks"]]
        per_job = sum(max((f for id_, _, f in sections if id_ == task["id"]), default=0) for task in tasks)
        per_resource = sum(max((f for _, r, f in sections if r == resource), default=0) for resource in RESOURCES)
        assert blocked[one["id"]] <= min(per_job, per_resource)


@given(task_sets(nested=True), st.sampled_from(["ceiling", "immediate-ceiling"]))
@settings(max_examples=120, deadline=None)
def test_ceilings_block_for_at_most_one_critical_section_and_never_deadlock(
    tasks: list[dict[str, Any]], protocol: str
) -> None:
    """Only sections of less urgent jobs on resources whose ceiling reaches the blocked job's priority count."""
    blocked = blocked_ticks(tasks, protocol)
    ceiling = {
        r: max((t["priority"] for t in tasks for k in t["locks"] if k["resource"] == r), default=0) for r in "rst"
    }
    for one in tasks:
        sections = [
            lock["for"]
            for task in lower(tasks, one)
            for lock in task["locks"]
            if ceiling[lock["resource"]] >= one["priority"]
        ]
        assert blocked[one["id"]] <= max(sections, default=0)


@given(task_sets(nested=True), st.sampled_from(["none", "inheritance", "ceiling", "immediate-ceiling"]))
@settings(max_examples=60, deadline=None)
def test_no_resource_is_held_twice_and_everybody_ends_unless_deadlocked(
    tasks: list[dict[str, Any]], protocol: str
) -> None:
    result = simulate(f"priority:protocol={protocol}", tasks)
    assume("deadlock" not in result)
    line = ticks(result)
    done: dict[str, int] = {}
    inside: dict[str, str] = {}
    for who in line:
        if who == ".":
            continue
        own = done.get(who, 0)
        for lock in next(task for task in tasks if task["id"] == who)["locks"]:
            if lock["at"] == own:
                assert lock["resource"] not in inside
                inside[lock["resource"]] = who
        done[who] = own + 1
        for lock in next(task for task in tasks if task["id"] == who)["locks"]:
            if lock["at"] + lock["for"] == own + 1:
                assert inside.pop(lock["resource"]) == who
    assert done == {task["id"]: task["burst"] for task in tasks}


def test_policies_offer_every_protocol_there_is() -> None:
    assert PROTOCOL.choices == tuple(PROTOCOLS)
