"""What every `fairq sim` command shares: its options, its JSON and its CSV."""

import csv
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from fairq.core.errors import FairqError
from fairq.sim.scenario import Run, Scenario

Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy", metavar="NAME[:key=value,...]", help="Repeat to compare. Replaces the scenario's own policies."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object; the schema is a public contract.")]
Csv = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="The same as a table; - is standard output.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Of every random number in the run.")]
File = Annotated[
    Path | None, typer.Argument(metavar="[SCENARIO.yaml]", help="A scenario file; inline options replace its values.")
]


def fail(error: FairqError) -> typer.Exit:
    """Every problem on a line of its own; exit status 2."""
    for line in str(error).splitlines():
        typer.echo(f"fairq: {line}", err=True)
    return typer.Exit(2)


def print_json(scenario: Scenario, runs: Sequence[Run]) -> None:
    document = {"layer": scenario.layer, "runs": [run.as_json() for run in runs]}
    typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """One row per mapping, columns in the order of the first one that has them. Raises FairqError."""
    rows = list(rows)
    columns = dict.fromkeys(key for row in rows for key in row)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    if str(path) == "-":
        sys.stdout.write(text.getvalue())
        return
    try:
        path.write_text(text.getvalue(), encoding="utf-8")
    except OSError as error:
        raise FairqError(f"{path}: {error.strerror}") from None
