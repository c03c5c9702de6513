"""`fairq calibrate`: the coefficients of an engine's iterations from measured requests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from fairq.core.errors import UnknownName
from fairq.sim.engine.calibrate import Agreement, Fit, compare, fit, timings
from fairq.sim.engine.cost import PRESETS, Limits
from fairq.traces import Trace


def calibrate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Requests with measured times, as vllm-timings has.")],
    first: Annotated[int | None, typer.Option(min=1, help="Fit to so many of its requests; compare with all.")] = None,
    preset: Annotated[str | None, typer.Option(help="Limits of the engine that was measured.")] = None,
    pool_tokens: Annotated[int | None, typer.Option(help="Its cache; with it, or a preset, it is simulated.")] = None,
    block_tokens: Annotated[int | None, typer.Option(help="Of its cache.")] = None,
    max_sequences: Annotated[int | None, typer.Option(help="Running at once.")] = None,
    step_tokens: Annotated[int | None, typer.Option(help="Computed in one iteration.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Fit a, b, c, d of an iteration's time to per-request timings, and say how well a simulation then agrees.

    Examples:

        fairq calibrate data/vllm/RTX4090_Llama-3.1-8B.csv --preset rtx4090-llama3.1-8b --first 150

        fairq calibrate timings.csv --pool-tokens 41408 --max-sequences 256 --step-tokens 2048 --json
    """
    given = {
        "pool_tokens": pool_tokens,
        "block_tokens": block_tokens,
        "max_sequences": max_sequences,
        "step_tokens": step_tokens,
    }
    limits = _limits(preset, {name: value for name, value in given.items() if value is not None})
    trace = Trace(file)
    known = timings(trace, trace.name)
    found = fit(known[:first], limits)
    agreement = compare(known, found.cost, limits) if limits else None
    if as_json:
        document: dict[str, Any] = {"trace": trace.name, "first": first, **msgspec.to_builtins(found)}
        document["agreement"] = _told(agreement) if agreement else None
        typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())
    else:
        _print(trace.name, found, agreement)


def _limits(preset: str | None, given: dict[str, int]) -> Limits | None:
    """Raises UnknownName, ConfigError."""
    if preset is not None:
        if preset not in PRESETS:
            raise UnknownName("--preset", preset, PRESETS)
        limits = msgspec.structs.replace(PRESETS[preset].limits, **given)
    elif "pool_tokens" in given:
        limits = Limits(**given)  # type: ignore[arg-type]
    else:
        return None
    limits.check()
    return limits


PAIRS = {"makespan": "makespan (s)", "ttft": "mean TTFT (s)", "tpot": "mean TPOT (s)"}


def _told(agreement: Agreement) -> dict[str, Any]:
    told: dict[str, Any] = {"requests": agreement.requests}
    for name in PAIRS:
        simulated, measured = getattr(agreement, name)
        told[name] = {"simulated": simulated, "measured": measured, "error": simulated / measured - 1}
    return told | {"same_order": agreement.same_order, "preemptions": agreement.preemptions}


def _print(name: str, found: Fit, agreement: Agreement | None) -> None:
    from rich.console import Console
    from rich.table import Table

    cost = found.cost
    console = Console(highlight=False)
    console.print(f"cost: {{a: {cost.a}, b: {cost.b}, c: {cost.c}, d: {cost.d}}}", soft_wrap=True)
    console.print(
        f"{name}: {found.equations} equations, {found.left_out} requests left out, median error {found.error:.2%}"
        + ("" if found.whole else "; too few ended before the last began, so others may have run beside these"),
        soft_wrap=True,
    )
    if agreement is None:
        console.print("no simulation: say what the engine can hold with --preset or --pool-tokens", soft_wrap=True)
        return
    table = Table("", "simulated", "measured", "error", title=f"all {agreement.requests} requests")
    for key, title in PAIRS.items():
        simulated, measured = getattr(agreement, key)
        table.add_row(title, f"{simulated:.4g}", f"{measured:.4g}", f"{simulated / measured - 1:+.1%}")
    console.print(table)
    console.print(f"first tokens in the same order: {agreement.same_order:.1%}; preemptions: {agreement.preemptions}")
