"""Short ways to run a CPU scenario and to read its timeline."""

from collections.abc import Iterable
from typing import Any

from fairq.sim.cpu.run import CpuRun
from fairq.sim.scenario import build


def job(id_: str, arrival: int, burst: int, **more: Any) -> dict[str, Any]:
    return {"id": id_, "arrival": arrival, "burst": burst, **more}


def periodic(*sets: tuple[int, int]) -> list[dict[str, Any]]:
    """(wcet, period) each, as T1, T2, ..."""
    return [{"id": f"T{n}", "wcet": wcet, "period": period} for n, (wcet, period) in enumerate(sets, 1)]


def run(policy: str, tasks: Iterable[dict[str, Any]], record: str | None = None, **options: Any) -> CpuRun:
    scenario = build({"layer": "cpu", "tasks": list(tasks), **options})
    result = scenario.run(policy, record)
    assert isinstance(result, CpuRun)
    return result


def simulate(policy: str, tasks: Iterable[dict[str, Any]], **options: Any) -> dict[str, Any]:
    """The run as `--json` prints it."""
    return run(policy, tasks, **options).as_json()


def ticks(result: dict[str, Any], cpu: int = 0) -> list[str]:
    """Whose tick it was, tick by tick; "." for nobody's."""
    line: list[str] = []
    for piece in result["timeline"]:
        if piece.get("cpu", 0) == cpu:
            assert piece["start"] == len(line), "the timeline has a gap"
            line += [piece["task"] or "."] * (piece["end"] - piece["start"])
    return line


def slices(result: dict[str, Any]) -> str:
    """A0-7 B7-11 ..."""
    return " ".join(f"{piece['task'] or piece['state']}{piece['start']}-{piece['end']}" for piece in result["timeline"])


def by_task(result: dict[str, Any], key: str) -> dict[str, Any]:
    return {task["id"]: task[key] for task in result["tasks"]}


def responses(result: dict[str, Any], task: str) -> list[int]:
    return [one["response"] for one in result["jobs"] if one["task"] == task]


def misses(result: dict[str, Any]) -> int:
    return sum(one["missed"] for one in result["jobs"])
