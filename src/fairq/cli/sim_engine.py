"""`fairq sim engine`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

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
    Plot,
    Policies,
    Results,
    Seed,
    Sweep,
    run_all,
    run_study,
    tell,
)
from fairq.sim.engine.run import EngineRun
from fairq.sim.engine.scenario import EngineScenario
from fairq.sim.scenario import inline
from fairq.sim.source import InvalidScenario

EXAMPLES = """
Examples:

    fairq sim engine --request A:0:256:256:count=60,every=0.5 --request B:0:256:256:count=60,every=1 --policy fcfs --policy vtc

    fairq sim engine --trace arena.csv --pool-tokens 10000 --preset a10g-llama2-7b --policy vtc --policy fcfs --json

    fairq sim engine --workload vtc-overload --policy fcfs --policy vtc --policy vtc-predict:predictor=oracle

    fairq sim engine --trace mooncake.jsonl --first 2000 --tenants-by prefix:50 --preset rtx4090-llama3.1-8b --policy lcf
"""  # noqa: E501

FORM = "--trace FILE, --workload NAME, or --request CLIENT:AT:PROMPT:OUTPUT"
NAMES = ("client", "at", "prompt", "output")
REQUEST = typer.Option(
    "--request",
    metavar="CLIENT:AT:PROMPT:OUTPUT[:count=,every=,max_tokens=,cancel=,priority=]",
    help="Requests of a client, times in seconds, lengths in tokens; repeat.",
)
CLIENT = typer.Option("--client", metavar="ID:weight=", help="A client's weight; repeat. Without it, 1.")
TRACE = typer.Option("--trace", metavar="FILE", help="Recorded requests; see `fairq trace describe`.")
WORKLOAD = typer.Option(
    "--workload", metavar="NAME[:key=value,...]", help="Synthetic requests; see `fairq trace workloads`."
)
TENANTS = typer.Option(help="Who a recorded request is charged to: trace, one, hash:K, prefix:K.")
SHOWN = 20  # clients in a table; --json and --csv have all


def engine(
    file: File = None,
    request: Annotated[list[str] | None, REQUEST] = None,
    client: Annotated[list[str] | None, CLIENT] = None,
    trace: Annotated[Path | None, TRACE] = None,
    workload: Annotated[str | None, WORKLOAD] = None,
    tenants_by: Annotated[str | None, TENANTS] = None,
    first: Annotated[int | None, typer.Option(help="Only so many recorded requests.")] = None,
    speed: Annotated[str | None, typer.Option(help="Recorded time runs so many times faster.")] = None,
    policy: Policies = None,
    preset: Annotated[str | None, typer.Option(help="Costs and limits; the options below replace its own.")] = None,
    pool_tokens: Annotated[int | None, typer.Option(help="Size of the key-value cache.")] = None,
    block_tokens: Annotated[int | None, typer.Option(help="It is handed out in blocks of so many tokens.")] = None,
    watermark: Annotated[int | None, typer.Option(help="Blocks that an admission leaves free.")] = None,
    max_sequences: Annotated[int | None, typer.Option(help="Sequences running at once.")] = None,
    step_tokens: Annotated[int | None, typer.Option(help="Tokens computed in one iteration.")] = None,
    prefill: Annotated[str | None, typer.Option(help="chunked or first.")] = None,
    admit_every: Annotated[int | None, typer.Option(help="With first: decodes between admissions.")] = None,
    reserve: Annotated[str | None, typer.Option(help="Cache at admission for: prompt, limit or peak.")] = None,
    preemption: Annotated[str | None, typer.Option(help="recompute or swap.")] = None,
    victim: Annotated[str | None, typer.Option(help="Who is preempted: last, latest or priority.")] = None,
    prefix_cache: Annotated[bool | None, typer.Option(help="Keep blocks of prompts and share them.")] = None,
    head: Annotated[str | None, typer.Option(help="A head that does not fit: stop or skip.")] = None,
    mode: Annotated[
        str | None, typer.Option("--engine", metavar="jump|step", help="From event to event, or by iterations.")
    ] = None,
    occupancy: Annotated[
        bool | None, typer.Option("--occupancy", help="Measure cache, batch and gaps between tokens at every event.")
    ] = None,
    isolation: Annotated[
        bool | None, typer.Option("--isolation", help="Run every client alone too: how much longer it takes among all.")
    ] = None,
    seed: Seed = None,
    sweep: Sweep = None,
    results: Results = None,
    jobs: Jobs = None,
    backend: Backend = None,
    as_json: AsJson = False,
    measures: AllMeasures = False,
    csv: Csv = None,
    parquet: Parquet = None,
    plot: Plot = None,
    perfetto: Perfetto = None,
) -> None:
    """Requests in an LLM engine with continuous batching: what each policy does to every client."""
    parts = {
        "requests": [_part("--request", text, NAMES) for text in request or []],
        "clients": [_part("--client", text, ("id",)) for text in client or []],
    }
    options: dict[str, object] = {
        "trace": None if trace is None else str(trace),
        "workload": workload,
        "tenants_by": tenants_by,
        "first": first,
        "speed": speed,
        "preset": preset,
        "pool_tokens": pool_tokens,
        "block_tokens": block_tokens,
        "watermark": watermark,
        "max_sequences": max_sequences,
        "step_tokens": step_tokens,
        "prefill": prefill,
        "admit_every": admit_every,
        "reserve": reserve,
        "preemption": preemption,
        "victim": victim,
        "head": head,
        "prefix_cache": prefix_cache,
        "engine": mode,
        "occupancy": occupancy,
        "isolation": isolation,
        "seed": seed,
    }
    scenario = assemble(EngineScenario, file, parts, policy or [], options, FORM)
    if results:
        run_study(scenario, sweep, results, jobs, backend)
        return
    runs: list[EngineRun] = run_all(scenario, sweep)
    tell(
        runs,
        EngineRun.jobs,
        _print_tables,
        as_json=as_json,
        measures=measures,
        csv=csv,
        parquet=parquet,
        plot=plot,
        perfetto=perfetto,
    )


def _part(option: str, text: str, names: tuple[str, ...]) -> Part:
    fields = inline(option, text, names)
    for name in names:
        if name not in fields:
            form = ":".join(n.upper() for n in names)
            raise InvalidScenario([f"{option} {text}: {name}: missing; the form is {form}"])
    return option, text, fields


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
