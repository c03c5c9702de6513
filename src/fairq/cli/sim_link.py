"""`fairq sim link`."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from fairq.cli.sim_command import command
from fairq.cli.sim_inline import Part, assemble
from fairq.cli.sim_output import File, Policies, Seed
from fairq.sim.link.run import LinkRun
from fairq.sim.link.scenario import LinkScenario
from fairq.sim.scenario import inline
from fairq.sim.source import InvalidScenario

EXAMPLES = """
Examples:

    fairq sim link --packet A:0:8:count=3 --packet B:0:2:count=7 --policy gps --policy wfq --policy wf2q --policy sfq

    fairq sim link --rate 8 --flow A:weight=2 --flow B --packet A:0:500:count=9 --packet B:0:1500:count=3 --policy drr

    fairq sim link --packet A:0:4:count=9 --packet B:3:4:count=9,every=2 --stall 5:10 --policy wfq --policy sfq --json
"""

FORM = "--packet FLOW:ARRIVAL:SIZE"
FLOW = typer.Option("--flow", metavar="ID[:weight=,buffer=]", help="A flow; repeat. Without any, all weigh the same.")
PACKET = typer.Option(
    "--packet",
    metavar="FLOW:ARRIVAL:SIZE[:count=,every=,estimate=]",
    help="A packet, or count of them, every so often; repeat. Policies are told the estimate where there is one.",
)


def _part(option: str, text: str, names: tuple[str, ...]) -> Part:
    fields = inline(option, text, names)
    for name in names[1:]:
        if name not in fields:
            raise InvalidScenario(
                [f"{option} {text}: {name}: missing; the form is {':'.join(n.upper() for n in names)}"]
            )
    return option, text, fields


def _rows(run: LinkRun) -> Iterator[dict[str, Any]]:
    yield from run.as_json()["departures"]


def _print_tables(runs: Sequence[LinkRun]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    for run in runs:
        sent = [
            f"{job.flow}{'' if start is None else f' {run.time(start)}'}-{run.time(finish)}"
            for job, start, finish in run.departures[:24]
        ]
        more = " ..." if len(run.departures) > 24 else ""
        console.print(f"\n[bold]{escape(run.label)}[/bold]  {escape(' | '.join(sent) + more)}", soft_wrap=True)
    table = Table("policy", "flow", "packets", "size", "dropped", "mean delay", "max delay")
    for run in runs:
        for index, (flow, told) in enumerate(run.as_json()["flows"].items()):
            delay = told["delay"]
            figures = ["-", "-"] if delay is None else [f"{delay['mean']:.6g}", f"{delay['max']:.6g}"]
            counts = [str(told[key]) for key in ("packets", "size", "dropped")]
            if index < 20:
                table.add_row("" if index else escape(run.label), escape(flow), *counts, *figures)
    console.print(table)


@command(_rows, _print_tables)
def link(
    file: File = None,
    flow: Annotated[list[str] | None, FLOW] = None,
    packet: Annotated[list[str] | None, PACKET] = None,
    policy: Policies = None,
    rate: Annotated[
        str | None, typer.Option(metavar="SIZE/TIME", help="Size sent per unit of time: 1, 8, 3/2.")
    ] = None,
    buffer: Annotated[int | None, typer.Option(help="Packets that may wait in all; more are dropped.")] = None,
    stall: Annotated[list[str] | None, typer.Option(metavar="AT:FOR", help="The link stands still; repeat.")] = None,
    random_stalls: Annotated[str | None, typer.Option(metavar="EVERY:FOR", help="It does so at random times.")] = None,
    seed: Seed = None,
) -> LinkScenario:
    """Packets of flows on a link: when each is sent, by packet schedulers and by the fluid that they follow (gps)."""
    parts = {
        "packets": [_part("--packet", text, ("flow", "arrival", "size")) for text in packet or []],
        "flows": [_part("--flow", text, ("id",)) for text in flow or []],
        "stalls": [_part("--stall", text, ("at", "for")) for text in stall or []],
    }
    at_random = inline("--random-stalls", random_stalls, ("every", "for")) if random_stalls else None
    options = {"rate": rate, "buffer": buffer, "random_stalls": at_random, "seed": seed}
    return assemble(LinkScenario, file, parts, policy or [], options, FORM)
