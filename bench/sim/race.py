"""A race: every side is a command that prints the CPU seconds of its run, and whatever else it found, on one line."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeVar

from bench.peers import environment
from rich.console import Console

Side = TypeVar("Side")
HERE = Path(__file__).parent
out = Console(highlight=False)


class Result(NamedTuple):
    """seconds: the median; told: what was printed after them, the same in all rounds"""

    seconds: float
    told: tuple[str, ...]


def race(commands: Mapping[Side, Sequence[str]], rounds: int) -> dict[Side, Result]:
    """Each side once in every round, in a fresh process."""
    taken: dict[Side, list[list[str]]] = {side: [] for side in commands}
    for _ in range(rounds):
        for side, command in commands.items():
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            taken[side].append(done.stdout.split())
    return {
        side: Result(median(float(seconds) for seconds, *_ in lines), tuple(lines[0][1:]))
        for side, lines in taken.items()
    }


def peer(package: str) -> str | None:
    """The interpreter of an environment that has `package`; None, and it says so, where it does not install."""
    try:
        return str(environment(package))
    except subprocess.CalledProcessError as error:
        reason = (error.stderr or b"").decode(errors="replace").strip().rpartition("\n")[2]
        out.print(f"{package} is left out: it does not install here ({reason})", markup=False)
        return None


def verdict(what: str, ratio: float, least: float | None = None, most: float | None = None) -> None:
    """One line: a ratio, and its limit beside it."""
    limit = f"at least {least:g}" if least is not None else f"at most {most:g}"
    missed = (least is not None and ratio < least) or (most is not None and ratio > most)
    out.print(f"{what}: {ratio:.2f} ({limit})" + (" MISSED" if missed else ""), markup=False)
