"""`fairq sim cpu`: the public JSON, files and inline options, and one line for whatever is wrong."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import Said, fairq

LAB = ["--task", "A:0:7", "--task", "B:1:4", "--task", "C:2:1", "--task", "D:4:3"]


def invoke(*arguments: str) -> Said:
    return fairq("sim", "cpu", *arguments)


def result(*arguments: str) -> Any:
    done = invoke(*arguments, "--json")
    assert done.status == 0, done.err
    return json.loads(done.out)


def complaint(*arguments: str) -> str:
    """The only line on standard error of a command that fails with status 2 and prints nothing else."""
    done = invoke(*arguments)
    assert done.status == 2
    assert done.out == ""
    (line,) = done.err.splitlines()
    return line


def test_the_documents_example() -> None:
    document = result("--task", "A:0:7", "--task", "B:1:4", "--policy", "rr:quantum=2")
    assert document["layer"] == "cpu"
    (run,) = document["runs"]
    assert run["policy"] == "rr"
    assert run["params"] == {"quantum": 2, "expired_first": False, "overtakes": "quantum"}
    assert run["timeline"][0] == {"task": "A", "start": 0, "end": 2, "state": "run"}
    assert run["tasks"][1] == {
        "id": "B",
        "arrival": 1,
        "burst": 4,
        "completion": 8,
        "turnaround": 7,
        "waiting": 3,
        "response": 1,
        "preemptions": 1,
    }
    assert run["mean"] == {"turnaround": 9, "waiting": 3.5, "response": 0.5}


def test_idle_time_is_a_slice() -> None:
    timeline = result("--task", "A:3:2")["runs"][0]["timeline"]
    assert timeline[0] == {"task": None, "start": 0, "end": 3, "state": "idle"}


def test_policies_run_side_by_side_and_replace_the_files(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text("layer: cpu\npolicy: fcfs\ntasks:\n  - {id: A, arrival: 0, burst: 7}\n  - {id: 1, burst: 2}\n")
    assert [run["policy"] for run in result(str(file))["runs"]] == ["fcfs"]
    both = result(str(file), "--policy", "sjf", "--policy", "rr:quantum=3")["runs"]
    assert [run["policy"] for run in both] == ["sjf", "rr"]
    assert both[0]["tasks"][1]["id"] == "1"  # names stay text


def test_attributes_locks_and_sleep_inline() -> None:
    run = result(
        *("--task", "L:0:6:lock=m@0/4", "--task", "H:1:3:priority=9,lock=m@1/1", "--task", "M:2:20:priority=5"),
        *("--policy", "priority:protocol=inheritance"),
    )["runs"][0]
    assert {task["id"]: task["completion"] for task in run["tasks"]}["H"] == 7
    sleeping = result("--task", "A:0:4:io=2/3")["runs"][0]
    assert [(s["task"], s["start"], s["end"]) for s in sleeping["timeline"]] == [("A", 0, 2), (None, 2, 5), ("A", 5, 7)]


def test_periodic_tasks_have_jobs() -> None:
    run = result("--periodic", "T1:5:2", "--periodic", "T2:7:4", "--policy", "rm")["runs"][0]
    wanted = {"task": "T2", "release": 0, "completion": 8, "response": 8, "missed": True}
    assert wanted.items() <= run["jobs"][1].items()
    assert len(run["jobs"]) == 12


def test_a_file_of_periodic_and_locked_tasks(tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(
        """\
layer: cpu
horizon: 20
on_miss: abort
lock_attempt: tick
tasks:
  - {id: T1, period: 5, wcet: 2, deadline: 5, offset: 0}
  - {id: "1", arrival: 0, burst: 10, priority: 0, locks: [{resource: "1", at: 2, for: 2}]}
