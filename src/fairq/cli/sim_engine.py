"""`fairq sim engine`."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from fairq.cli.sim_bounds import print_bounds
from fairq.cli.sim_command import command
from fairq.cli.sim_engine_options import FORM, SHOWN, EngineOptions, scenario_parts
from fairq.cli.sim_inline import assemble
from fairq.cli.sim_output import File, Policies
from fairq.sim.engine.run import EngineRun
from fairq.sim.engine.scenario import EngineScenario

EXAMPLES = """
Examples:

    fairq sim engine --request A:0:256:256:count=60,every=0.5 --request B:0:256:256:count=60,every=1 --policy fcfs --policy vtc

    fairq sim engine --trace arena.csv --pool-tokens 10000 --preset a10g-llama2-7b --policy vtc --policy fcfs --json

    fairq sim engine --workload vtc-overload --policy fcfs --policy vtc --policy vtc-predict:predictor=oracle

    fairq sim engine --trace mooncake.jsonl --first 2000 --tenants-by prefix:50 --preset rtx4090-llama3.1-8b --policy lcf
"""  # noqa: E501


def _print_tables(runs: Sequence[EngineRun]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    whole = Table("policy", "served", "tokens/s", "makespan", "difference", "iterations", "preemptions", title="runs")
    table = Table(
        "policy", "client", "served", "service", "TTFT mean", "TTFT p99", "TPOT mean", title="clients, seconds"
    )
    for run in runs:
        apart, told = run.difference, run.clients()
        served = sum(one["served"] for one in told.values())
        mean = "-" if apart is None else f"{apart.mean:.1f}"
        counts = (str(run.engine.iterations), str(run.engine.preemptions))
        whole.add_row(
            escape(run.label), f"{served}/{len(run.calls)}", f"{run.throughput:.0f}", _of(run.makespan), mean, *counts
        )
        for index, (name, one) in enumerate(told.items()):
            if index < SHOWN:
                figures = [_figure(one["ttft"], "mean"), _figure(one["ttft"], "p99"), _figure(one["tpot"], "mean")]
                counted = f"{one['served']}/{one['requests']}"
                table.add_row("" if index else escape(run.label), escape(name), counted, str(one["service"]), *figures)
        if len(told) > SHOWN:
            table.add_row("", f"... {len(told) - SHOWN} more", "", "", "", "", "")
    console.print(table)
    console.print(whole)
    print_bounds(console, runs)
    for run in runs:
        if too_long := sum(call.reason == "error" for call in run.calls):
            most = f"{run.engine.longest} tokens of prompt and answer"
            console.print(f"{run.label}: {too_long} turned away: the engine holds {most}", markup=False, soft_wrap=True)
    for run in (one for one in runs if one.scenario.isolation):
        worst = sorted(run.isolation.items(), key=lambda one: -(one[1] or 0))[:SHOWN]
        listed = ", ".join(f"{name} {value:.3g}" for name, value in worst if value is not None)
        console.print(f"{run.label}: response among all / alone: {listed}", markup=False, soft_wrap=True)


def _of(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e9:.1f} s"


def _figure(told: dict[str, Any] | None, which: str) -> str:
    return "-" if told is None else f"{told[which]:.4g}"


@command(EngineRun.jobs, _print_tables, EngineOptions)
def engine(
    file: File = None,
    policy: Policies = None,
    mode: Annotated[
        str | None, typer.Option("--engine", metavar="jump|step", help="From event to event, or by iterations.")
    ] = None,
    **options: Any,
) -> EngineScenario:
    """Requests in an LLM engine with continuous batching: what each policy does to every client."""
    parts = scenario_parts(options)
    return assemble(EngineScenario, file, parts, policy or [], options | {"engine": mode}, FORM)
