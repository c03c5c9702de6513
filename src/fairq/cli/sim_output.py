"""What every `fairq sim` command shares: its options, its JSON and its CSV."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer

from fairq.core.errors import ConfigError, UnknownName
from fairq.progress import watched
from fairq.result import compare
from fairq.sim.scenario import Run, Scenario
from fairq.sim.sweep import parsed, run, settings
from fairq.tables import Table

R = TypeVar("R", bound=Run)

Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy", metavar="NAME[:key=value,...]", help="Repeat to compare. Replaces the scenario's own policies."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object; the schema is a public contract.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Of every random number in the run.")]
File = Annotated[
    Path | None, typer.Argument(metavar="[SCENARIO.yaml]", help="A scenario file; inline options replace its values.")
]


def run_all(scenario: Scenario, sweep: Sequence[str] | None) -> list[Any]:
    """Every policy on it, and every setting of the sweep. Raises ConfigError."""
    found = settings(scenario, parsed(sweep or []))
    return [run(setting) for setting in watched(found, name=lambda setting: setting[1])]


def run_study(
    scenario: Scenario, sweep: Sequence[str] | None, results: Path, jobs: int | None, backend: str | None
) -> None:
    """The same on many cores; only measures are kept. Raises ConfigError."""
    from fairq.sim.study import BACKENDS, study

    if backend is not None and backend not in BACKENDS:
        raise UnknownName("--backend", backend, BACKENDS)
    swept = parsed(sweep or [])
    table = study(settings(scenario, swept), results, jobs or -1, backend or "loky")
    typer.echo(f"{results}: {len(table)} runs, {len(table.columns)} columns")
    from rich import print as show

    columns = dict.fromkeys(("policy", *(key.replace("-", "_") for key in swept), *TOLD))
    if not any(key in row for row in table for key in TOLD):
        columns = dict.fromkeys(key for key in table.columns if key not in ("key", "seed") or key in swept)
    show(Table({key: row[key] for key in list(columns)[:MOST_TOLD] if key in row} for row in table))


MOST_TOLD = 9  # columns
TOLD = ("served", "ttft mean", "ttft p99", "throughput", "service difference mean", "cache hit ratio")


def tell(
    runs: Sequence[R],
    rows: Callable[[R], Iterable[Mapping[str, Any]]],
    tables: Callable[[Sequence[R]], None],
    *,
    as_json: bool,
    measures: bool,
    csv: Path | None,
    parquet: Path | None,
    plot: Path | None,
    perfetto: Path | None,
) -> None:
    """The runs in the forms that were asked for. Raises ConfigError when a file cannot be written."""
    if csv or parquet:
        table = Table({"policy": run.spec, **run.swept, **row} for run in runs for row in rows(run))
        if str(csv) == "-":
            sys.stdout.write(table.csv())
        elif csv:
            _write("--csv", csv, table.csv().encode())
        if parquet:
            _write("--parquet", parquet, table.parquet())
    if plot:
        from fairq.plot import save

        save(runs[0].scenario, runs, plot)
    if perfetto:
        from fairq.sim.perfetto import save as save_traces

        save_traces(runs, perfetto)
    if as_json:
        print_json(runs)
    elif measures:
        from rich import print as show

        show(compare(runs))
    elif str(csv) != "-":
        scenario = runs[0].scenario
        for line in filter(None, (scenario.title, scenario.look_for)):
            typer.echo(line)
        tables(runs)


def print_json(runs: Sequence[Run]) -> None:
    told = [run.as_json() | ({"sweep": run.swept} if run.swept else {}) for run in runs]
    document = {"layer": runs[0].scenario.layer, "runs": told}
    typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())


def _write(option: str, path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise ConfigError(option, str(path), f"cannot be written: {error.strerror}") from None