"""
    )
    run = result(str(file), "--policy", "edf")["runs"][0]
    assert [job["completion"] for job in run["jobs"]] == [2, 7, 12, 17]
    assert run["tasks"][0]["completion"] == 18


def test_several_processors_say_which_one() -> None:
    timeline = result(*LAB, "--cpus", "2")["runs"][0]["timeline"]
    assert {piece["cpu"] for piece in timeline} == {0, 1}


def test_csv_has_a_row_for_every_task_and_policy() -> None:
    done = invoke(*LAB, "--policy", "fcfs", "--policy", "sjf", "--csv", "-")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [(row["policy"], row["id"], row["completion"]) for row in rows][4:] == [
        *(("sjf", "A", "7"), ("sjf", "B", "15"), ("sjf", "C", "8"), ("sjf", "D", "11"))
    ]


def test_the_tables_tell_the_means() -> None:
    done = invoke(*LAB, "--policy", "fcfs", "--policy", "srtf")
    assert done.status == 0
    assert "5.75" in done.out
    assert "A 0-7 | B 7-11 | C 11-12 | D 12-15" in done.out


def test_a_deadlock_is_reported_with_its_cycle() -> None:
    tasks = ("--task", "A:0:4:lock=r@0/4,lock=s@2/1", "--task", "B:1:4:priority=3,lock=s@0/3,lock=r@1/1")
    done = invoke(
        *tasks, "--policy", "priority:protocol=inheritance", "--policy", "priority:protocol=ceiling", "--json"
    )
    assert done.status == 2
    (line,) = done.err.splitlines()
    assert "deadlock at t = 3: A waits for s, which B keeps from it, B waits for r, which A keeps from it" in line
    runs = json.loads(done.out)["runs"]
    assert [run.get("deadlock", {}).get("time") for run in runs] == [3, None]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--task", "A:0:-1"], ["--task A:0:-1", "burst = '-1'", "at least 1"]),
        (["--task", "A:0:0"], ["burst = '0'", "at least 1"]),
        (["--task", "A:-2:3"], ["arrival = '-2'", "at least 0"]),
        (["--task", "A:0:nan"], ["burst = 'nan'", "whole number"]),
        (["--task", "A:0:1.5"], ["burst = '1.5'", "whole number"]),
        (["--task", "A:0:inf"], ["burst = 'inf'", "whole number"]),
        (["--task", "A:0:99999999999999999999"], ["burst", "at most 9007199254740991"]),
        (["--task", "A:0"], ["burst", "missing"]),
        (["--task", ":0:3"], ["id", "must not be empty"]),
        (["--task", "A:0:3:4"], ["too many parts", "ID:ARRIVAL:BURST"]),
        (["--task", "A:0:3:prioriti=1"], ["prioriti", "unknown key; did you mean priority"]),
        (["--task", "A:0:3:priority"], ["too many parts"]),
        (["--task", "A:0:3:priority=1,priority=2"], ["priority", "given twice"]),
        (["--task", "A:0:3:weight=0"], ["weight = '0'", "greater than 0"]),
        (["--task", "A:0:3:nice=20"], ["nice = '20'", "at most 19"]),
        (["--task", "A:0:3:deadline=2"], ["deadline = '2'", "impossible"]),
        (["--task", "A:0:3:lock=r"], ["lock=RESOURCE@AT/FOR"]),
        (["--task", "A:0:3:lock=r@2/4"], ["locks[0]", "held until 6 of its 3"]),
        (["--task", "A:0:3:bursts=1/2/3"], ["bursts", "cannot go with burst"]),
        (["--task", "A:0:3", "--task", "A:1:3"], ["tasks[1].id = 'A'", "given twice"]),
        (["--task", "A:0:3", "--policy", "srt"], ["--policy srt: unknown", "srtf"]),
        (["--task", "A:0:3", "--policy", "rr:quantum=0"], ["rr.quantum", "at least 1"]),
        (["--task", "A:0:3", "--policy", "rr:quanta=2"], ["quanta", "quantum"]),
        (["--task", "A:0:3", "--policy", "gps"], ["gps", "needs", "layer cpu"]),
        (["--task", "A:0:3", "--cpus", "0"], ["--cpus", "at least 1"]),
        (["--task", "A:0:3", "--on-miss", "explode"], ["--on-miss", "'continue' or 'abort'"]),
        (["--periodic", "T:5:6"], ["impossible"]),
        (["--periodic", "T1:999983:1", "--periodic", "T2:999979:1"], ["hyperperiod", "try 49999"]),
        ([], ["tasks", "--task ID:ARRIVAL:BURST"]),
        (["no-such-file.yaml"], ["no-such-file.yaml", "No such file"]),
    ],
)
def test_bad_options_get_one_line(arguments: list[str], parts: list[str]) -> None:
    line = complaint(*arguments)
    assert line.startswith("fairq sim cpu: ")
    for part in parts:
        assert part in line


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("layer: cpu\ntasks:\n  - id: A\n    burst: x\n", ["bad.yaml:4:", "tasks[0].burst = 'x'", "whole number"]),
        ("layer: cpu\ntasks:\n  - id: A\n    burst: 3\n  - {id: A, burst: 3}\n", ["bad.yaml:5:", "given twice"]),
        ("layer: cpu\ntasks:\n  - {id: A, brust: 3, burst: 3}\n", ["bad.yaml:3:", "brust", "did you mean burst"]),
        ("layer: cpu\ntasks: []\n", ["bad.yaml:2:", "tasks", "at least 1"]),
        ("layer: cpu\ntask: 1\ntask: 2\n", ["bad.yaml:3:", "given twice"]),
        ("layer: gpu\ntasks: []\n", ["bad.yaml:1:", "'gpu'", "must be cpu"]),
        ("layer: cpu\ntasks: [\n", ["bad.yaml:3:", "not YAML"]),
        ("- 1\n", ["bad.yaml", "keys and values"]),
        ("layer: cpu\npolicy: nope\ntasks: [{id: A, burst: 1}]\n", ["policy = 'nope'"]),
        (
            "layer: cpu\nchanges: [{at: 1, task: B, weight: 2}]\ntasks: [{id: A, burst: 1}]\n",
            ["bad.yaml:2:", "no such"],
        ),
    ],
)
def test_bad_files_get_one_line_with_its_number(tmp_path: Path, text: str, parts: list[str]) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    line = complaint(str(file))
    for part in parts:
        assert part in line


def test_every_broken_rule_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("layer: cpu\ncpus: 0\ntasks:\n  - {id: A, burst: 0}\n  - {id: B, burst: two}\n")
    (line,) = invoke(str(file)).err.splitlines()
    assert re.findall(r"bad.yaml:\d", line) == ["bad.yaml:4", "bad.yaml:5", "bad.yaml:2"]
