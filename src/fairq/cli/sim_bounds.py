"""The theorems' bounds beside the worst that was seen, for people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairq.sim.engine.bounds import Bound
from fairq.sim.engine.run import EngineRun

if TYPE_CHECKING:
    from rich.console import Console


def print_bounds(console: "Console", runs: Sequence[EngineRun]) -> None:
    """Nothing where no policy has any."""
    if not any(run.bounds for run in runs):
        return
    from rich.markup import escape
    from rich.table import Table

    table = Table("policy", "bound", "worst", "limit", "", title="bounds, weighted tokens")
    for run in runs:
        for index, bound in enumerate(run.bounds):
            worst, limit = ("-" if value is None else f"{value:,.0f}" for value in (bound.worst, bound.limit))
            table.add_row("" if index else escape(run.label), bound.name, worst, limit, told(bound))
    console.print(table)


def told(bound: Bound) -> str:
    if bound.holds is None:
        return f"not promised: {bound.unless}"
    held = "holds" if bound.holds else "BROKEN"
    share = f", at {bound.worst / bound.limit:.0%} of it" if bound.worst is not None and bound.limit else ""
    return f"{held}{share}" + (f"; of the {bound.among} clients that ask for most" if bound.among else "")
