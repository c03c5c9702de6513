"""`fairq policies`: which there are, and what each is fair in, must be told, and promises."""

from typing import Annotated

import msgspec
import typer

from fairq.cli.sim_output import AsJson
from fairq.core.param import Param
from fairq.sim.catalogue import Entry, entries, entry

EXAMPLES = """
Examples:

    fairq policies

    fairq policies sfq

    fairq policies eevdf --json
"""
WIDE = 130  # columns of a terminal that has room for parameters and sources


def policies(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="All there is to say about this one.")] = None,
    layer: Annotated[
        str | None, typer.Option(help="Only those that run there: cpu, link, router, cluster, engine, gateway.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Every policy: where it runs, what it must know, its unit of fairness, its parameters and its source."""
    found = [entry(name)] if name else entries(layer)
    if as_json:
        document = found[0] if name else {"policies": found}
        typer.echo(msgspec.json.format(msgspec.json.encode(document, enc_hook=str)).decode())
    elif name:
        _print_one(found[0])
    else:
        _print_all(found)


def bounds(param: Param) -> str:
    """What values a parameter may have."""
    if param.choices:
        return " | ".join(param.choices)
    kind = {bool: "true | false", int: "whole number", str: "text"}.get(type(param.default), "number")
    low = "" if param.low is None else f", at least {param.low}"
    return kind + low + ("" if param.high is None else f", at most {param.high}")


def _print_all(found: list[Entry]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    wide = console.width >= WIDE
    table = Table("policy", "fair in", "must know", "runs on", *(("parameters", "source") if wide else ()))
    for one in found:
        params = ", ".join(f"{param.name}={param.default}" for param in one.params)
        cells = [", ".join([one.name, *one.aliases]), one.unit, ", ".join(one.needs), ", ".join(one.layers)]
        table.add_row(*map(escape, [*cells, params, one.citation or ""] if wide else cells))
    console.print(table)
    console.print("fairq policies NAME tells more; fairq choose helps to pick one.")


def _print_one(one: Entry) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    console.print(f"[bold]{escape(', '.join([one.name, *one.aliases]))}[/bold]\n")
    console.print(escape(one.text), soft_wrap=True)
    console.print(f"\nruns on    {', '.join(one.layers)}")
    console.print(f"must know  {', '.join(one.needs) or 'nothing'}")
    if one.params:
        table = Table("parameter", "default", "values")
        for param in one.params:
            table.add_row(param.name, escape(str(param.default)), escape(bounds(param)))
        console.print(table)
    console.print(f"\nTry it:  {escape(one.example)}", soft_wrap=True)
