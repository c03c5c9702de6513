"""The report of `fairq load` for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from fairq.load.console import Charged
from fairq.load.session import Report
from fairq.load.tally import Fairness, PairTally, TenantTally
from fairq.measure.latency import Summary

BACKLOG = {
    "waits": "Backlogged: while the target said that a request of the tenant was queued.",
    "outstanding": "Backlogged: approximated by outstanding requests, for no answer says how long it was queued.",
}


def show(report: Report) -> None:
    """Print it: the run, a line per tenant, and sharing while jointly backlogged."""
    out = Console(highlight=False)
    if not out.is_terminal:
        out.width = 200  # a file or pipe has no width that a table must fit in
    late = f"; sent late by at most {report.late.max:.3f} s" if report.late and report.late.max > 0.05 else ""
    out.print(
        f"{report.sent} of {report.planned} requests of {report.trace} at {report.speed:g} times its speed, "
        f"{report.seconds:.1f} s, to {report.target} (model {report.model}){late}"
        + ("; interrupted" if report.interrupted else ""),
        soft_wrap=True,
    )
    if report.sent:
        out.print(_tenants(report))
        out.print(
            "[dim]Times p50 / p99 in seconds, TPOT in milliseconds. TTFT is from sending and contains the wait. "
            "Service: normalized, (alpha * prompt + beta * completion tokens) / weight.[/]",
            soft_wrap=True,
        )
        for outcome, detail in report.details.items():
            out.print(f"{outcome}, for example: {detail}", soft_wrap=True, markup=False)
        _show_fairness(out, report.fairness)
        if report.charged:
            _show_charged(out, report.charged)


def _tenants(report: Report) -> Table:
    charged = any(tenant.charged is not None for tenant in report.tenants)
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(f"tenant ({report.tenants_by})", no_wrap=True)
    titles = ["weight", "requests", "completed", "wait", "TTFT", "TPOT", "prompt", "completion", "service"]
    for title in titles + (["charged"] if charged else []):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("other outcomes")
    for tenant in report.tenants:
        table.add_row(*_row(tenant, charged))
    table.add_section()
    table.add_row(*_row(report.total, charged, "all"))
    return table


def _row(tenant: TenantTally, charged: bool, name: str | None = None) -> list[str]:
    def times(found: Summary | None, scale: float = 1) -> str:
        return f"{found.p50 * scale:.3g} / {found.p99 * scale:.3g}" if found else ""

    others = {outcome: count for outcome, count in tenant.outcomes.items() if outcome != "completed"}
    return [
        name or tenant.tenant,
        f"{tenant.weight:g}" if name is None else "",
        f"{tenant.requests:,}",
        f"{tenant.outcomes.get('completed', 0):,}",
        times(tenant.wait),
        times(tenant.ttft),
        times(tenant.tpot, 1000),
        f"{tenant.prompt_tokens:,}",
        f"{tenant.completion_tokens:,}",
        f"{tenant.service:,.0f}" if name is None else "",
        *([f"{tenant.charged:,.0f}" if tenant.charged is not None else ""] if charged else []),
        ", ".join(f"{outcome} {count:,}" for outcome, count in others.items()),
    ]


def _show_charged(out: Console, found: Charged) -> None:
    broken = "none of them broke" if not found.violations else f"[red]{found.violations:,} broke[/]"
    out.print(f"\nThe gateway checked each of its {found.decisions:,} decisions: {broken} its bounds.", soft_wrap=True)
    if found.worst_margin is not None:
        left, reached = (
            found.worst_margin,
            " (reached, not crossed: every tenant that sends the largest request gets there)",
        )
        closest = f"The closest call left {left:,.1f} cost units to the bound{'' if left else reached}."
        out.print(closest if left >= 0 else f"The worst went {-left:,.1f} cost units beyond.", soft_wrap=True)
    if found.jain_charged is not None and found.jain_actual is not None:
        out.print(
            f"Jain's index while tenants waited together, as the gateway counts: {found.jain_charged:.4f} of what it "
            f"charged, {found.jain_actual:.4f} of what was used.",
            soft_wrap=True,
        )


def _show_fairness(out: Console, found: Fairness) -> None:
    out.print(f"\n{BACKLOG[found.backlog]}", soft_wrap=True)
    if found.jain is None:
        out.print("No two tenants were jointly backlogged: there is nothing to compare.", soft_wrap=True)
        return
    if found.jain_heaviest is not None:
        out.print(
            f"Jain's index {found.jain_heaviest:.4f} of the {len(found.heaviest)} heaviest tenants over the "
            f"{found.seconds_heaviest:.1f} s in which all of them were backlogged",
            soft_wrap=True,
        )
    out.print(
        f"Jain's index {found.jain:.4f}: mean over {found.sets:,} sets of jointly backlogged tenants "
        f"({found.intervals:,} intervals), weighted by service",
        soft_wrap=True,
    )
    out.print("[dim]1: all got the same; 1/n: one of n got everything. A few requests cannot be shared evenly.[/]")
    _show_pairs(out, found.pairs, 2 * found.largest)


def _show_pairs(out: Console, pairs: Sequence[PairTally], bound: float) -> None:
    """`bound`: 2q, by which two tenants may differ at any moment because no request is cut in two."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    titles = (
        "pair",
        "both backlogged (s)",
        "service of the one",
        "of the other",
        "ratio",
        "fair up to",
        "largest gap",
        "2q",
    )
    for title in titles:
        table.add_column(title, justify="left" if title == "pair" else "right")
    short = 0
    for pair in pairs:
        least = min(pair.service)
        short += least < bound
        table.add_row(
            " / ".join(pair.tenants),
            f"{pair.seconds:.1f}",
            *(f"{service:,.0f}" for service in pair.service),
            "" if pair.ratio is None else f"{pair.ratio:.3f}",
            "too short" if least < bound else f"{1 + bound / least:.3f}",
            f"{pair.gap:,.0f}",
            f"{bound:,.0f}",
        )
    out.print(table)
    out.print(
        "[dim]2q: twice the largest request. So far apart two tenants may come however fairly they are served, as no "
        "request is cut in two; a ratio is therefore fair up to 1 + 2q / the smaller service. The promise is about "
        "what is charged; what is used follows in the long run under settlement forward.[/]",
        soft_wrap=True,
    )
    if short:
        many = "One pair was" if short == 1 else f"{short} pairs were"
        out.print(
            f"{many} backlogged together for too short a time to judge by the ratio (the smaller service is below 2q): "
            "send more requests (--limit) or faster (--speed).",
            soft_wrap=True,
        )
