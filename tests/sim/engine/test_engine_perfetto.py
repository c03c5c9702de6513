"""An engine's run in the Trace Event Format: the spans are the requests' own times."""

import json
from pathlib import Path

from tests.sim.engines import engine
from tests.sim.test_perfetto import check_format
from typer.testing import CliRunner

from fairq.cli.sim import app
from fairq.sim.engine.perfetto import document

REQUESTS = [
    {"client": "A", "prompt": 64, "output": 3, "count": 2},
    {"client": "B", "prompt": 1, "output": 9, "cancel": 4},
]


def test_every_stage_is_a_span_of_its_own() -> None:
    """Iterations of 1 s and 64 tokens: the prompts of A take one each, B leaves 4 s after it came."""
    told = document({"vtc": engine(REQUESTS, "vtc", step_tokens=64).calls})
    check_format(json.loads(json.dumps(told)))
    begun = {event["id"]: event for event in told["traceEvents"] if event["ph"] == "b"}
    spans = [
        (begun[event["id"]]["args"]["request"], event["name"], begun[event["id"]]["ts"] / 1e6, event["ts"] / 1e6)
        for event in told["traceEvents"]
        if event["ph"] == "e"
    ]
    assert [one for one in spans if one[0] == "0"] == [
        ("0", "waiting", 0, 0),
        ("0", "prefill", 0, 1),
        ("0", "decode", 1, 3),
    ]
    left = [one for one in spans if one[0] == "2"]
    assert left[-1][3] == 4
    last = {event["name"]: event["args"] for event in told["traceEvents"] if event["ph"] == "C"}
    assert last == {"waiting": {"A": 0, "B": 0}, "running": {"A": 0, "B": 0}}


def test_the_command_writes_one_process_for_each_policy(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    line = ["engine", "--request", "A:0:10:5", "--policy", "vtc", "--policy", "fcfs", "--perfetto", str(file)]
    assert CliRunner().invoke(app, line).exit_code == 0
    told = json.loads(file.read_text())["traceEvents"]
    assert [one["args"]["name"] for one in told if one["name"] == "process_name"] == ["vtc", "fcfs"]


def test_a_fleet_writes_its_requests_too(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    line = ["fleet", "--workload", "poisson:rate=2,clients=2,duration=5", "--engines", "2", "--policy", "vtc"]
    assert CliRunner().invoke(app, [*line, "--perfetto", str(file)]).exit_code == 0
    told = json.loads(file.read_text())
    check_format(told)
    assert {"waiting", "prefill", "decode"} <= {event["name"] for event in told["traceEvents"] if event["ph"] == "b"}
