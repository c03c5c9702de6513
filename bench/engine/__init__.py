"""The engine simulator: jumping beside stepping, load, tenants, memory, and the same requests in other simulators.

    python -m bench engine [--rounds 3] [--requests 3000]

CPU time of one run in a fresh process, medians over interleaved rounds. VTC, 1,000 tenants, 16-token blocks, chunked
prefill. Beside sched-sim 0.2.1 and Dynamo's Rust mocker all simulate requests in memory, and make their reports.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from statistics import median

from bench.peers import environment
from rich.console import Console

PEERS = {  # package: its program, and how many times its requests per second are asked of fairq
    "sched-sim==0.2.1": ("sched_sim_engine.py", 20),
    "ai-dynamo-runtime==1.6.1": ("dynamo_mocker.py", 3),
}
LOADS = (6, 10, 20)  # requests per second

Side = tuple[str, int, int, int]
"""A kind of `fairq_engine`, or a peer's package; load, tenants, requests."""


def run(side: Side) -> tuple[float, float]:
    """CPU seconds, and MiB that the run took at most beyond what the program took before."""
    kind, *numbers = side
    program = [sys.executable, "-m", "bench.engine.fairq_engine", kind]
    if kind in PEERS:
        program = [str(environment(kind)), str(Path(__file__).with_name(PEERS[kind][0]))]
    told = subprocess.run([*program, *map(str, numbers)], check=True, capture_output=True, text=True).stdout.split()
    return float(told[0]), float(told[1])


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench engine", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds (3)")
    parser.add_argument("--requests", type=int, default=3_000, help="of each run but the one for memory (3,000)")
    given = parser.parse_args(arguments)
    out, n = Console(highlight=False), given.requests
    peers = []
    for package in PEERS:
        try:
            environment(package)
        except subprocess.CalledProcessError:
            out.print(f"{package}: does not install here")
        else:
            peers.append(package)
    sides: list[Side] = [(kind, load, 1_000, n) for load in LOADS for kind in ("jump", "step")]
    sides += [("jump", 10, tenants, n) for tenants in (100, 10_000)]
    sides += [("whole", 10, 1_000, n), ("report", 10, 1_000, n)]
    sides += [(package, 10, 1_000, n) for package in peers]
    spent: dict[Side, list[float]] = {side: [] for side in sides}
    for _ in range(given.rounds):
        for side in sides:
            spent[side].append(run(side)[0])
    middle = {side: median(times) for side, times in spent.items()}
    for load in LOADS:
        jump, step = (middle[kind, load, 1_000, n] for kind in ("jump", "step"))
        out.print(f"load {load}: {n / jump:,.0f} requests/s, {step / jump:.1f}x stepping (at least 4)")
    ratio = middle["jump", 6, 1_000, n] / middle["jump", 20, 1_000, n]
    out.print(f"load 20: {ratio:.2f}x the requests/s of load 6 (at least 0.6)")
    ratio = middle["jump", 10, 10_000, n] / middle["jump", 10, 100, n]
    out.print(f"10,000 tenants: {ratio:.2f}x the time of 100 (at most 2.5)")
    whole, report = middle["whole", 10, 1_000, n], middle["report", 10, 1_000, n]
    out.print(f"the report costs {report / (whole - report):.2f}x reading and simulating (at most 1)")
    ours = middle["jump", 10, 1_000, n] + report
    for package in peers:
        ratio = middle[package, 10, 1_000, n] / ours
        out.print(f"{ratio:.1f}x the requests/s of {package} (at least {PEERS[package][1]})")
    many = 100_000
    (seconds, mib), (report, _), (pictures, _) = (
        run((kind, 10, 1_000, many)) for kind in ("whole", "report", "pictures")
    )
    out.print(f"{many:,} requests: {mib:.0f} MiB more than before (at most 150), {many / seconds:,.0f} requests/s")
    out.print(f"their report and picture cost {pictures / (seconds - report):.2f}x reading and simulating (at most 1)")
