"""Traces in the Trace Event Format: each event has the fields that the format documents, and tells what the run did."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairq.cli.sim import app
from fairq.core.errors import ConfigError
from fairq.sim.perfetto import document, write
from fairq.sim.scenario import load

GALLERY = Path(__file__).parents[2] / "examples" / "scenarios"
FILES = [
    file for file in sorted(GALLERY.glob("*/*.yaml")) if file.parent.name not in ("engine", "fleet")
]  # those have no traces

# Of the phases used here: the fields that the format requires, and those that it allows besides.
COMMON = {"ph": str, "name": str, "ts": (int, float), "pid": int, "tid": int}
REQUIRED: dict[str, dict[str, Any]] = {
    "X": {"dur": (int, float), "cat": str, "args": dict},
    "b": {"id": str, "cat": str},
    "e": {"id": str, "cat": str},
    "i": {"s": str, "cat": str},
    "C": {"args": dict, "cat": str},
    "M": {"args": dict},
}
METADATA = {f"{what}_{key}": key for what in ("process", "thread") for key in ("name", "sort_index")}


def export(name: str, *specs: str) -> dict[str, Any]:
    scenario = load(GALLERY / f"{name}.yaml", specs)
    traces = {spec: scenario.run(spec, "events").trace() for spec in scenario.policies}
    found: dict[str, Any] = json.loads(json.dumps(document(traces)))
    return found


def check_format(told: dict[str, Any]) -> None:
    assert isinstance(told["traceEvents"], list)
    assert told["displayTimeUnit"] in ("ms", "ns")
    open_: Counter[tuple[int, str, str]] = Counter()
    spans: dict[tuple[int, int], list[tuple[float, float]]] = {}
    named, used = set(), set()
    for event in told["traceEvents"]:
        required = COMMON | REQUIRED[event["ph"]]
        for field, kind in required.items():
            assert isinstance(event[field], kind), (field, event)
        assert event.keys() <= required.keys() | {"args"}
        assert event["ts"] >= 0
        place = (event["pid"], event["tid"])
        match event["ph"]:
            case "X":
                assert event["dur"] >= 0
                spans.setdefault(place, []).append((event["ts"], event["ts"] + event["dur"]))
                used.add(place)
            case "b":
                open_[event["pid"], event["cat"], event["id"]] += 1
                assert open_[event["pid"], event["cat"], event["id"]] == 1
            case "e":
                open_[event["pid"], event["cat"], event["id"]] -= 1
                assert open_[event["pid"], event["cat"], event["id"]] == 0
            case "i":
                assert event["s"] in ("g", "p", "t")
            case "C":
                assert event["args"]
                assert all(isinstance(value, (int, float)) for value in event["args"].values())
            case "M":
                assert METADATA[event["name"]] in event["args"]
                if event["name"] == "thread_name":
                    named.add(place)
    assert used <= named
    for own in spans.values():  # slices of one thread nest, or follow each other
        own.sort(key=lambda span: (span[0], -span[1]))
        stack: list[float] = []
        for start, end in own:
            while stack and stack[-1] <= start:
                stack.pop()
            assert not stack or end <= stack[-1]
            stack.append(end)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_every_trace_keeps_to_the_format(file: Path) -> None:
    check_format(export(f"{file.parent.name}/{file.stem}"))


def slices(told: dict[str, Any], pid: int = 1) -> list[tuple[str, float, float]]:
    found = [event for event in told["traceEvents"] if event["ph"] == "X" and event["pid"] == pid]
    return [(event["name"], event["ts"] / 1000, event["dur"] / 1000) for event in found]


def test_service_is_where_the_articles_schedule_has_it() -> None:
    found = slices(export("cpu/lab", "fcfs"))
    ran = {name: sum(dur for one, _, dur in found if one == name) for name in "ABCD"}
    assert ran == {"A": 7, "B": 4, "C": 1, "D": 3}
    assert [min(ts for one, ts, _ in found if one == name) for name in "ABCD"] == [0, 7, 11, 12]


def test_waiting_adds_up_to_the_measured_wait() -> None:
    told = export("cpu/lab", "rr:quantum=2")
    begun: dict[str, float] = {}
    waited = 0.0
    for event in told["traceEvents"]:
        if event["ph"] == "b":
            begun[event["id"]] = event["ts"]
        elif event["ph"] == "e":
            waited += event["ts"] - begun.pop(event["id"])
    assert waited / 1000 == 4 * 5.75  # the article's mean wait, of four tasks


def test_a_fluid_serves_all_flows_at_once() -> None:
    found = slices(export("link/eights-and-twos", "gps"))
    assert ("A#1", 0, 16) in found
    assert ("B#1", 0, 4) in found
    assert ("B#2", 4, 4) in found


def test_the_reason_and_its_numbers_are_in_the_slice() -> None:
    told = export("router/lab", "sfq")
    args = [event["args"] for event in told["traceEvents"] if event["ph"] == "X"]
    assert "".join(one["tenant"] for one in args) == "ABBCBBCABBCBCA"
    assert {one["why"] for one in args} == {"least-meter"}
    counters = [
        event["args"] for event in told["traceEvents"] if event["ph"] == "C" and event["name"] == "virtual_time"
    ]
    clock = [one["virtual_time"] for one in counters]
    assert clock == sorted(clock)
    assert clock[-1] == 24


def test_each_policy_is_a_process_and_what_runs_at_the_end_is_open() -> None:
    told = export("cluster/drf-paper")
    names = [e["args"]["name"] for e in told["traceEvents"] if e["name"] == "process_name"]
    assert names == ["drf", "drf:misfit=skip"]
    assert Counter(name.partition("#")[0] for name, _, _ in slices(told)) == {"A": 3, "B": 2}


def test_rational_times_are_fractions_of_a_microsecond(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app,
        [
            "link",
            "--rate",
            "3",
            "--packet",
            "a:0:1:count=3",
            "--policy",
            "wfq",
            "--perfetto",
            str(tmp_path / "it.json"),
        ],
    )
    assert result.exit_code == 0
    told = json.loads((tmp_path / "it.json").read_text())
    check_format(told)
    assert [start for _, start, _ in slices(told)] == pytest.approx([0, 1 / 3, 2 / 3])


def test_plot_and_perfetto_are_options(tmp_path: Path) -> None:
    for name, policy in (("cpu/lab", "srtf"), ("link/fluid-and-packets", "wfq"), ("router/lab", "sfq")):
        layer = name.partition("/")[0]
        picture, trace = tmp_path / f"{layer}.png", tmp_path / f"{layer}.json"
        arguments = [layer, str(GALLERY / f"{name}.yaml"), "--policy", policy]
        arguments += ["--plot", str(picture), "--perfetto", str(trace)]
        assert CliRunner().invoke(app, arguments).exit_code == 0
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert json.loads(trace.read_text())["traceEvents"]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    scenario = load(GALLERY / "router" / "lab.yaml")
    with pytest.raises(ConfigError, match="nowhere"):
        write({"sfq": scenario.run("sfq", "events").trace()}, tmp_path / "nowhere" / "it.json")
