"""What every `fairq sim` command shares: its options, its JSON and its CSV."""

import csv
import io
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer

from fairq.core.errors import ConfigError
from fairq.sim.scenario import Run, Scenario

R = TypeVar("R", bound=Run)

Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy", metavar="NAME[:key=value,...]", help="Repeat to compare. Replaces the scenario's own policies."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object; the schema is a public contract.")]
Csv = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="The same as a table; - is standard output.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE.svg|png|pdf", help="A picture of all runs; needs fairq[plot].")
]
Perfetto = Annotated[
    Path | None, typer.Option("--perfetto", metavar="FILE.json", help="Traces of all runs for ui.perfetto.dev.")
]
Seed = Annotated[int | None, typer.Option("--seed", help="Of every random number in the run.")]
File = Annotated[
    Path | None, typer.Argument(metavar="[SCENARIO.yaml]", help="A scenario file; inline options replace its values.")
]


def tell(
    scenario: Scenario,
    runs: Sequence[R],
    rows: Callable[[R], Iterable[Mapping[str, Any]]],
    tables: Callable[[Sequence[R]], None],
    *,
    as_json: bool,
    csv: Path | None,
    plot: Path | None,
    perfetto: Path | None,
) -> None:
    """The runs in the forms that were asked for. Raises ConfigError when a file cannot be written."""
    if csv:
        write_csv(csv, (row for run in runs for row in rows(run)))
    if plot:
        from fairq.plot import save

        save(scenario, runs, plot)
    if perfetto:
        from fairq.sim.perfetto import write

        write({spec: scenario.run(spec, "events").trace() for spec in scenario.policies}, perfetto)
    if as_json:
        print_json(scenario, runs)
    elif str(csv) != "-":
        tables(runs)


def print_json(scenario: Scenario, runs: Sequence[Run]) -> None:
    document = {"layer": scenario.layer, "runs": [run.as_json() for run in runs]}
    typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """One row per mapping, columns in the order of the first one that has them. Raises ConfigError."""
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
        raise ConfigError("--csv", str(path), f"cannot be written: {error.strerror}") from None
