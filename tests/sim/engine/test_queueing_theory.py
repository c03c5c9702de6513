"""Engines that are textbook queues have the response times of the textbook, within the statistical error.

With one sequence at a time, or k whose iterations cost the same however many there are, a slot is a server and an
answer of geometric length an exponential service. If iterations take time in proportion to the batch, the engine is a
processor shared equally, whose mean response does not depend on the law of the lengths.
"""

from math import factorial, log, sqrt
from random import Random
from statistics import fmean, stdev

import pytest

from fairq.sim.engine.cost import Cost, Limits
from fairq.sim.engine.simulate import simulate

TOKEN = 100_000  # ns of an iteration, or of each sequence in it
MEAN = 1_000  # tokens: a mean service of 0.1 s, and steps of time a thousand times finer
NS = 1_000_000_000
COUNT, BATCHES = 12_000, 20


def geometric(chance: Random) -> int:
    return 1 + int(log(1 - chance.random()) / log(1 - 1 / MEAN))


def two_lengths(chance: Random) -> int:
    """Nine in ten are short, one is long: a variance eight times that of the exponential law."""
    return 200 if chance.random() < 0.9 else 8_200


def responses(load: float, cost: Cost, slots: int, draw, servers: int = 1, seed: int = 1) -> list[float]:  # type: ignore[no-untyped-def]
    """Seconds, in order of arrival; `load` is of each server."""
    chance, at, requests = Random(seed), 0.0, []
    for _ in range(COUNT):
        at += chance.expovariate(load * servers / (MEAN * TOKEN / NS))
        requests.append((at, 1, draw(chance)))
    limits = Limits(pool_tokens=10**9, max_sequences=slots, step_tokens=10**6)
    calls, _ = simulate(requests, cost, limits)
    return [((call.finish or 0) - call.arrival) / NS for call in calls]


def agrees(times: list[float], formula: float) -> bool:
    """Within four standard errors, which batch means give though neighbours are correlated, and these are small."""
    times = times[COUNT // 20 :]  # the empty beginning
    size = len(times) // BATCHES
    means = [fmean(times[i * size : (i + 1) * size]) for i in range(BATCHES)]
    error = stdev(means) / sqrt(BATCHES)
    assert error < 0.1 * formula, (error, formula)
    return abs(fmean(means) - formula) <= 4 * error


def erlang_c(servers: int, load: float) -> float:
    """The probability of waiting in M/M/k."""
    offered = servers * load
    waiting = offered**servers / factorial(servers) / (1 - load)
    return waiting / (sum(offered**n / factorial(n) for n in range(servers)) + waiting)


SERVICE = MEAN * TOKEN / NS


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_one_sequence_at_a_time_is_m_m_1(load: float) -> None:
    found = responses(load, Cost(a=TOKEN, b=0, c=0, d=0), 1, geometric)
    assert agrees(found, SERVICE / (1 - load))


@pytest.mark.parametrize(("servers", "load"), [(2, 0.7), (8, 0.85)])
def test_k_sequences_that_do_not_slow_each_other_are_m_m_k(servers: int, load: float) -> None:
    found = responses(load, Cost(a=TOKEN, b=0, c=0, d=0), servers, geometric, servers)
    assert agrees(found, SERVICE + erlang_c(servers, load) * SERVICE / (servers * (1 - load)))


@pytest.mark.parametrize("draw", [geometric, two_lengths])
@pytest.mark.parametrize("load", [0.4, 0.7])
def test_a_batch_that_shares_one_processor_is_m_g_1_ps(draw, load: float) -> None:  # type: ignore[no-untyped-def]
    found = responses(load, Cost(a=1, b=TOKEN, c=TOKEN, d=0), 10**6, draw)
    assert agrees(found, SERVICE / (1 - load))


def test_the_same_lengths_one_at_a_time_are_not() -> None:
    """Pollaczek and Khinchine: first come first served suffers from the variance that sharing does not see."""
    found = responses(0.4, Cost(a=TOKEN, b=0, c=0, d=0), 1, two_lengths)
    square = (0.9 * 200**2 + 0.1 * 8_200**2) * (TOKEN / NS) ** 2
    rate = 0.4 / SERVICE
    assert agrees(found, SERVICE + rate * square / 2 / (1 - 0.4))
    assert not agrees(found, SERVICE / (1 - 0.4))
