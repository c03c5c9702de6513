"""How long prompts and answers are: tokens, at least 1, with a given mean."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log
from random import Random

from fairq.core.errors import UnknownName

Draw = Callable[[Random, float], int]
TAIL, CEILING = 1.5, 64  # Pareto's exponent; its largest value over its smallest: the mean stays finite and known


def fixed(chance: Random, mean: float) -> int:
    return round(mean)


def uniform(chance: Random, mean: float) -> int:
    """From 1 to twice the mean."""
    return chance.randint(1, max(1, round(2 * mean) - 1))


def geometric(chance: Random, mean: float) -> int:
    """Every token is the last with the same probability: no memory, a variation of about 1."""
    return 1 + int(log(1 - chance.random()) / log(1 - 1 / mean)) if mean > 1 else 1


def lognormal(chance: Random, mean: float) -> int:
    """Shape 1: what chat traffic looks like, most short, a few long."""
    return max(1, round(mean * exp(chance.gauss(0, 1) - 0.5)))


def pareto(chance: Random, mean: float) -> int:
    """A heavy tail, bounded: exponent 1.5, from the smallest to 64 times that."""
    return max(1, round(mean / pareto_mean() * bounded_pareto(chance.random())))


def bounded_pareto(share: float) -> float:
    """The value in 1..CEILING that `share` of all stay below."""
    return float((1 - share * (1 - CEILING**-TAIL)) ** (-1 / TAIL))


def pareto_mean() -> float:
    """Of `bounded_pareto` over uniform shares."""
    return float(TAIL / (TAIL - 1) * (1 - CEILING ** (1 - TAIL)) / (1 - CEILING**-TAIL))


LENGTHS: dict[str, Draw] = {draw.__name__: draw for draw in (fixed, uniform, geometric, lognormal, pareto)}


def lengths(name: str) -> Draw:
    """Raises UnknownName."""
    if name not in LENGTHS:
        raise UnknownName("lengths", name, LENGTHS)
    return LENGTHS[name]
