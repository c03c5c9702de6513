"""What makes a function that reads options into a scenario a `fairq sim` command: every layer's runs are told alike."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints

import typer

from fairq.cli.sim_output import AsJson, run_all, run_study, tell
from fairq.core.errors import ConfigError
from fairq.sim.scenario import Run, Scenario

R = TypeVar("R", bound=Run)


def _drawable(path: Path | None) -> Path | None:
    """Before the runs, which may take long."""
    if path:
        from fairq.plot import check

        check(path)
    return path


class Output(NamedTuple):
    """Options of every command, after its own."""

    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            metavar="KEY=A,B,...",
            help="Run once for each value of a policy's parameter, or of a key of the scenario; repeat to combine.",
        ),
    ] = None
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            metavar="FILE.parquet",
            help="Measures of all runs, one row each, on all cores; runs that are in it are not done again.",
        ),
    ] = None
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Processes for --results; all cores unless given.")
    ] = None
    backend: Annotated[str | None, typer.Option("--backend", help="For --results: loky, threading, ray or dask.")] = (
        None
    )
    as_json: AsJson = False
    measures: Annotated[bool, typer.Option("--measures", help="All measures, policies side by side, as the table.")] = (
        False
    )
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="The same as a table; - is standard output.")
    ] = None
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="The same as Parquet; needs fairq[frame].")
    ] = None
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE.svg|png|pdf",
            help="A picture of all runs; needs fairq[plot].",
            callback=_drawable,
        ),
    ] = None
    perfetto: Annotated[
        Path | None, typer.Option("--perfetto", metavar="FILE.json", help="Traces of all runs for ui.perfetto.dev.")
    ] = None


def command(
    rows: Callable[[R], Iterable[Mapping[str, Any]]],
    tables: Callable[[Sequence[R]], None],
    options: type | None = None,
    after: Callable[[Sequence[R]], None] | None = None,
) -> Callable[[Callable[..., Scenario]], Callable[..., None]]:
    """rows, tables  of runs: for --csv and --parquet, and for people
    options        more options, which the function takes as **keywords
    after          what is to be said at the end; may exit
    """

    def made(read: Callable[..., Scenario]) -> Callable[..., None]:
        shared: list[type] = [one for one in (options, Output) if one is not None]
        own = [one for one in inspect.signature(read).parameters.values() if one.kind is not one.VAR_KEYWORD]
        hints = get_type_hints(read, include_extras=True)
        for one in shared:
            hints |= get_type_hints(one, include_extras=True)
            defaults = one._field_defaults  # type: ignore[attr-defined]
            own += [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
                for name, default in defaults.items()
            ]

        def run(**given: Any) -> None:
            written = [name for name, value in given.items() if value]
            output = Output(**{name: given.pop(name) for name in Output._fields})
            try:
                _run(read(**given), output, rows, tables, after)
            except ConfigError as error:
                if error.key not in written:
                    raise
                raise ConfigError("--" + error.key.replace("_", "-"), error.value, error.rule) from None

        run.__doc__, run.__name__ = read.__doc__, read.__name__
        run.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: hints[one.name] for one in own}
        return run

    return made


def _run(
    scenario: Scenario,
    output: Output,
    rows: Callable[[R], Iterable[Mapping[str, Any]]],
    tables: Callable[[Sequence[R]], None],
    after: Callable[[Sequence[R]], None] | None,
) -> None:
    for name, value in output._asdict().items():
        option = "--json" if name == "as_json" else f"--{name}"
        if value and output.results and name not in ("sweep", "results", "jobs", "backend"):
            raise ConfigError(option, None, "does not go with --results, which keeps the measures only")
        if value and not output.results and name in ("jobs", "backend"):
            raise ConfigError(option, None, "goes with --results only")
    if output.results:
        run_study(scenario, output.sweep, output.results, output.jobs, output.backend)
        return
    runs: list[R] = run_all(scenario.for_pictures() if output.plot else scenario, output.sweep)
    tell(
        runs,
        rows,
        tables,
        as_json=output.as_json,
        measures=output.measures,
        csv=output.csv,
        parquet=output.parquet,
        plot=output.plot,
        perfetto=output.perfetto,
    )
    if after is not None:
        after(runs)
