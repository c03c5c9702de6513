"""`fairq sim --sweep`, `--parquet`, `--measures` and the progress of long runs."""

import io
import re
import sys
from pathlib import Path
from time import sleep
from typing import Any

import polars
import pytest
from tests.cli.program import fairq

from fairq import progress
from fairq.measure import cluster, cpu, served
from fairq.progress import watched

LAB = ("sim", "cpu", "--task", "A:0:7", "--task", "B:1:4", "--task", "C:2:1", "--task", "D:4:3")
ROUTER = ("sim", "router", "--tenant", "A:cost=8,count=9", "--tenant", "B:cost=2,count=9", "--policy", "lottery")


def runs(*arguments: str) -> list[dict[str, Any]]:
    said = fairq(*arguments, "--json")
    assert said.status == 0, said.err
    found: list[dict[str, Any]] = said.json["runs"]
    return found


def test_a_parameter_is_swept_for_the_policies_that_have_it() -> None:
    found = runs(*LAB, "--policy", "fcfs", "--policy", "rr:expired-first=on", "--sweep", "quantum=1,2,8")
    assert [(run["policy"], run["params"].get("quantum")) for run in found] == [
        *(("fcfs", None), ("rr", 1), ("rr", 2), ("rr", 8))
    ]
    assert all(run["params"]["expired_first"] for run in found[1:])
    assert found[3]["tasks"] == [task | {"preemptions": 0} for task in found[0]["tasks"]]  # no task needs 8


def test_a_key_of_the_scenario_is_swept_for_all() -> None:
    found = runs(*LAB, "--policy", "rr", "--policy", "fcfs", "--sweep", "switch-cost=0,1")
    assert [(run["policy"], run["sweep"]) for run in found] == [
        (policy, {"switch_cost": cost}) for cost in "01" for policy in ("rr", "fcfs")
    ]
    ends = [max(task["completion"] for task in run["tasks"]) for run in found]
    assert ends == [15, 15, 15 + found[2]["switches"], 15 + 3]


def test_sweeps_combine() -> None:
    found = runs(*LAB, "--policy", "rr", "--sweep", "quantum=1,2", "--sweep", "cpus=1,2", "--sweep", "switch_cost=0,1")
    assert len({(run["params"]["quantum"], *run["sweep"].values()) for run in found}) == 8


def test_seeds_are_swept_too() -> None:
    orders = [run["order"] for run in runs(*ROUTER, "--sweep", "seed=1,2,3,1")]
    assert orders[0] == orders[3]
    assert orders[0] != orders[1]


def test_a_file_is_swept_like_options(tmp_path: Path) -> None:
    file = tmp_path / "link.yaml"
    file.write_text(
        "layer: link\npolicies: [sfq, drr]\nflows: [{id: A, weight: 1/3}]\npackets: [{flow: A, arrival: 0, size: 9}]\n"
    )
    found = runs("sim", "link", str(file), "--sweep", "rate=1,3/2")
    assert [run["departures"][0]["finish"] for run in found] == ["9", "9", "6", "6"]


@pytest.mark.parametrize(
    ("sweep", "complaint"),
    [
        ("quantum", "sweep = 'quantum': must be KEY=VALUE,VALUE"),
        ("quantum=1,,2", "sweep = 'quantum=1,,2': must be KEY=VALUE,VALUE"),
        ("quantom=1", "sweep = 'quantom': unknown; did you mean quantum?"),
        ("tasks=1", "sweep = 'tasks': unknown"),
        ("quantum=1,0", "rr.quantum = '0': must be at least 1"),
        ("cpus=1,none", "sweep cpus=none: cpus = 'none': must be a whole number"),
        ("seed=" + ",".join(map(str, range(10_001))), "more than 10000 runs"),
    ],
)
def test_a_sweep_that_cannot_be_is_one_line(sweep: str, complaint: str) -> None:
    said = fairq(*LAB, "--policy", "rr", "--sweep", sweep)
    assert (said.status, said.out) == (2, "")
    (line,) = said.err.splitlines()
    assert complaint in line


def test_the_rows_say_what_was_set(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    assert fairq(*LAB, "--policy", "rr", "--sweep", "switch_cost=0,1", "--parquet", str(file)).status == 0
    frame = polars.read_parquet(file)
    assert frame["switch_cost"].to_list() == ["0"] * 4 + ["1"] * 4
    assert frame.filter(polars.col("switch_cost") == "0")["completion"].max() == 15
    shown = fairq(*LAB, "--policy", "rr", "--sweep", "switch_cost=0,1").out
    assert "rr switch_cost=1" in shown


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    for option in ("--csv", "--parquet"):
        said = fairq(*LAB, option, str(tmp_path / "nowhere" / "rows"))
        assert said.status == 2
        assert said.err.splitlines() == [
            f"fairq sim cpu: {option} = '{tmp_path}/nowhere/rows': cannot be written: No such file or directory"
        ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("patience", [0.0, 60.0])
def test_progress_is_told_to_a_terminal_and_only_when_it_takes_long(
    patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    shown = []
    for item in watched(["first", "second"], name=str.upper):
        deadline = 400
        while patience == 0 and item.upper() not in screen.getvalue() and deadline:
            sleep(0.01)
            deadline -= 1
        shown.append(item)
    assert shown == ["first", "second"]
    assert ("FIRST" in screen.getvalue()) is (patience == 0)


def test_progress_is_silent_elsewhere(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0)
    assert list(watched([1, 2])) == [1, 2]
    assert capsys.readouterr().err == ""


def test_all_measures_stand_side_by_side() -> None:
    said = fairq(*LAB, "--policy", "fcfs", "--policy", "rr:quantum=2", "--measures")
    assert said.status == 0
    rows = {cells[0]: cells[1:] for line in said.out.splitlines() if (cells := re.split(r"\s*│\s*", line)[1:-1])}
    assert rows["waiting mean"] == ["5.75", "5.75"]
    assert rows["response max"] == ["9", "3"]
    assert rows["work_conserving"] == ["yes", "yes"]


def test_every_measure_of_every_layer_is_explained() -> None:
    page = (Path(__file__).parents[2] / "docs" / "measures.md").read_text()
    for module in (cpu, served, cluster):
        for name in module.Measures.__struct_fields__:
            if name not in ("jobs", "completed", "started"):
                assert name in page, name
