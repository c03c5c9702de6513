"""`fairq capacity`: how much load each policy carries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from fairq.cli.sim_engine_options import TENANTS, TRACE, WORKLOAD
from fairq.cli.sim_inline import assemble
from fairq.cli.sim_output import AsJson, File, Policies, Seed
from fairq.progress import watched
from fairq.sim.capacity import Capacity, Target, capacity
from fairq.sim.engine.scenario import EngineScenario

FORM = "--trace FILE or --workload NAME"


def find(
    file: File = None,
    trace: Annotated[Path | None, TRACE] = None,
    workload: Annotated[str | None, WORKLOAD] = None,
    tenants_by: Annotated[str | None, TENANTS] = None,
    first: Annotated[int | None, typer.Option(help="Only so many recorded requests.")] = None,
    policy: Policies = None,
    ttft: Annotated[float | None, typer.Option(help="99 of 100 first tokens come within so many seconds.")] = None,
    client_ttft: Annotated[float | None, typer.Option(help="The same of every client's own requests.")] = None,
    difference: Annotated[
        float | None, typer.Option(help="Mean service difference, in weighted tokens per second.")
    ] = None,
    served: Annotated[float | None, typer.Option(max=1, help="Share of the requests that must be answered.")] = None,
    preset: Annotated[str | None, typer.Option(help="Costs and limits of the engine.")] = None,
    pool_tokens: Annotated[int | None, typer.Option(help="Size of the key-value cache.")] = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """The highest load at which each policy still holds the targets: how many times faster than recorded.

    Examples:

        fairq capacity --trace data/vtc_real_trace.csv --policy fcfs --policy vtc --difference 200

        fairq capacity --workload poisson:rate=2,clients=4 --policy vtc --ttft 5 --difference 100 --json
    """
    options: dict[str, object] = {
        "trace": None if trace is None else str(trace),
        "workload": workload,
        "tenants_by": tenants_by,
        "first": first,
        "preset": preset,
        "pool_tokens": pool_tokens,
        "seed": seed,
    }
    target = Target(ttft, client_ttft, difference, served)
    target.check()
    scenario = assemble(EngineScenario, file, {"requests": []}, policy or [], options, FORM)
    found = [capacity(scenario, spec, target) for spec in watched(scenario.policies)]
    if as_json:
        document: dict[str, Any] = {"target": msgspec.to_builtins(target), "runs": msgspec.to_builtins(found)}
        typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())
    else:
        _print(found)


def _print(found: list[Capacity]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("policy", "load", "requests/s", "tokens/s", "measured there", "above it breaks")
    for one in found:
        measured = ", ".join(f"{name} {value:.4g}" for name, value in one.measured.items() if value is not None)
        load = "none holds" if one.load is None else f"{one.load:.3g}x"
        rates = ("-" if rate is None else f"{rate:.4g}" for rate in (one.requests, one.tokens))
        table.add_row(escape(one.policy), load, *rates, measured, ", ".join(one.broken) or "nothing up to 64x")
    Console(highlight=False).print(table)
