"""`fairq sim cluster`."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from fairq.cli.sim_command import command
from fairq.cli.sim_inline import Part, assemble
from fairq.cli.sim_output import File, Policies, Seed
from fairq.sim.cluster.run import ClusterRun
from fairq.sim.cluster.scenario import ClusterScenario
from fairq.sim.scenario import inline
from fairq.sim.source import InvalidScenario

EXAMPLES = """
Examples:

    fairq sim cluster --capacity cpu=9,mem=18 --user A:cpu=1,mem=4 --user B:cpu=3,mem=1 --policy drf

    fairq sim cluster --capacity cpu=9,mem=18 --user A:cpu=1,mem=4 --user B:cpu=3,mem=1 --policy drf --policy drf:by=cpu

    fairq sim cluster --capacity gpu=8 --user A:gpu=1,tasks=9,duration=4 --user B:gpu=4,batch=2/3/5 --policy drf --json
"""

FORM = "--capacity RESOURCE=AMOUNT,... and --user ID:RESOURCE=AMOUNT,..."
OWN = ("weight", "tasks", "arrival", "duration")
CAPACITY = typer.Option("--capacity", metavar="RESOURCE=AMOUNT,...", help="How much there is of each resource.")
USER = typer.Option(
    "--user",
    metavar="ID:RESOURCE=AMOUNT,...[,weight=,tasks=,arrival=,duration=]",
    help="A user and what each of its tasks holds; repeat. Without tasks= there is always another one. "
    "Several joins: batch=ARRIVAL/TASKS/DURATION, repeated.",
)


def _rows(run: ClusterRun) -> Iterator[dict[str, Any]]:
    yield from run.as_json()["steps"]


def _user(text: str) -> Part:
    fields = inline("--user", text, ("id",), repeated=frozenset({"batch"}))
    found: dict[str, Any] = {key: fields.pop(key) for key in ("id", *OWN) if key in fields}
    if batches := fields.pop("batch", None):
        joins = [batch.split("/") for batch in batches]
        if any(len(join) not in (2, 3) for join in joins):
            raise InvalidScenario([f"--user {text}: batch: the form is batch=ARRIVAL/TASKS or ARRIVAL/TASKS/DURATION"])
        found["batches"] = [dict(zip(("arrival", "tasks", "duration"), join, strict=False)) for join in joins]
    return "--user", text, found | {"demand": fields}


def _print_tables(runs: Sequence[ClusterRun]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    for run in runs:
        told = run.as_json()
        picks = " ".join(told["picks"][:200]) + (" ..." if len(told["picks"]) > 200 else "")
        console.print(f"\n[bold]{escape(run.label)}[/bold]  {escape(picks)}", soft_wrap=True)
        used = ", ".join(
            f"{resource} {used} of {run.room.capacity[resource]}" for resource, used in told["used"].items()
        )
        console.print(f"after the last pick: {escape(used)}", soft_wrap=True)
        table = Table("user", "tasks", "dominant share")
        for user, tasks in list(told["tasks"].items())[:40]:
            table.add_row(escape(user), str(tasks), told["dominant_share"][user])
        console.print(table)


@command(_rows, _print_tables)
def cluster(
    file: File = None,
    user: Annotated[list[str] | None, USER] = None,
    capacity: Annotated[str | None, CAPACITY] = None,
    policy: Policies = None,
    horizon: Annotated[int | None, typer.Option(help="Where the run stops.")] = None,
    seed: Seed = None,
) -> ClusterScenario:
    """Tasks that hold several resources at once: whose run, and what share of the cluster each user has."""
    parts = {"users": [_user(text) for text in user or []]}
    amounts = inline("--capacity", capacity, ()) if capacity else None
    options = {"capacity": amounts, "horizon": horizon, "seed": seed}
    return assemble(ClusterScenario, file, parts, policy or ([] if file else ["drf"]), options, FORM)
