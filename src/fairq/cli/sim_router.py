"""`fairq sim router`."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from fairq.cli.sim_command import command
from fairq.cli.sim_inline import Part, assemble
from fairq.cli.sim_output import File, Policies, Seed
from fairq.sim.router.run import RouterRun
from fairq.sim.router.scenario import RouterScenario
from fairq.sim.scenario import inline
from fairq.sim.source import InvalidScenario

EXAMPLES = """
Examples:

    fairq sim router --tenant A:cost=8,count=3 --tenant B:cost=2,count=7 --tenant C:cost=4,count=4,join=3 --policy sfq

    fairq sim router --tenant A:cost=8,count=3 --tenant B:cost=2,count=9 --policy request-rr --policy sfq --json

    fairq sim router --tenant A:cost=1,count=9 --tenant B:batch=0/2/1,batch=5/4/1 --policy sfq --policy sfq:credit=2
"""

FORM = "--tenant ID:cost=COST,count=COUNT"
TENANT = typer.Option(
    "--tenant",
    metavar="ID:cost=,count=[,join=,weight=]",
    help="A tenant whose requests join together; repeat. Several joins: batch=JOIN/COUNT/COST, repeated.",
)


def _tenant(text: str) -> Part:
    fields = inline("--tenant", text, ("id",), repeated=frozenset({"batch"}))
    if "batch" in fields:
        batches = [value.split("/") for value in fields.pop("batch")]
        if any(len(batch) != 3 for batch in batches):
            raise InvalidScenario([f"--tenant {text}: batch: the form is batch=JOIN/COUNT/COST"])
        fields["batches"] = [{"join": join, "count": count, "cost": cost} for join, count, cost in batches]
    return "--tenant", text, fields


def _rows(run: RouterRun) -> Iterator[dict[str, Any]]:
    for step in run.as_json()["steps"]:
        meters = {f"meter {tenant}": meter for tenant, meter in step["meters"].items()}
        flat = {key: step.get(key) for key in ("kind", "time", "tenant", "cost", "virtual_time", "reset")}
        yield {**flat, "joined": " ".join(step["joined"]), **meters}


def _print_tables(runs: Sequence[RouterRun]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    short = max(len(tenant.id) for tenant in runs[0].scenario.tenants) == 1
    for run in runs:
        console.print(f"\n[bold]{escape(run.label)}[/bold]", soft_wrap=True)
        shown = ("" if short else " ").join(run.order[:400])
        more = f" ... and {len(run.order) - 400} more" if len(run.order) > 400 else ""
        console.print(escape(shown + more), soft_wrap=True)
        table = Table("waiting together", "from", "to", "normalized service", "Jain", title_justify="left")
        for interval in run.intervals[:40]:
            service = ", ".join(f"{flow} {amount}" for flow, amount in interval.service.items())
            jain = "-" if interval.jain is None else f"{float(interval.jain):.3f}"
            names = escape(" ".join(interval.service))
            table.add_row(names, str(interval.start), str(interval.end), escape(service), jain)
        console.print(table)
        if len(run.intervals) > 40:
            console.print(f"and {len(run.intervals) - 40} more; --json has all")


@command(_rows, _print_tables)
def router(
    file: File = None,
    tenant: Annotated[list[str] | None, TENANT] = None,
    policy: Policies = None,
    seed: Seed = None,
) -> RouterScenario:
    """Requests of tenants at a router: in which order they are dispatched, in logical time.

    Time goes up by one with each dispatch. What is charged is the cost, at once and for good.
    """
    parts = {"tenants": [_tenant(text) for text in tenant or []]}
    return assemble(RouterScenario, file, parts, policy or [], {"seed": seed}, FORM)
