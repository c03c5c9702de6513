"""A trace in numbers: how long, how bursty, how large, whose, and how much of it a prefix cache could answer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from statistics import fmean, quantiles

from msgspec import Struct

from fairq.traces.request import Request


class Spread(Struct, frozen=True):
    """Smallest, mean, percentiles (interpolated, as numpy's default and most papers' tables) and largest."""

    min: float
    mean: float
    p50: float
    p90: float
    p99: float
    max: float


class Client(Struct, frozen=True):
    requests: int
    input_tokens: int
    output_tokens: int


class Blocks(Struct, frozen=True):
    """Prefix blocks. hit_ratio: the share of all blocks that a cache without limit has seen before, in trace order."""

    total: int
    unique: int
    hit_ratio: float


class Measurements(Struct, frozen=True):
    """What the recording server did: refused requests, time to first token and latency of the others (s)."""

    refused: int
    ttft: Spread | None
    latency: Spread | None


class Description(Struct, frozen=True):
    """span: seconds from first to last arrival. cv: standard deviation / mean of the gaps between arrivals
    (population; 1 for Poisson arrivals, more when they come in bursts), None for fewer than two gaps or no time."""

    requests: int
    span: float
    cv: float | None
    input_tokens: Spread
    output_tokens: Spread
    clients: dict[str, Client]
    blocks: Blocks | None
    measured: Measurements | None


def describe(requests: Iterable[Request]) -> Description | None:
    """None when there is no request. Clients come largest number of requests first."""
    arrivals: list[float] = []
    inputs: list[int] = []
    outputs: list[int] = []
    counts, read, written = Counter[str](), Counter[str](), Counter[str]()
    seen: set[int] = set()
    total = 0
    measured = refused = 0
    ttfts: list[float] = []
    latencies: list[float] = []
    for request in requests:
        arrivals.append(request.arrival)
        inputs.append(request.input_tokens)
        outputs.append(request.output_tokens)
        counts[request.client] += 1
        read[request.client] += request.input_tokens
        written[request.client] += request.output_tokens
        total += len(request.blocks)
        seen.update(request.blocks)
        if request.measured:
            measured += 1
            refused += request.measured.refused
            ttfts += [request.measured.ttft] if request.measured.ttft is not None else []
            latencies += [request.measured.latency] if request.measured.latency is not None else []
    if not arrivals:
        return None
    return Description(
        requests=len(arrivals),
        span=arrivals[-1] - arrivals[0],
        cv=_variation([later - earlier for earlier, later in pairwise(arrivals)]),
        input_tokens=_spread(inputs),
        output_tokens=_spread(outputs),
        clients={name: Client(count, read[name], written[name]) for name, count in counts.most_common()},
        blocks=Blocks(total, len(seen), 1 - len(seen) / total) if total else None,
        measured=Measurements(refused, _spread(ttfts) if ttfts else None, _spread(latencies) if latencies else None)
        if measured
        else None,
    )


def _spread(values: list[int] | list[float]) -> Spread:
    # Two copies at least, as quantiles demands; of a single value they are that value.
    cuts = quantiles(values if len(values) > 1 else values * 2, n=100, method="inclusive")
    return Spread(min(values), fmean(values), cuts[49], cuts[89], cuts[98], max(values))


def _variation(gaps: list[float]) -> float | None:
    if len(gaps) < 2 or not (average := math.fsum(gaps) / len(gaps)):
        return None
    return math.sqrt(math.fsum((gap - average) ** 2 for gap in gaps) / len(gaps)) / average
