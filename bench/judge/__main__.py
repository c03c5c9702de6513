"""How fairq shares real engines, in numbers: `python -m bench.judge`.

1. The 27 recorded clients through `fairq serve` into llama.cpp with 8 slots, several times faster than it can serve
   them: under sfq with forward settlement, and under fcfs.
2. Tenants whose estimates are wrong, against an honest one, under both settlements.
"""

from __future__ import annotations

import argparse

from bench.judge import estimates, overload
from rich.console import Console
from rich.table import Table
from tests.llama.server import LlamaServer

WIDE = 160  # columns of a file or pipe, which has no width of its own
out = Console(highlight=False, soft_wrap=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.judge", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--part", choices=["trace", "estimates"], help="only this one")
    parser.add_argument("--requests", type=int, help="only the first so many of the trace (all 1,500)")
    parser.add_argument("--overload", type=float, default=3.5, help="offered load over the engine's capacity (3.5)")
    args = parser.parse_args()
    if not out.is_terminal:
        out.width = WIDE
    if args.part != "estimates":
        judge_trace(args.requests, args.overload)
    if args.part != "trace":
        judge_estimates()


def judge_trace(limit: int | None, factor: float) -> None:
    server = LlamaServer(slots=overload.SLOTS)
    try:
        llama = server.wait_ready()
        offered = overload.offer(llama, limit, factor)
        out.print(
            f"llama.cpp with {overload.SLOTS} slots serves {offered.capacity:,.0f} cost units/s (closed loop, without "
            f"fairq); {offered.requests:,} requests at {offered.speed:.1f} times their speed offer "
            f"{offered.offered:,.0f}/s: {offered.offered / offered.capacity:.1f} times as much."
        )
        fair = overload.run(llama, offered, "sfq", "forward")
        first_come = overload.run(llama, offered, "fcfs", "fixed")
    finally:
        server.stop()
    for found in (fair, first_come):
        outcomes = ", ".join(f"{outcome} {count:,}" for outcome, count in found.outcomes.items())
        out.print(
            f"\n[bold]{found.policy}, {found.settlement}[/]: {found.seconds:.1f} s; {outcomes}; "
            + _verdict(found.clean, found.identical)
        )
        out.print(_pairs(found))
        out.print(
            f"Charged service of any pair differed by {found.gap:,.0f} where 2q was {found.bound:,.0f}, at worst."
        )
    for name, mine, theirs in (
        ("lighter half of the tenants", fair.light_wait, first_come.light_wait),
        (f"all but the {overload.HEAVIEST} heaviest", fair.small_wait, first_come.small_wait),
    ):
        out.print(f"Median wait, {name}: {mine:.3f} s, under fcfs {theirs:.3f} s: {mine / theirs:.1%} of it")
    out.print(f"\nThe longest wait in the lighter half, explained:\n{fair.story}", markup=False)


def _pairs(found: overload.Outcome) -> Table:
    table = Table(box=None, pad_edge=False)
    titles = ("both backlogged", "seconds", "charged", "ratio", "widest gap", "actual", "ratio")
    for title in titles:
        table.add_column(title, justify="left" if title == titles[0] else "right")
    for pair in found.pairs:
        charged, actual = (" : ".join(f"{value:,.0f}" for value in side) for side in (pair.charged, pair.actual))
        table.add_row(
            *(pair.tenants, f"{pair.seconds:.1f}", charged, f"{pair.charged_ratio:.3f}", f"{pair.gap:,.0f}"),
            *(actual, f"{pair.ratio:.3f}"),
        )
    return table


def _verdict(clean: bool, identical: bool) -> str:
    return f"audit {'clean' if clean else 'NOT CLEAN'}, replay {'identical' if identical else 'DIFFERENT'}"


def judge_estimates() -> None:
    table = Table(box=None, pad_edge=False)
    titles = (
        "tenant against an honest one",
        "settlement",
        "charged",
        "actual tokens",
        "ratio",
        "apart",
        "bound",
        "ledger",
    )
    for title in titles:
        table.add_column(title, justify="left" if title in (*titles[:2], titles[-1]) else "right")
    for found in estimates.judge():
        charged, actual = (" : ".join(f"{value:,.0f}" for value in side) for side in (found.charged, found.actual))
        table.add_row(
            *(found.name, found.settlement, charged, actual, f"{found.ratio:.3f}"),
            *(f"{found.apart:,.0f}", f"{found.bound:,.0f}" if found.settlement == "forward" else "none"),
            _verdict(found.clean, found.identical),
        )
    out.print(f"\n{estimates.SLOTS} slots, {estimates.REQUESTS} requests of each tenant, while both are backlogged:")
    out.print(table)


if __name__ == "__main__":
    main()
