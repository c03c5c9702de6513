"""Schedules on which five independent programs agree (agreed_schedules.json says which), tick by tick."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.sim.timelines import simulate, ticks

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "agreed_schedules.json").read_text())["cases"]
POLICIES = {
    "FCFS": "fcfs",
    "SJF": "sjf",
    "SRTF": "srtf",
    "RR1": "rr:quantum=1",
    "PRIO": "priority",
    "PRIO_AGING": "priority:aging=1",
    "PIP": "priority:protocol=inheritance",
}


def tasks(case: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "id": str(process["pid"]),
            "arrival": process["start"],
            "burst": process["lifespan"],
            "priority": process["prio"],
            "locks": [{"resource": str(r), "at": age, "for": length} for r, age, length in process["acquire"]],
        }
        for process in case["processes"]
    ]


CASES_BY_NAME = {case["name"]: case for case in CASES}
ROWS = [
    pytest.param(case, policy, row["timeline"], id=f"{case['name']}-{policy}")
    for case in CASES
    for policy, row in case["timelines"].items()
    if row["votes"] == row["ran"]  # every program that did not crash says so
]


def test_there_is_something_to_compare_with() -> None:
    assert len(CASES) == 36
    assert len(ROWS) == 238


@pytest.mark.parametrize(("case", "policy", "timeline"), ROWS)
def test_the_schedule_is_the_agreed_one(case: dict[str, Any], policy: str, timeline: str) -> None:
    result = simulate(POLICIES[policy], tasks(case), lock_attempt="tick")
    line = "".join(ticks(result))
    if "deadlock" in result:  # the programs stop there; ours still shows the attempt that fails
        line = line[: len(timeline)]
    assert line == timeline


@pytest.mark.parametrize(
    ("name", "priority", "inheritance"),
    [
        ("resources-basic", "1213333333321.121212.21.1212122", "1213333333321.121212.21.1212122"),
        ("resources-prio", "11.3.111333322222", "11.3.111333322222"),
        ("resources-adv2", "1..33.142.133221", "1..1433.1332221"),
    ],
)
def test_boost_back_and_boost_again(name: str, priority: str, inheritance: str) -> None:
    """The framework's own examples. In the last one process 1 inherits 30, falls back to 0, then inherits 10."""
    case = CASES_BY_NAME[name]
    assert "".join(ticks(simulate("priority", tasks(case), lock_attempt="tick"))) == priority
    inherits = simulate("priority:protocol=inheritance", tasks(case), lock_attempt="tick")
    assert "".join(ticks(inherits)) == inheritance


def test_aging_in_the_frameworks_priority_example() -> None:
    processes = [("1", 10), ("2", 20), ("3", 15), ("4", 5), ("5", 30), ("6", 0)]
    given = [{"id": id_, "arrival": 0, "burst": 4, "priority": priority} for id_, priority in processes]
    assert "".join(ticks(simulate("priority", given))) == "555522223333111144446666"
    assert "".join(ticks(simulate("priority:aging=1", given))) == "555523222134336114146466"


@pytest.mark.parametrize(
    ("policy", "timeline"),
    [
        ("fcfs", "1112222222222333333334445"),
        ("sjf", "1115444333333332222222222"),
        ("srtf", "1511444333333332222222222"),
        ("rr:quantum=1", "1234512341234232323232322"),
    ],
)
def test_five_programs_on_one_mixed_set(policy: str, timeline: str) -> None:
    given = [("1", 0, 3), ("2", 0, 10), ("3", 0, 8), ("4", 0, 3), ("5", 1, 1)]
    result = simulate(policy, [{"id": id_, "arrival": at, "burst": burst} for id_, at, burst in given])
    assert "".join(ticks(result)) == timeline
