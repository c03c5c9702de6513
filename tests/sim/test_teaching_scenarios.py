"""Every CPU scenario under examples/ tells the story that its first lines promise."""

from pathlib import Path
from typing import Any

import pytest
from tests.sim.timelines import by_task, ticks

from fairq.sim.cpu.run import CpuRun
from fairq.sim.scenario import load

FOLDER = Path(__file__).parents[2] / "examples" / "scenarios" / "cpu"
FILES = sorted(FOLDER.glob("*.yaml"))


def runs(name: str) -> dict[str, dict[str, Any]]:
    """policy as the file writes it -> the run as JSON"""
    scenario = load(FOLDER / f"{name}.yaml")
    return {spec: scenario.run(spec).as_json() for spec in scenario.policies}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_file_says_what_it_shows_and_runs(file: Path) -> None:
    assert file.read_text().startswith("# ")
    scenario = load(file)
    assert len(scenario.policies) > 1
    for spec in scenario.policies:
        run = scenario.run(spec, "events")
        assert isinstance(run, CpuRun)
        assert run.measures.work_conserving
        assert len(run.trace()) > 1


def test_all_are_there() -> None:
    assert len(FILES) == 12


def test_convoy() -> None:
    waits = {spec: run["mean"]["waiting"] for spec, run in runs("convoy").items()}
    assert waits["fcfs"] == waits["sjf"] == 32.4
    assert waits["srtf"] < waits["rr:quantum=2"] < 5


def test_srtf_starvation() -> None:
    found = runs("srtf-starvation")
    long = {spec: by_task(run, "completion")["long"] for spec, run in found.items()}
    assert long["srtf"] == max(by_task(found["srtf"], "completion").values()) > long["rr:quantum=2"] > long["fcfs"]
    assert found["srtf"]["mean"]["turnaround"] == min(run["mean"]["turnaround"] for run in found.values())


def test_quantum_too_small() -> None:
    found = runs("quantum-too-small")
    lost = {
        spec: sum(p["end"] - p["start"] for p in run["timeline"] if p["state"] == "switch")
        for spec, run in found.items()
    }
    assert list(lost.values()) == [79, 19, 3]
    assert [run["mean"]["response"] for run in found.values()] == [3, 7.5, 31.5]


def test_mlfq_gaming() -> None:
    gamer = {spec[-3:]: by_task(run, "completion")["gamer"] for spec, run in runs("mlfq-gaming").items()}
    assert gamer == {"off": 65, "=on": 102}


def test_pathfinder() -> None:
    found = runs("pathfinder")
    assert [run["measures"]["misses"] for run in found.values()] == [1, 0, 0, 0]
    assert [by_task(run, "turnaround")["bc_dist"] for run in found.values()] == [25, 5, 5, 5]


def test_chained_blocking() -> None:
    def sections(run: dict[str, Any]) -> int:
        """Less urgent tasks that run between H's arrival and its end."""
        line = ticks(run)[2 : by_task(run, "completion")["H"]]
        return len({who for who in line if who != "H"})

    assert [sections(run) for run in runs("chained-blocking").values()] == [2, 1, 1]


def test_deadlock() -> None:
    inheritance, ceiling, immediate = runs("deadlock").values()
    assert [hold["task"] for hold in inheritance["deadlock"]["cycle"]] == ["low", "high"]
    for run in (ceiling, immediate):
        assert None not in by_task(run, "completion").values()


def test_rm_misses_edf_holds() -> None:
    assert [run["measures"]["misses"] for run in runs("rm-misses-edf-holds").values()] == [1, 0]
    assert runs("rm-misses-edf-holds")["rm"]["measures"]["max_lateness"] == 1


def test_lottery_against_stride() -> None:
    def worst(run: dict[str, Any]) -> float:
        line = ticks(run)
        return max(abs(line[:n].count("A") - n / 2) for n in range(1, 601))

    found = runs("lottery-against-stride")
    assert worst(found["stride"]) <= 1
    assert worst(found["lottery"]) > 5
    for run in found.values():
        assert abs(ticks(run).count("A") - 300) < 50


def test_waking_sleeper() -> None:
    def after_waking(run: dict[str, Any], length: int) -> int:
        line = ticks(run)
        woken = line.index("sleeper", 100)
        return line[woken : woken + length].count("sleeper")

    found = runs("waking-sleeper")
    credit, none, eevdf, stride = (after_waking(run, 30) for run in found.values())
    assert credit >= 16  # half a latency ahead, and then its part
    assert credit > none
    assert 8 <= eevdf <= 14
    assert 9 <= stride <= 12


def test_eevdf_short_request() -> None:
    def waits(run: dict[str, Any], task: str) -> int:
        line = "".join("x" if who == task else "." for who in ticks(run))
        return max(map(len, line.split("x")))

    found = runs("eevdf-short-request")
    eevdf, cfs = found.values()
    for run in found.values():
        assert abs(ticks(run).count("interactive") - 240) <= 24
    assert waits(eevdf, "interactive") < waits(eevdf, "batch-1")
    assert waits(eevdf, "interactive") < waits(cfs, "interactive")


def test_lying_users() -> None:
    found = runs("lying-users")
    last = {
        spec: max(by_task(run, "completion"), key=by_task(run, "completion").__getitem__) for spec, run in found.items()
    }
    assert last == {"sjf": "honest-2", "srtf": "honest-2", "rr:quantum=2": "liar", "mlfq": "liar"}
