"""`fairq sim cpu`."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from fairq.cli.sim_command import command
from fairq.cli.sim_inline import assemble
from fairq.cli.sim_output import File, Policies, Seed
from fairq.sim.cpu.run import CpuRun
from fairq.sim.cpu.scenario import CpuScenario
from fairq.sim.scenario import inline
from fairq.sim.source import InvalidScenario

EXAMPLES = """
Examples:

    fairq sim cpu --task A:0:7 --task B:1:4 --task C:2:1 --task D:4:3 --policy fcfs --policy rr:quantum=2

    fairq sim cpu --task A:0:7:priority=1 --task B:1:4:priority=2 --policy priority --json

    fairq sim cpu --periodic T1:5:2 --periodic T2:7:4 --policy rm --policy edf

    fairq sim cpu --task L:0:6:lock=m@0/4 --task H:1:3:priority=9,lock=m@1/1 --policy priority:protocol=inheritance
"""

SINGLE = ("id", "arrival", "burst", "completion", "turnaround", "waiting", "response")
JOB = ("task", "release", "deadline", "completion", "response", "missed")
ONE = ("id", "arrival", "burst")
RECURRING = ("id", "period", "wcet")
TASK = typer.Option("--task", metavar="ID:ARRIVAL:BURST[:key=value,...]", help="A task; repeat. Keys: those of a file.")
PERIODIC = typer.Option("--periodic", metavar="ID:PERIOD:WCET[:key=value,...]", help="A task that recurs; repeat.")


def _task(option: str, text: str, names: tuple[str, ...]) -> dict[str, Any]:
    fields = inline(option, text, names, repeated=frozenset({"lock"}))

    def split(value: str, separators: str) -> list[str]:
        parts = [value]
        for separator in separators:
            parts = [*parts[:-1], *parts[-1].split(separator, 1)]
        if len(parts) != len(separators) + 1:
            raise InvalidScenario([f"{option} {text}: {value!r}: the forms are lock=RESOURCE@AT/FOR and io=EVERY/FOR"])
        return parts

    if "lock" in fields:
        locks = [split(value, "@/") for value in fields.pop("lock")]
        fields["locks"] = [{"resource": resource, "at": at, "for": for_} for resource, at, for_ in locks]
    if "io" in fields:
        every, for_ = split(fields["io"], "/")
        fields["io"] = {"every": every, "for": for_}
    for key in ("bursts", "arrivals"):
        if key in fields:
            fields[key] = fields[key].split("/")
    return fields


def _rows(run: CpuRun) -> list[dict[str, Any]]:
    told = run.as_json()
    return [*told["tasks"], *told.get("jobs", [])]


def _deadlock(run: CpuRun) -> str:
    assert run.deadlock
    time, circle = run.deadlock
    waits = ", ".join(f"{hold.job} waits for {hold.resource}, which {hold.by} keeps from it" for hold in circle)
    return f"deadlock at t = {time}: {waits}"


def _print_tables(runs: Sequence[CpuRun]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Column, Table

    console = Console(highlight=False)
    for run in runs:
        told = run.as_json()
        console.print(f"\n[bold]{escape(run.label)}[/bold]  {escape(_line(run))}", soft_wrap=True)
        rows = told["tasks"] or told["jobs"]
        keys = SINGLE if told["tasks"] else JOB
        table = Table(*keys)
        for row in rows[:40]:
            table.add_row(*("-" if row[key] is None else escape(str(row[key])) for key in keys))
        console.print(table)
        if len(rows) > 40:
            console.print(f"and {len(rows) - 40} more; --csv or --json has all")
    summary = Table(
        Column("policy", overflow="fold"),
        "turnaround",
        "waiting",
        "response",
        "switches",
        "missed",
        title="means and counts",
    )
    for run in runs:
        told = run.as_json()
        means = ["-" if value is None else f"{value:.4g}" for value in told["mean"].values()]
        missed = sum(bool(row.get("missed")) for row in [*told["tasks"], *told.get("jobs", [])])
        summary.add_row(escape(run.label), *means, str(run.switches), str(missed))
    console.print(summary)


def _line(run: CpuRun) -> str:
    """The first processor's timeline in one line."""
    parts = [f"{task or state} {start}-{end}" for task, start, end, state in run.timelines[0][:24]]
    return " | ".join(parts) + (" ..." if len(run.timelines[0]) > 24 else "")


def _tell_deadlocks(runs: Sequence[CpuRun]) -> None:
    deadlocked = [run for run in runs if run.deadlock]
    for run in deadlocked:
        typer.echo(f"fairq sim cpu: {run.label}: {_deadlock(run)}", err=True)
    if deadlocked:
        raise typer.Exit(2)


@command(_rows, _print_tables, after=_tell_deadlocks)
def cpu(
    file: File = None,
    task: Annotated[list[str] | None, TASK] = None,
    periodic: Annotated[list[str] | None, PERIODIC] = None,
    policy: Policies = None,
    cpus: Annotated[int | None, typer.Option(help="How many processors.")] = None,
    switch_cost: Annotated[int | None, typer.Option(help="Ticks lost at a switch to another task.")] = None,
    lock_attempt: Annotated[str | None, typer.Option(help="free, or tick: a failed attempt costs a tick.")] = None,
    on_miss: Annotated[str | None, typer.Option(help="continue, or abort: a late job ends at its deadline.")] = None,
    horizon: Annotated[int | None, typer.Option(help="Where recurring tasks end. Default: whole hyperperiods.")] = None,
    max_steps: Annotated[int | None, typer.Option(help="The run is given up after so many moments.")] = None,
    seed: Seed = None,
) -> CpuScenario:
    """Tasks on processors: who runs when, and what that does to turnaround, waiting and response.

    lock=RESOURCE@AT/FOR locks after AT own ticks, for FOR; io=EVERY/FOR sleeps FOR after every EVERY own ticks.
    """
    options = {
        "cpus": cpus,
        "switch_cost": switch_cost,
        "lock_attempt": lock_attempt,
        "on_miss": on_miss,
        "horizon": horizon,
        "max_steps": max_steps,
        "seed": seed,
    }
    written = [("--task", text, ONE) for text in task or []] + [
        ("--periodic", text, RECURRING) for text in periodic or []
    ]
    parts = {"tasks": [(option, text, _task(option, text, names)) for option, text, names in written]}
    return assemble(CpuScenario, file, parts, policy or [], options, "--task ID:ARRIVAL:BURST")
