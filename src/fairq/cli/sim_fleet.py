"""`fairq sim fleet`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fairq.cli.sim_engine import CLIENT, TENANTS, TRACE, WORKLOAD
from fairq.cli.sim_inline import Part, assemble
from fairq.cli.sim_output import (
    AllMeasures,
    AsJson,
    Backend,
    Csv,
    File,
    Jobs,
    Parquet,
    Perfetto,
    Policies,
    Results,
    Seed,
    Sweep,
    run_all,
    run_study,
    tell,
)
from fairq.sim.fleet.run import FleetRun
from fairq.sim.fleet.scenario import FleetScenario
from fairq.sim.scenario import inline

EXAMPLES = """
Examples:

    fairq sim fleet --workload poisson:rate=6,clients=8 --engines 3 --router sfq --slots 16 --policy fcfs --policy vtc

    fairq sim fleet --trace data/vtc_real_trace.csv --speed 2 --router fcfs --policy fcfs --sweep slots=0,8,32 --json

    fairq sim fleet --workload tree-of-thoughts --prefix-cache --placement d2lpm:quantum=10000 --policy vtc
"""

FORM = "--trace FILE or --workload NAME"


def fleet(
    file: File = None,
    client: Annotated[list[str] | None, CLIENT] = None,
    trace: Annotated[Path | None, TRACE] = None,
    workload: Annotated[str | None, WORKLOAD] = None,
    tenants_by: Annotated[str | None, TENANTS] = None,
    first: Annotated[int | None, typer.Option(help="Only so many recorded requests.")] = None,
    speed: Annotated[str | None, typer.Option(help="Recorded time runs so many times faster.")] = None,
    engines: Annotated[int | None, typer.Option(help="Equal ones behind the router.")] = None,
    router: Annotated[str | None, typer.Option(metavar="POLICY", help="Who is dispatched next: sfq, fcfs, ...")] = None,
    placement: Annotated[
        str | None, typer.Option(metavar="NAME[:key=value,...]", help="least-loaded, prefix-affinity or d2lpm.")
    ] = None,
    slots: Annotated[
        int | None, typer.Option(help="In flight at each engine; 0: the router holds nobody back.")
    ] = None,
    predict: Annotated[str | None, typer.Option(help="An answer's cost at the router: average or oracle.")] = None,
    policy: Policies = None,
    preset: Annotated[str | None, typer.Option(help="Costs and limits of each engine.")] = None,
    pool_tokens: Annotated[int | None, typer.Option(help="Size of each key-value cache.")] = None,
    max_sequences: Annotated[int | None, typer.Option(help="Sequences running at once in each.")] = None,
    prefix_cache: Annotated[bool | None, typer.Option(help="Keep blocks of prompts and share them.")] = None,
    seed: Seed = None,
    sweep: Sweep = None,
    results: Results = None,
    jobs: Jobs = None,
    backend: Backend = None,
    as_json: AsJson = False,
    measures: AllMeasures = False,
    csv: Csv = None,
    parquet: Parquet = None,
    perfetto: Perfetto = None,
) -> None:
    """Several engines behind a router: who goes next, to which engine, and (--policy) who goes next there."""
    parts: dict[str, list[Part]] = {
        "clients": [("--client", text, inline("--client", text, ("id",))) for text in client or []]
    }
    options: dict[str, object] = {
        "trace": None if trace is None else str(trace),
        "workload": workload,
        "tenants_by": tenants_by,
        "first": first,
        "speed": speed,
        "engines": engines,
        "router": router,
        "placement": placement,
        "slots": slots,
        "predict": predict,
        "preset": preset,
        "pool_tokens": pool_tokens,
        "max_sequences": max_sequences,
        "prefix_cache": prefix_cache,
        "seed": seed,
    }
    scenario = assemble(FleetScenario, file, parts, policy or [], options, FORM)
    if results:
        run_study(scenario, sweep, results, jobs, backend)
        return
    runs: list[FleetRun] = run_all(scenario, sweep)
    tell(
        runs,
        FleetRun.jobs,
        _print_tables,
        as_json=as_json,
        measures=measures,
        csv=csv,
        parquet=parquet,
        plot=None,
        perfetto=perfetto,
    )


def _print_tables(runs: Sequence[FleetRun]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("router", "placement", "engines' policy", "served", "tokens/s", "difference", "TTFT mean, p99 (s)")
    engines = Table("engines' policy", "engine", "dispatched", "iterations", "preemptions", "prompt tokens computed")
    for run in runs:
        told, scenario = run.measured(), run.scenario
        apart = run.difference
        table.add_row(
            escape(scenario.router),
            escape(scenario.placement),
            escape(run.label),
            f"{told['served']}/{len(run.calls)}",
            f"{run.throughput:.0f}",
            "-" if apart is None else f"{apart.mean:.1f}",
            "-" if told["ttft mean"] is None else f"{told['ttft mean']:.3g}, {told['ttft p99']:.3g}",
        )
        for index, one in enumerate(run.engines()):
            figures = (one[key] for key in ("name", "dispatched", "iterations", "preemptions", "prefilled_tokens"))
            engines.add_row("" if index else escape(run.label), *map(str, figures))
    console = Console(highlight=False)
    console.print(table)
    console.print(engines)
