"""Simulators beside those of others: CPU time of the same work, as a ratio of medians over interleaved rounds.

    python -m bench sim [link ...] [--rounds 9]

Each side runs in a process of its own, and each peer in an environment of its own that the bench makes.
"""

import argparse
from importlib import import_module

PARTS = ("link", "realtime", "eevdf", "mm1")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench sim", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds (9): bursts of others last")
    given = parser.parse_args(arguments)
    for part in given.parts or PARTS:
        if part not in PARTS:
            parser.error(f"part = {part!r}: must be one of {', '.join(PARTS)}")
        import_module(f"bench.sim.{part}").main(given.rounds)
