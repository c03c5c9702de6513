"""The coefficients of an engine's iterations, from the times at which its requests got their first and last token.

Nobody has timed the iterations, but every request counts them: between its first and its last token there is one for
each of its other tokens. Over that time the prompt tokens that were computed, the tokens that others made and the
context that all of them attended to follow from everybody's times, so each request is an equation

    last - first = a * iterations + b * prefilled + c * batch + d * context        (sums over those iterations)

and least squares of the relative errors, with no coefficient below 0, solves them. A slight ridge makes coefficients
share what the recording cannot tell apart. Requests are left out that

* end after the last one of the file was scheduled: others, which are not in the file, may have run beside them;
* got clearly fewer tokens per second than the median of those that ran with them: they were preempted. Not where the
  limits say that nobody is: then they only waited for more prompts.

An engine that computes prompts in iterations of their own (`prefill` = first) stops everybody for these; each is one
iteration more. Requests that got their first token together shared one.

What the engine does besides (a preempted prompt that is found in the cache) is in no equation. So, where the engine's
limits are known, one factor of all four is found by simulating the same requests, until their mean response is that
measured.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from math import inf
from statistics import fmean, median

from msgspec import Struct
from msgspec.structs import replace

from fairq.core.errors import FairqError
from fairq.measure.latency import tpot
from fairq.sim.engine.cost import Cost, Limits
from fairq.sim.engine.kv import longest
from fairq.sim.engine.least_squares import least_squares
from fairq.sim.engine.simulate import simulate
from fairq.traces import Request

NS = 1_000_000_000
SLOW = 0.93  # of the median rate of its neighbours: below, a request was preempted
MOST = 400  # equations; more requests than that are sampled evenly
FEWEST = 8  # equations: two for each unknown
RIDGE = (
    2e-4  # where batches were always full nothing tells a from c and d: they share, or short batches are foretold badly
)


class Timing(Struct, frozen=True):
    """Of a request: lengths in tokens, times in seconds."""

    prompt: int
    output: int
    queued: float
    scheduled: float
    first: float
    last: float

    @property
    def rate(self) -> float:
        """Tokens per second after the first."""
        return (self.output - 1) / (self.last - self.first)


class Fit(Struct, frozen=True):
    """equations  requests that were used; left_out: preempted, or not alone in the file
    error      median relative error of a request's time between its first and last token, before the factor
    whole      False: too few ended early enough, so all were used, though others may have run beside them
    factor     by which all coefficients were multiplied so that the simulation agrees; 1 where none was run
    """

    cost: Cost
    equations: int
    left_out: int
    error: float
    whole: bool = True
    factor: float = 1.0


class Agreement(Struct, frozen=True):
    """Pairs are (simulated, measured), seconds; `same_order`: share of the places in the order of first tokens that
    the same request takes."""

    requests: int
    makespan: tuple[float, float]
    ttft: tuple[float, float]
    tpot: tuple[float, float]
    same_order: float
    preemptions: int


def timings(requests: Iterable[Request], name: str = "the trace") -> list[Timing]:
    """Of the requests that were served. Raises FairqError when the trace has no times."""
    found = []
    for one in requests:
        told = one.measured
        if told is None:
            raise FairqError(f"{name}: has no measured times, so there is nothing to calibrate to")
        if told.ttft is not None and told.latency is not None:
            start = told.queued + (told.ttft if told.scheduled is None else told.scheduled)
            first = told.queued + told.ttft
            last = told.queued + told.latency
            found.append(Timing(one.input_tokens, one.output_tokens, told.queued, start, first, last))
    return found


def fit(known: Sequence[Timing], limits: Limits | None = None) -> Fit:
    """`known` is the beginning of a recording, or all of it. Raises FairqError when too few requests can be used."""
    if limits is not None:
        _check_lengths(known, limits)
        known = _in_waves(known, limits)
    until = max((one.scheduled for one in known), default=0.0)
    alone = [one for one in known if one.last <= until]
    equations = _equations(known, alone, limits)
    whole = len(equations) >= FEWEST
    if not whole:  # better what others may have disturbed than nothing
        alone, equations = list(known), _equations(known, known, limits)
    if len(equations) < FEWEST:
        raise FairqError(f"{len(equations)} requests can be used, {FEWEST} are needed")
    rows = [[value / took for value in sums] for sums, took in equations]
    found = least_squares(rows, [1.0] * len(rows), RIDGE)
    errors = [abs(1 / sum(x * k for x, k in zip(row, found, strict=True)) - 1) for row in rows]
    factor = 1.0 if limits is None else _factor(known, alone, found, limits)
    return Fit(_cost(found, factor), len(rows), len(known) - len(rows), median(errors), whole, factor)


def compare(known: Sequence[Timing], cost: Cost, limits: Limits) -> Agreement:
    """A simulation of these requests, first come first served, beside what was measured. Raises FairqError."""
    _check_lengths(known, limits)
    calls, engine = simulate([(one.queued, one.prompt, one.output) for one in known], cost, limits)
    made = [(call.first or 0, call.finish or 0) for call in calls]
    simulated = sorted(range(len(known)), key=lambda i: (made[i][0], i))
    measured = sorted(range(len(known)), key=lambda i: (round(known[i].first, 6), i))  # recorded in microseconds
    gaps = [
        (float(simulated_gap) / NS, float(measured_gap))
        for one, (first, finish) in zip(known, made, strict=True)
        if (measured_gap := tpot(one.first, one.last, one.output)) is not None
        and (simulated_gap := tpot(first, finish, one.output)) is not None
    ]
    return Agreement(
        requests=len(known),
        makespan=(max(finish for _, finish in made) / NS, max(one.last for one in known)),
        ttft=(
            fmean(first / NS - one.queued for one, (first, _) in zip(known, made, strict=True)),
            fmean(one.first - one.queued for one in known),
        ),
        tpot=(fmean(pair[0] for pair in gaps), fmean(pair[1] for pair in gaps)),
        same_order=fmean(one == other for one, other in zip(simulated, measured, strict=True)),
        preemptions=engine.preemptions,
    )


def _check_lengths(known: Sequence[Timing], limits: Limits) -> None:
    most = longest(limits)
    if over := sum(one.prompt + max(one.output, 1) > most for one in known):
        raise FairqError(f"{over} of {len(known)} requests are longer than the {most} tokens that the engine holds")


def _equations(
    known: Sequence[Timing], usable: Sequence[Timing], limits: Limits | None
) -> list[tuple[tuple[float, float, float, float], float]]:
    """(sums, time) of each of the usable that was not preempted."""
    running = sorted((one for one in known if one.output > 1 and one.last > one.first), key=lambda one: one.first)
    firsts = [one.first for one in running]
    timed = [one for one in usable if one.output > 1 and one.last > one.first]
    waves = sorted({one.first for one in known}) if limits and limits.prefill == "first" else []
    slow = SLOW if limits is None or limits.reserve == "prompt" else 0.0
    found = []
    for one in timed[:: max(1, -(-len(timed) // MOST))]:
        beside = [other for other in running[: bisect_right(firsts, one.last)] if other.last >= one.first]
        if one.rate >= slow * _usual_rate(one, beside):
            iterations, prefilled, batch, context = _sums(one, beside, known)
            iterations += bisect_right(waves, one.last) - bisect_right(waves, one.first)
            found.append(((iterations, prefilled, batch, context), one.last - one.first))
    return found


def _in_waves(known: Sequence[Timing], limits: Limits) -> list[Timing]:
    """Where prompts have iterations of their own, at least `admit_every` decodes apart: those that shared one got their
    first token at one time, which is recorded with some scatter."""
    rates = [one.rate for one in known if one.output > 1 and one.last > one.first]
    if limits.prefill != "first" or not rates:
        return list(known)
    apart, last, wave = max(limits.admit_every, 1) / 2 / median(rates), -inf, 0.0
    found = dict.fromkeys(known)
    for one in sorted(known, key=lambda one: one.first):
        wave = wave if one.first - last <= apart else one.first
        last = one.first
        found[one] = replace(one, first=wave, scheduled=min(one.scheduled, wave))
    return [found[one] or one for one in known]


def _usual_rate(one: Timing, beside: Sequence[Timing], points: int = 20) -> float:
    """The median rate of those that run with it, over its time."""
    step = (one.last - one.first) / points
    times = [one.first + (k + 0.5) * step for k in range(points)]
    return fmean(median(other.rate for other in beside if other.first <= at <= other.last) for at in times)


def _sums(one: Timing, beside: Sequence[Timing], known: Sequence[Timing]) -> tuple[float, float, float, float]:
    """(iterations, prefilled, batch, context) between its first and its last token."""
    prefilled = batch = context = 0.0
    for other in known:
        overlap = min(one.last, other.first) - max(one.first, other.scheduled)
        if overlap > 0:
            prefilled += other.prompt * overlap / (other.first - other.scheduled)
        elif other.scheduled == other.first and one.first < other.first <= one.last:
            prefilled += other.prompt
    for other in beside:
        start, end = max(one.first, other.first), min(one.last, other.last)
        made = (one.rate + other.rate) / 2 * (end - start)  # they decode together, but each had delays of its own
        batch += made
        context += made * (other.prompt + 1 + other.rate * ((start + end) / 2 - other.first))
    return one.output - 1, prefilled, batch, context


def _cost(found: Sequence[float], factor: float) -> Cost:
    a, b, c, d = (round(value * factor * NS) for value in found)
    return Cost(a=max(a, 1), b=b, c=c, d=d)


def _factor(known: Sequence[Timing], alone: Sequence[Timing], found: Sequence[float], limits: Limits) -> float:
    """The factor at which the simulated mean response is the measured one, by bisection; it grows with the factor."""
    measured = sum(one.last - one.queued for one in alone)
    chosen, low, high = set(alone), 0.5, 2.0
    for _ in range(12):
        middle = (low + high) / 2
        requests = [(one.queued, one.prompt, one.output) for one in known]
        calls, _engine = simulate(requests, _cost(found, middle), limits)
        pairs = zip(calls, known, strict=True)
        simulated = sum(((call.finish or 0) - call.arrival) / NS for call, one in pairs if one in chosen)
        low, high = (low, middle) if simulated > measured else (middle, high)
    return (low + high) / 2
