"""EEVDF with thousands of tasks, beside cpusched-ash-win-cpu, and how it grows with their number."""

import sys

from bench.sim.race import HERE, out, peer, race, verdict

FEW, MANY = 3_000, 30_000


def main(rounds: int) -> None:
    commands = {
        ("fairq", tasks): [sys.executable, "-m", "bench.sim.fairq_cpu", "eevdf", str(tasks)] for tasks in (FEW, MANY)
    }
    python = peer("cpusched-ash-win-cpu==1.0.1")
    if python:
        commands["cpusched", FEW] = [python, str(HERE / "cpusched_eevdf.py"), str(FEW)]
    found = race(commands, rounds)
    few, many = found["fairq", FEW], found["fairq", MANY]
    out.print(f"eevdf: {FEW} tasks in {few.seconds:.3f} s, {MANY} in {many.seconds:.3f} s")
    if python:
        other = found["cpusched", FEW]
        if other.told != few.told:
            out.print(f"eevdf: the last task ends at {few.told[0]}, the peer's at {other.told[0]}: DIFFERENT")
        verdict(f"eevdf, {FEW} tasks: as fast as the peer, times", other.seconds / few.seconds, least=50)
    verdict(f"eevdf: {MANY} tasks, times as long as {FEW}", many.seconds / few.seconds, most=14)
