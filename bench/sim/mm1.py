"""The event loop: one queue, one server (M/M/1), beside SimPy 4 with the same arrivals and service times."""

import sys

from bench.sim.race import HERE, out, peer, race, verdict

CUSTOMERS = 60_000


def main(rounds: int) -> None:
    commands = {"fairq": [sys.executable, "-m", "bench.sim.fairq_mm1", str(CUSTOMERS)]}
    python = peer("simpy==4.1.1")
    if python:
        commands["simpy"] = [python, str(HERE / "simpy_mm1.py"), str(CUSTOMERS)]
    found = race(commands, rounds)
    own = found["fairq"]
    out.print(f"M/M/1: {CUSTOMERS / own.seconds:,.0f} customers/s, time in the system {own.told[0]} in all")
    if python:
        other = found["simpy"]
        if other.told != own.told:
            out.print(f"M/M/1: SimPy's customers spend {other.told[0]}: DIFFERENT")
        verdict("M/M/1: customers/s beside SimPy's", other.seconds / own.seconds, least=4)
