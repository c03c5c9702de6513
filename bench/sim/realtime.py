"""Jobs per second of periodic tasks under EDF and RM, beside SimSo 0.8.5; both must count the same misses."""

import sys

from bench.sim.race import HERE, out, peer, race, verdict

ROUNDS = 40  # hyperperiods
FACTOR = 30.0


def main(rounds: int) -> None:
    policies = ("edf", "rm")
    commands = {
        ("fairq", name): [sys.executable, "-m", "bench.sim.fairq_cpu", "periodic", name, str(ROUNDS)]
        for name in policies
    }
    python = peer("simso==0.8.5")
    if python:
        for name in policies:
            commands["simso", name] = [python, str(HERE / "simso_periodic.py"), name, str(ROUNDS)]
    found = race(commands, rounds)
    for name in policies:
        own = found["fairq", name]
        jobs, misses = own.told
        out.print(f"{name}: {jobs} jobs, {misses} deadlines missed, {int(jobs) / own.seconds:,.0f} jobs/s")
        if python:
            other = found["simso", name]
            if other.told != own.told:
                out.print(f"{name}: SimSo counts {other.told[0]} jobs, {other.told[1]} deadlines missed: DIFFERENT")
            verdict(f"{name}: jobs/s beside SimSo's", other.seconds / own.seconds, least=FACTOR)
