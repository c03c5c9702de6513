"""Results in numbers: per tenant, and how evenly service was shared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import chain

from msgspec import Struct

from fairq.core.cost import Usage
from fairq.core.lifecycle import Outcome
from fairq.core.number import Number
from fairq.load.call import Result
from fairq.measure.fairness import BackloggedIntervals, Interval, PairGaps, jain
from fairq.measure.latency import Summary, summary, tpot

NS = 1_000_000_000
HEAVIEST = 5
ONE = Fraction(1)


class Rates(Struct, frozen=True):
    """Service of a request in cost units: alpha per prompt token + beta per completion token, over the weight."""

    alpha: Fraction = ONE
    beta: Fraction = Fraction(2)
    weights: Mapping[str, Fraction] = {}

    def service(self, tenant: str, usage: Usage) -> Number:
        amount = self.alpha * usage.prompt + self.beta * usage.completion
        share = amount / self.weights.get(tenant, ONE)
        return share.numerator if share.denominator == 1 else share


class TenantTally(Struct, frozen=True, kw_only=True):
    """One tenant. Times in seconds as the sender saw them, so TTFT includes the wait in the queue.

    service   normalized actual service, of the tokens the target reported
    charged   normalized charged service, as the console says; None without one
    """

    tenant: str
    weight: float
    requests: int
    outcomes: dict[str, int]
    wait: Summary | None
    ttft: Summary | None
    tpot: Summary | None
    latency: Summary | None
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    service: float
    charged: float | None = None


class PairTally(Struct, frozen=True, kw_only=True):
    """Two tenants over the time at which both were backlogged.

    service   normalized actual service of each in that time
    ratio     the larger over the smaller, None if that is 0
    gap       the largest difference within one stretch of that time
    """

    tenants: tuple[str, str]
    seconds: float
    service: tuple[float, float]
    ratio: float | None
    gap: float


class Fairness(Struct, frozen=True, kw_only=True):
    """Sharing of actual service while tenants were jointly backlogged.

    backlog     how "backlogged" was known: `waits` (each answer said how long it had been queued) or `outstanding`
                (an approximation: every request that had not ended counts as waiting)
    intervals   maximal intervals with one set of two or more backlogged tenants
    jain        mean of these intervals' Jain indices, each weighted by the service in it
    heaviest    the tenants with most service; jain_heaviest and seconds_heaviest are about the time at which all of
                them were backlogged; pairs lists each two of them
    largest     normalized service of the largest request, the q of the bound 2q
    """

    backlog: str
    intervals: int
    sets: int
    jain: float | None
    heaviest: list[str]
    jain_heaviest: float | None
    seconds_heaviest: float
    largest: float
    pairs: list[PairTally]


def tally(tenant: str, results: Sequence[Result], rates: Rates, charged: float | None = None) -> TenantTally:
    """The results of one tenant. Latencies are those of completed requests, waits those of all that know it."""
    completed = [result for result in results if result.outcome == Outcome.COMPLETED]
    gaps = (
        tpot(result.first, result.last, result.usage.completion)
        for result in completed
        if result.first is not None and result.last is not None
    )
    return TenantTally(
        tenant=tenant,
        weight=float(rates.weights.get(tenant, ONE)),
        requests=len(results),
        outcomes=dict(Counter(result.outcome for result in results).most_common()),
        wait=_seconds(result.wait for result in results if result.wait is not None),
        ttft=_seconds(result.first - result.sent for result in completed if result.first is not None),
        tpot=_seconds(gap for gap in gaps if gap is not None),
        latency=_seconds(result.end - result.sent for result in completed),
        prompt_tokens=sum(result.usage.prompt for result in results),
        cached_tokens=sum(result.usage.cached for result in results),
        completion_tokens=sum(result.usage.completion for result in results),
        service=float(sum(rates.service(tenant, result.usage) for result in results)),
        charged=charged,
    )


def _seconds(times: Iterable[int | float | Fraction]) -> Summary | None:
    return summary(Fraction(time) / NS for time in times)


def fairness(results: Sequence[Result], rates: Rates) -> Fairness:
    """Cut the run into jointly backlogged intervals. Each request's service counts at the moment of its dispatch.

    Where an answer does not tell its wait, the request counts as waiting from sending to its end and its
    service counts there.
    """
    told = any(result.wait is not None for result in results)
    total: dict[str, Number] = {}
    largest: Number = 0
    for result in results:
        service = rates.service(result.tenant, result.usage)
        total[result.tenant] = total.get(result.tenant, 0) + service
        largest = max(largest, service)
    heaviest = sorted(sorted(total, key=lambda tenant: (-total[tenant], tenant))[:HEAVIEST])
    every, some, pairs = BackloggedIntervals(), BackloggedIntervals(), PairGaps(heaviest)
    waiting = Counter[str]()
    end = 0
    for time, kind, tenant, service in sorted(chain.from_iterable(_changes(result, told, rates) for result in results)):
        end = time
        if kind == CHARGE:
            for run in (every, some, pairs):
                run.charge(tenant, service)
            continue
        waiting[tenant] += 1 if kind == ENTER else -1
        for run in (every, some, pairs):
            if kind == ENTER and waiting[tenant] == 1 and (run is not some or tenant in heaviest):
                run.enter(tenant, time)
            elif kind == LEAVE and waiting[tenant] == 0:
                run.leave(tenant, time)
    joint = [interval for interval in every.close(end) if len(interval.service) > 1]
    sets = _together(joint)
    all_of_them = [interval for interval in some.close(end) if len(interval.service) == len(heaviest)]
    index = jain(sum(interval.service[tenant] for interval in all_of_them) for tenant in heaviest)
    return Fairness(
        backlog="waits" if told else "outstanding",
        intervals=len(joint),
        sets=len(sets),
        jain=mean_jain(sets.values()),
        heaviest=heaviest,
        jain_heaviest=None if index is None or len(heaviest) < 2 else float(index),
        seconds_heaviest=float(sum(interval.end - interval.start for interval in all_of_them)) / NS,
        largest=float(largest),
        pairs=[
            PairTally(
                tenants=tenants,
                seconds=float(pair.duration) / NS,
                service=(float(pair.service[0]), float(pair.service[1])),
                ratio=float(Fraction(max(pair.service)) / min(pair.service)) if min(pair.service) else None,
                gap=float(pair.gap),
            )
            for tenants, pair in sorted(pairs.close(end).items())
        ],
    )


CHARGE, LEAVE, ENTER = range(3)  # the order at one instant


def _changes(result: Result, told: bool, rates: Rates) -> list[tuple[int, int, str, Number]]:
    """(time, kind, tenant, service): when the request began to wait, was dispatched, and with what service."""
    if result.outcome.startswith("refused-"):
        return []  # it was in no queue
    tenant, service = result.tenant, rates.service(result.tenant, result.usage)
    if not told or result.wait is None:
        leaves = result.end
    elif result.wait == 0:
        return [(result.sent, CHARGE, tenant, service)]  # it never waited
    else:
        leaves = result.sent + result.wait
    return [(result.sent, ENTER, tenant, 0), (leaves, CHARGE, tenant, service), (leaves, LEAVE, tenant, 0)]


def _together(intervals: Iterable[Interval]) -> dict[tuple[str, ...], list[Number]]:
    """Service of the intervals, added up per set of backlogged tenants.

    Joint backlog comes in many short intervals, and one that holds a single dispatch cannot be even.
    """
    sets: dict[tuple[str, ...], list[Number]] = {}
    for interval in intervals:
        before = sets.get(tuple(interval.service), [0] * len(interval.service))
        sets[tuple(interval.service)] = [a + b for a, b in zip(before, interval.service.values(), strict=True)]
    return sets


def mean_jain(services: Iterable[Sequence[Number]]) -> float | None:
    """Mean of Jain's indices, each weighted by its service. None when there was none."""
    total = weighted = Fraction(0)
    for values in services:
        index = jain(values)
        if index is not None:
            service = Fraction(sum(values))
            total += service
            weighted += service * index
    return float(weighted / total) if total else None
