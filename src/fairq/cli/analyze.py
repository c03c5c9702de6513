"""`fairq analyze`: will a periodic task set meet its deadlines?"""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from fairq.cli.sim_output import AsJson
from fairq.core.errors import ConfigError, UnknownName
from fairq.locks import PROTOCOLS
from fairq.progress import watched
from fairq.sim import analysis
from fairq.sim.cpu.run import CpuRun
from fairq.sim.cpu.scenario import CpuScenario
from fairq.sim.scenario import load
from fairq.sim.source import InvalidScenario

EXAMPLES = """
Examples:

    fairq analyze examples/scenarios/cpu/rm-misses-edf-holds.yaml

    fairq analyze tasks.yaml --by deadline --protocol ceiling --json
"""


def analyze(
    file: Annotated[Path, typer.Argument(metavar="SCENARIO.yaml", help="A CPU scenario with periodic tasks.")],
    by: Annotated[str, typer.Option(help="Fixed priorities by period or by deadline.")] = "period",
    protocol: Annotated[str, typer.Option(help="Of locks: " + ", ".join(PROTOCOLS) + ".")] = "none",
    horizon: Annotated[int | None, typer.Option(help="Where the simulation ends. Default: whole hyperperiods.")] = None,
    as_json: AsJson = False,
) -> None:
    """Utilisation bounds, response times with blocking, EDF's processor demand, and a simulation to confirm them."""
    scenario = load(file, horizon=horizon)
    if not isinstance(scenario, CpuScenario):
        raise ConfigError("layer", scenario.layer, "must be cpu")
    if by not in ("period", "deadline"):
        raise UnknownName("--by", by, ("period", "deadline"))
    if protocol not in PROTOCOLS:
        raise UnknownName("--protocol", protocol, PROTOCOLS)
    if scenario.cpus > 1:
        raise ConfigError("cpus", scenario.cpus, "must be 1: these tests are for one processor")
    found = _analysis(scenario, by, protocol)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        _print(found)


def _analysis(scenario: CpuScenario, by: str, protocol: str) -> dict[str, Any]:
    tasks = analysis.by_urgency(analysis.periodic(scenario), by)
    total = analysis.utilisation(tasks)
    product = analysis.hyperbolic(tasks)
    responses = analysis.response_times(tasks, protocol, by)
    applies = analysis.implicit(tasks) and by == "period"
    blocked = [one.blocking for one in responses]
    rows = zip(range(1, len(tasks) + 1), tasks, analysis.loads(tasks, blocked), strict=True)
    try:
        demand: Any = msgspec.to_builtins(analysis.demand_test(tasks))
        policies = {"fixed-priority": f"rm:by={by},protocol={protocol}", "edf": "edf"}
        simulated: Any = {name: _simulated(scenario, policies[name]) for name in watched(list(policies))}
    except InvalidScenario as error:
        simulated = {"skipped": str(error)}
    return {
        "utilisation": {"exact": str(total), "value": float(total), "feasible": total <= 1},
        "liu_layland": {
            "bound": analysis.liu_layland(len(tasks)),
            "tasks": [{"id": task.id, "load": float(load), "bound": analysis.liu_layland(i)} for i, task, load in rows],
            "holds": analysis.within_liu_layland(tasks, blocked) if applies else None,
        },
        "hyperbolic": {
            "product": {"exact": str(product), "value": float(product)},
            "holds": analysis.within_hyperbolic(tasks, blocked) if applies else None,
        },
        "response_times": {
            "by": by,
            "protocol": protocol,
            "feasible": all(one.response is not None for one in responses),
            "tasks": [msgspec.to_builtins(one) for one in responses],
        },
        "demand": demand,
        "simulated": simulated,
        "left_out": _left_out(scenario),
    }


def _left_out(scenario: CpuScenario) -> list[str]:
    """What the scenario has and the tests do not look at; the simulation does."""
    single = [task.id for task in scenario.tasks if task.period is None]
    found = [f"tasks without a period: {', '.join(single)}"] if single else []
    if scenario.switch_cost:
        found.append(f"switch_cost = {scenario.switch_cost}: add two of them to the wcet of every task")
    if any(task.locks for task in scenario.tasks):
        found.append("locks, in EDF's demand test")
    return found


def _simulated(scenario: CpuScenario, policy: str) -> dict[str, Any]:
    run = CpuRun(scenario, policy)
    worst: dict[str, int] = {}
    late = []
    for story in run.stories:
        if story.turnaround is not None:
            worst[story.task] = max(worst.get(story.task, 0), story.turnaround)
        if story.missed and story.deadline is not None:
            late.append(story.deadline)
    return {"until": run.end, "misses": len(late), "first_miss": min(late, default=None), "worst_response": worst}


def _print(found: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)

    def verdict(holds: bool | None) -> str:
        return (
            "does not apply (needs D = T, priorities by period)"
            if holds is None
            else "holds"
            if holds
            else "does not hold"
        )

    total = found["utilisation"]
    console.print(f"utilisation       {total['exact']} = {total['value']:.4f}")
    console.print(f"Liu and Layland   {found['liu_layland']['bound']:.4f}: {verdict(found['liu_layland']['holds'])}")
    bound = found["hyperbolic"]
    console.print(f"hyperbolic bound  {bound['product']['value']:.4f} of 2: {verdict(bound['holds'])}")
    table = Table("task", "C", "T", "D", "blocking", "worst response", "iterates")
    for one in found["response_times"]["tasks"]:
        worst = "misses" if one["response"] is None else str(one["response"])
        cells = (
            one["wcet"],
            one["period"],
            one["deadline"],
            one["blocking"],
            worst,
            ", ".join(map(str, one["iterates"])),
        )
        table.add_row(escape(one["id"]), *map(str, cells))
    console.print(table)
    demand = found["demand"]
    if demand["first_failure"]:
        at, due = demand["first_failure"]
        console.print(f"EDF demand        fails first at t = {at}: {due} ticks are due by then")
    else:
        console.print(f"EDF demand        holds at all {demand['points']} deadlines up to {demand['limit']}")
    for text in found["left_out"]:
        console.print(f"left out          {escape(text)}")
    if "skipped" in found["simulated"]:
        console.print(f"simulated         not: {escape(found['simulated']['skipped'])}", soft_wrap=True)
        return
    for name, one in found["simulated"].items():
        first = "" if one["first_miss"] is None else f", the first at t = {one['first_miss']}"
        console.print(f"simulated         {name}: {one['misses']} misses until {one['until']}{first}")
