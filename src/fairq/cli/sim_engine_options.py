"""Options of `fairq sim engine` and `fairq sim fleet`: requests, and what the engines are like."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from fairq.cli.sim_inline import Part
from fairq.cli.sim_output import Seed
from fairq.sim.scenario import inline
from fairq.sim.source import InvalidScenario

FORM = "--trace FILE, --workload NAME, or --request CLIENT:AT:PROMPT:OUTPUT"
REQUEST = ("client", "at", "prompt", "output")
SHOWN = 20  # clients in a table; --json and --csv have all


TRACE = typer.Option("--trace", metavar="FILE", help="Recorded requests; see `fairq trace describe`.")
WORKLOAD = typer.Option(
    "--workload", metavar="NAME[:key=value,...]", help="Synthetic requests; see `fairq trace workloads`."
)
TENANTS = typer.Option(help="Who a recorded request is charged to: trace, one, hash:K, prefix:K.")


class EngineOptions(NamedTuple):
    """By the keys of a scenario, but for `request` and `client`."""

    request: Annotated[
        list[str] | None,
        typer.Option(
            "--request",
            metavar="CLIENT:AT:PROMPT:OUTPUT[:count=,every=,max_tokens=,cancel=,priority=]",
            help="Requests of a client, times in seconds, lengths in tokens; repeat.",
        ),
    ] = None
    client: Annotated[
        list[str] | None,
        typer.Option("--client", metavar="ID:weight=", help="A client's weight; repeat. Without it, 1."),
    ] = None
    trace: Annotated[Path | None, TRACE] = None
    workload: Annotated[str | None, WORKLOAD] = None
    tenants_by: Annotated[str | None, TENANTS] = None
    first: Annotated[int | None, typer.Option(help="Only so many recorded requests.")] = None
    speed: Annotated[str | None, typer.Option(help="Recorded time runs so many times faster.")] = None
    preset: Annotated[str | None, typer.Option(help="Costs and limits; the options below replace its own.")] = None
    pool_tokens: Annotated[int | None, typer.Option(help="Size of the key-value cache.")] = None
    block_tokens: Annotated[int | None, typer.Option(help="It is handed out in blocks of so many tokens.")] = None
    watermark: Annotated[int | None, typer.Option(help="Blocks that an admission leaves free.")] = None
    max_sequences: Annotated[int | None, typer.Option(help="Sequences running at once.")] = None
    step_tokens: Annotated[int | None, typer.Option(help="Tokens computed in one iteration.")] = None
    prefill: Annotated[str | None, typer.Option(help="chunked or first.")] = None
    admit_every: Annotated[int | None, typer.Option(help="With first: decodes between admissions.")] = None
    reserve: Annotated[str | None, typer.Option(help="Cache at admission for: prompt, limit or peak.")] = None
    preemption: Annotated[str | None, typer.Option(help="recompute or swap.")] = None
    victim: Annotated[str | None, typer.Option(help="Who is preempted: last, latest or priority.")] = None
    head: Annotated[str | None, typer.Option(help="A head that does not fit: stop or skip.")] = None
    prefix_cache: Annotated[bool | None, typer.Option(help="Keep blocks of prompts and share them.")] = None
    prefix_tokens: Annotated[
        int | None, typer.Option(help="Tokens of such a block, where the requests do not say.")
    ] = None
    occupancy: Annotated[
        bool | None, typer.Option("--occupancy", help="Measure cache, batch and gaps between tokens at every event.")
    ] = None
    isolation: Annotated[
        bool | None, typer.Option("--isolation", help="Run every client alone too: how much longer it takes among all.")
    ] = None
    seed: Seed = None


def scenario_parts(options: dict[str, Any]) -> dict[str, list[Part]]:
    """Takes the lists out of the options."""
    return {
        "requests": [_part("--request", text, REQUEST) for text in options.pop("request") or []],
        "clients": [_part("--client", text, ("id",)) for text in options.pop("client") or []],
    }


def _part(option: str, text: str, names: tuple[str, ...]) -> Part:
    fields = inline(option, text, names)
    for name in names:
        if name not in fields:
            form = ":".join(n.upper() for n in names)
            raise InvalidScenario([f"{option} {text}: {name}: missing; the form is {form}"])
    return option, text, fields
