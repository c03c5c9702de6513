"""Packets per second of fairq's link beside ns.py 0.4.3's, and what more flows and a trace cost."""

import subprocess
import sys
from pathlib import Path
from statistics import median

from bench.peers import environment
from rich.console import Console
from rich.table import Table

PACKETS = 60_000
FEW, MANY = 16, 1_000
PEER = Path(__file__).with_name("ns_link.py")

AGAINST = {"wfq": ("WFQServer", 2.5), "drr": ("DRRServer", 6.0), "sfq": ("WFQServer", 6.0)}
"""Policy -> the peer's scheduler, and how many times its packets per second are asked for. ns.py has no SFQ: the one
with tags stands in."""

Side = tuple[str, int, str]
"""Who and what, how many flows, "record" or nothing."""


def seconds(side: Side, python: Path) -> float:
    """CPU time of one run, in a fresh process."""
    name, flows, record = side
    arguments = [name, str(flows), str(PACKETS), *filter(None, [record])]
    peer = name.endswith("Server")
    command = [str(python), str(PEER)] if peer else [sys.executable, "-m", "bench.sim.fairq_link"]
    return float(subprocess.run([*command, *arguments], check=True, capture_output=True, text=True).stdout)


def main(rounds: int) -> None:
    python = environment("ns.py==0.4.3")
    sides: list[Side] = [(name, flows, "") for name in AGAINST for flows in (FEW, MANY)]
    sides += [(peer, flows, "") for peer in ("WFQServer", "DRRServer") for flows in (FEW, MANY)]
    sides += [("sfq", flows, "events") for flows in (8, MANY)] + [("sfq", 8, "")]
    spent: dict[Side, list[float]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side in sides:
            spent[side].append(seconds(side, python))
    middle = {side: median(times) for side, times in spent.items()}

    table = Table("policy", "flows", "packets/s", "beside ns.py", "asked for", title=f"link, {PACKETS} packets")
    for name, (peer, factor) in AGAINST.items():
        for flows in (FEW, MANY):
            own, other = middle[name, flows, ""], middle[peer, flows, ""]
            table.add_row(name, str(flows), f"{PACKETS / own:,.0f}", f"{other / own:.1f}x {peer}", f"{factor}x")
    out = Console(highlight=False)
    out.print(table)
    for name in AGAINST:
        ratio = middle[name, MANY, ""] / middle[name, FEW, ""]
        out.print(f"{name}: {MANY} flows take {ratio:.2f} times as long as {FEW} (at most 1.5)")
    for flows, limit in ((8, 2), (MANY, 3)):
        ratio = middle["sfq", flows, "events"] / middle["sfq", flows, ""]
        out.print(f"sfq with a trace, {flows} flows: {ratio:.2f} times as long (at most {limit})")
