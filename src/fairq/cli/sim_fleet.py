"""`fairq sim fleet`."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from fairq.cli.sim_bounds import print_bounds
from fairq.cli.sim_command import command
from fairq.cli.sim_engine_options import FORM, EngineOptions, scenario_parts
from fairq.cli.sim_inline import assemble
from fairq.cli.sim_output import File, Policies
from fairq.sim.fleet.run import FleetRun
from fairq.sim.fleet.scenario import FleetScenario

EXAMPLES = """
Examples:

    fairq sim fleet --workload poisson:rate=6,clients=8 --engines 3 --router sfq --slots 16 --policy fcfs --policy vtc

    fairq sim fleet --trace data/vtc_real_trace.csv --speed 2 --router fcfs --policy fcfs --sweep slots=0,8,32 --json

    fairq sim fleet --workload tree-of-thoughts --prefix-cache --placement d2lpm:quantum=10000 --policy vtc
"""


def _print_tables(runs: Sequence[FleetRun]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("router", "placement", "engines' policy", "served", "tokens/s", "difference", "TTFT mean, p99 (s)")
    filled = any(run.filled() for run in runs)
    columns = ["engine", "dispatched", "iterations", "preemptions", "prompt tokens computed"]
    engines = Table("engines' policy", *columns, *(["cache", "batch"] if filled else []))
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
            figures = [one[key] for key in ("name", "dispatched", "iterations", "preemptions", "prefilled_tokens")]
            if full := one["occupancy"]:
                figures += [f"{full['kv']['mean']:.0%}", f"{full['batch']['mean']:.1f}"]
            engines.add_row("" if index else escape(run.label), *map(str, figures))
    console = Console(highlight=False)
    console.print(table)
    console.print(engines)
    print_bounds(console, runs)


@command(FleetRun.jobs, _print_tables, EngineOptions)
def fleet(
    file: File = None,
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
    **options: Any,
) -> FleetScenario:
    """Several engines behind a router: who goes next, to which engine, and (--policy) who goes next there."""
    parts = scenario_parts(options)
    options |= {"engines": engines, "router": router, "placement": placement, "slots": slots, "predict": predict}
    return assemble(FleetScenario, file, parts, policy or [], options, FORM)
