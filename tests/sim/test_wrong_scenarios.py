"""Every value of every layer's scenario, replaced by one that is wrong: a line that names place and key, or a run."""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import fairq
from fairq.sim.scenario import load
from fairq.sim.source import InvalidScenario

WHOLE: dict[str, dict[str, Any]] = {
    "cpu": {
        "layer": "cpu",
        "policies": ["rr:quantum=2"],
        "seed": 1,
        "cpus": 1,
        "switch_cost": 1,
        "max_steps": 1000,
        "lock_attempt": "free",
        "on_miss": "continue",
        "horizon": 50,
        "tasks": [
            {"id": "A", "arrival": 0, "burst": 7, "estimate": 5, "priority": 3, "deadline": 40, "weight": 2, "slice": 2}
            | {"io": {"every": 2, "for": 3}, "locks": [{"resource": "r", "at": 1, "for": 2}]},
            {"id": "B", "bursts": [2, 3, 4], "nice": 3},
            {"id": "T", "period": 9, "wcet": 2, "offset": 1, "deadline": 8, "max_gap": 11},
            {"id": "S", "wcet": 1, "arrivals": [0, 7, 20]},
        ],
        "changes": [{"at": 5, "task": "A", "weight": 3}],
    },
    "link": {
        "layer": "link",
        "policies": ["wfq"],
        "rate": "3/2",
        "buffer": 9,
        "flows": [{"id": "A", "weight": 2, "buffer": 3}],
        "packets": [{"flow": "A", "arrival": 0, "size": 8, "estimate": 4, "count": 3, "every": 2}],
        "stalls": [{"at": 5, "for": 3}],
    },
    "random stalls": {
        "layer": "link",
        "policies": ["sfq"],
        "packets": [{"flow": "A", "arrival": 0, "size": 8}],
        "random_stalls": {"every": 4, "for": 2},
    },
    "router": {
        "layer": "router",
        "policies": ["sfq:credit=2"],
        "tenants": [
            {"id": "A", "weight": "1/3", "cost": 8, "count": 3, "join": 1},
            {"id": "B", "batches": [{"count": 2, "cost": 4, "join": 0}]},
        ],
    },
    "cluster": {
        "layer": "cluster",
        "policies": ["drf"],
        "horizon": 20,
        "capacity": {"cpu": 9, "mem": 18},
        "users": [
            {"id": "A", "demand": {"cpu": 1, "mem": 4}, "weight": 2, "tasks": 3, "arrival": 1, "duration": 4},
            {"id": "B", "demand": {"cpu": 3}, "batches": [{"tasks": 2, "arrival": 0, "duration": 3}]},
        ],
    },
}
WRONG = ["-1", ".nan", "9" * 40, "[]", "{a: 1}", '"A\\u001b"']
Place = tuple[int | str, ...]


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*at, key)
        yield from places(child, (*at, key))


class Written(str):
    """As it is to stand in the file."""


def yaml(value: Any) -> str:
    if isinstance(value, Written):
        return value
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {yaml(child)}" for key, child in value.items()) + "}"
    return "[" + ", ".join(map(yaml, value)) + "]" if isinstance(value, list) else json.dumps(value)


def changed(scenario: dict[str, Any], place: Place, written: str | None, key: int | str | None = None) -> str:
    """The scenario's text, a line for each key, with something else at a place (under another key, or gone)."""
    scenario = deepcopy(scenario)
    parent: Any = scenario
    for step in place[:-1]:
        parent = parent[step]
    if written is None or key is not None:
        del parent[place[-1]]
    if written is not None:
        parent[place[-1] if key is None else key] = Written(written)
    return "".join(f"{name}: {yaml(value)}\n" for name, value in scenario.items())


def complaint(file: Path, text: str) -> list[str] | None:
    """The lines of the error; None where it is no error after all. Nothing but a line is ever raised."""
    file.write_text(text)
    try:
        load(file)
    except InvalidScenario as error:
        return error.problems
    return None


@pytest.mark.parametrize("name", WHOLE)
def test_the_whole_scenario_runs(name: str, tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("".join(f"{key}: {yaml(value)}\n" for key, value in WHOLE[name].items()))
    assert len(fairq.run(file).as_json()["runs"]) == 1


@pytest.mark.parametrize("name", WHOLE)
def test_each_wrong_value_is_named_with_its_line(name: str, tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    keys = list(WHOLE[name])
    refused = 0
    for place in places(WHOLE[name]):
        own = [step for step in place if isinstance(step, str)][-1]
        for written in WRONG:
            lines = complaint(file, changed(WHOLE[name], place, written))
            if lines is None:
                continue
            refused += 1
            assert all(line.startswith("x.yaml:") and "\n" not in line for line in lines), lines
            if own not in ("id", "flows", "layer", "capacity"):  # what refers to them is what is wrong then
                assert lines[0].startswith(f"x.yaml:{keys.index(str(place[0])) + 1}: "), (place, written, lines)
                assert any(own.removesuffix("ies") in line for line in lines), (place, written, lines)
    assert refused > 20


@pytest.mark.parametrize("name", WHOLE)
def test_unknown_and_missing_keys_are_named(name: str, tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    for place in places(WHOLE[name]):
        if not isinstance(place[-1], str) or place[-1] in ("cpu", "mem"):
            continue
        misspelt = place[-1] + "s"
        lines = complaint(file, changed(WHOLE[name], place, "1", key=misspelt))
        assert lines
        assert any(misspelt in line or f"{place[-1]}: missing" in line for line in lines), (place, lines)
        gone = complaint(file, changed(WHOLE[name], place, None))
        assert gone is None or all(line.startswith("x.yaml:") for line in gone)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("layer: cpu\npolicies: []\ntasks: [{id: A, burst: 1}]\n", "x.yaml:2: policies: needs at least 1"),
        (
            "layer: cpu\ntasks: [{id: A, burst: 1}]\npolicy: sfj\n",
            "x.yaml:3: policy = 'sfj': unknown; did you mean sjf",
        ),
        ("layer: cpu\ntasks: [{id: A, burst: 1}]\npolicies: [fcfs, 'rr:quantum=0']\n", "x.yaml:3: rr.quantum = '0'"),
        ("layer: link\npackets: [{flow: A, arrival: 0, size: 1}]\nrate: ٣\n", "x.yaml:3: rate = '٣': must be a number"),
        (
            "layer: cpu\ntasks: [{id: A, burst: 2, io: {every: 1, foor: 1}}]\n",
            "tasks[0].io.foor = '1': unknown key; did you mean for?",
        ),
    ],
)
def test_some_lines_word_for_word(text: str, line: str, tmp_path: Path) -> None:
    lines = complaint(tmp_path / "x.yaml", text)
    assert lines
    assert any(line in one for one in lines), lines
