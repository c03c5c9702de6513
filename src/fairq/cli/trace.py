"""`fairq trace`: look at recorded traffic before replaying it, and make synthetic traffic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from fairq.traces import FORMATS, Description, Trace, default_rule, describe, with_tenants
from fairq.traces.describe import Spread
from fairq.traces.write import write
from fairq.workloads import NAMES, make, parameters

app = typer.Typer(add_completion=False, rich_markup_mode="markdown", help="Recorded and synthetic traffic.")


@app.callback()
def trace() -> None:
    """Recorded traffic: what is in a file, in which formats. Synthetic traffic: drawn from a seed."""


@app.command(
    "describe",
    epilog="""
    Examples:

        fairq trace describe data/vtc_real_trace.csv

        fairq trace describe data/heads/sharegpt.jsonl --tenants-by prefix:8 --json
    """,
)
def describe_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A trace; its format is recognised.")],
    tenants_by: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Who a request is charged to: trace (its own client), one, hash:K (its place, hashed into K "
            "tenants), prefix:K (its first prefix block, hashed into K). Default: trace where it has clients.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Length, burstiness, sizes, tenants and prefix sharing of a trace."""
    found = Trace(file)
    rule = tenants_by or default_rule(found)
    description = describe(with_tenants(found, rule))
    assert description is not None  # opening a trace without a request is an error
    if as_json:
        document: dict[str, Any] = {"trace": found.name, "format": found.format.name, "tenants_by": rule}
        document |= {"block_tokens": found.block_tokens, **msgspec.to_builtins(description)}
        typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())
    else:
        _print(found, rule, description)


@app.command(
    "make",
    epilog="""
    Examples:

        fairq trace make poisson:rate=3,clients=8,lengths=lognormal --out chat.csv

        fairq trace make vtc-overload --out overload.csv

        fairq trace make multi-turn:turns=6 --seed 4 --out turns.jsonl
    """,
)
def make_command(
    workload: Annotated[str, typer.Argument(metavar="NAME[:key=value,...]", help="See `fairq trace workloads`.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="CSV, or JSON Lines where it ends in .jsonl.")],
    seed: Annotated[int, typer.Option(help="Of every random number in it.")] = 0,
) -> None:
    """Draw a synthetic workload and write it as a trace."""
    made = make(workload, seed)
    write(out, made, made.block_tokens)
    typer.echo(f"{out}: {len(made):,} requests of {workload}, seed {made.seed}")


@app.command("convert")
def convert_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A trace in any format that is read.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="CSV, or JSON Lines where it ends in .jsonl.")],
    tenants_by: Annotated[str | None, typer.Option(metavar="RULE", help="As for describe.")] = None,
) -> None:
    """Write a trace in fairq's own format, with tenants by the rule."""
    found = Trace(file)
    rule = tenants_by or default_rule(found)
    write(out, with_tenants(found, rule), found.block_tokens)
    typer.echo(f"{out}: {found.name}, tenants by {rule}")


@app.command("workloads")
def workloads_command() -> None:
    """The synthetic workloads and their parameters."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("workload", "parameters"):
        table.add_column(title, overflow="fold")
    for name in NAMES:
        known = (f"{key}={'' if default is None else default}" for key, (_, default) in parameters(name).items())
        table.add_row(name, " ".join(known))
    Console().print(table)


@app.command("formats")
def formats_command() -> None:
    """The formats that are read, and the columns or keys by which each is recognised."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("format", "what it is", "recognised by"):
        table.add_column(title, overflow="fold")
    for known in FORMATS:
        table.add_row(known.name, known.about, " ".join(sorted(known.keys)))
    Console().print(table)


def _print(found: Trace, rule: str, description: Description) -> None:
    console = Console(highlight=False)
    rate = f", {description.requests / description.span:.2f} requests/s" if description.span else ""
    burst = "" if description.cv is None else f"; gaps between arrivals vary with CV {description.cv:.3f}"
    lines = [f"{found.name}: {found.format.about}"]
    lines.append(f"{description.requests:,} requests in {description.span:,.2f} s{rate}{burst}")
    if description.blocks:
        blocks = description.blocks
        lines.append(
            f"{blocks.total:,} prefix blocks of {found.block_tokens} tokens, {blocks.unique:,} unique; "
            f"a cache without limit would hit {blocks.hit_ratio:.4f} of them"
        )
    sizes = _table("", "min", "mean", "p50", "p90", "p99", "max")
    rows: list[tuple[str, Spread | None]] = [
        ("input tokens", description.input_tokens),
        ("output tokens", description.output_tokens),
    ]
    if description.measured:
        lines.append(f"{description.measured.refused:,} requests were refused when it was recorded")
        rows += [("TTFT (s)", description.measured.ttft), ("latency (s)", description.measured.latency)]
    for name, spread in rows:
        if spread:
            sizes.add_row(name, *(f"{value:,.5g}" if value < 1e4 else f"{value:,.0f}" for value in astuple(spread)))
    console.print("\n".join(lines), soft_wrap=True)
    console.print(sizes)
    console.print("[dim]percentiles are interpolated between neighbours[/]")
    tenants = _table(f"tenant ({rule})", "requests", "input tokens", "output tokens")
    for name, client in description.clients.items():
        tenants.add_row(name, *(f"{count:,}" for count in astuple(client)))
    console.print(tenants)


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table


def astuple(struct: msgspec.Struct) -> tuple[Any, ...]:
    return msgspec.structs.astuple(struct)
