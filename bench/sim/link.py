"""Packets per second of fairq's link beside ns.py 0.4.3's, and what more flows and a trace cost.

ns.py has no SFQ: its WFQ, the one with tags, stands in.
"""

import sys

from bench.sim.race import HERE, peer, race, verdict

PACKETS = 60_000
FEW, MANY = 16, 1_000

AGAINST = {"wfq": ("WFQServer", 2.5), "drr": ("DRRServer", 6.0), "sfq": ("WFQServer", 6.0)}
"""Policy -> the peer's scheduler, and how many times its packets per second are asked for."""

RECORDED = {8: 2.0, MANY: 3.0}
"""Flows -> how many times as long a run with a trace may take."""

Side = tuple[str, int, str]
"""Who and what, how many flows, "events" or nothing."""


def main(rounds: int) -> None:
    python = peer("ns.py==0.4.3")
    sides: list[Side] = [(name, flows, "") for name in AGAINST for flows in (FEW, MANY)]
    sides += [("sfq", flows, record) for flows in RECORDED for record in ("", "events")]
    own = [sys.executable, "-m", "bench.sim.fairq_link"]
    commands: dict[Side, list[str]] = {
        (name, flows, record): [*own, name, str(flows), str(PACKETS), *filter(None, [record])]
        for name, flows, record in sides
    }
    if python:
        for server in ("WFQServer", "DRRServer"):
            for flows in (FEW, MANY):
                commands[server, flows, ""] = [python, str(HERE / "ns_link.py"), server, str(flows), str(PACKETS)]
    found = race(commands, rounds)
    for name, (server, factor) in AGAINST.items():
        for flows in (FEW, MANY):
            if python:
                ratio = found[server, flows, ""].seconds / found[name, flows, ""].seconds
                verdict(f"{name}, {flows} flows: packets/s beside ns.py's {server}", ratio, least=factor)
    for name in AGAINST:
        ratio = found[name, MANY, ""].seconds / found[name, FEW, ""].seconds
        verdict(f"{name}: {MANY} flows, times as long as {FEW}", ratio, most=1.5)
    for flows, limit in RECORDED.items():
        ratio = found["sfq", flows, "events"].seconds / found["sfq", flows, ""].seconds
        verdict(f"sfq, {flows} flows: with a trace, times as long", ratio, most=limit)
