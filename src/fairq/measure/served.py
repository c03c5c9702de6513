"""What a server of one job at a time did: a link's packets, a router's requests, a fluid's packets all at once.

a arrival   s start of service   C completion   p time in service   c amount of service   w the flow's weight

Times are the layer's unit (a link's time, a router's decisions), amounts too (size, cost).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from operator import attrgetter

from msgspec import Struct

from fairq.core.number import Number, quotient
from fairq.measure.fairness import BackloggedIntervals, Interval
from fairq.measure.latency import Summary, summary


class Served(Struct, frozen=True, kw_only=True, gc=False):
    """One job. start: None from a fluid, which gives all backlogged flows their shares at once."""

    flow: str
    arrival: Number
    start: Number | None
    finish: Number
    time: Number
    amount: int

    @property
    def turnaround(self) -> Number:
        """C - a, also called flow time, and of a packet its delay."""
        return self.finish - self.arrival

    @property
    def waiting(self) -> Number:
        """C - a - p; that is s - a unless the server stood still in between."""
        return self.turnaround - self.time

    @property
    def response(self) -> Number | None:
        """s - a."""
        return None if self.start is None else self.start - self.arrival


class Measures(Struct, frozen=True, kw_only=True):
    """Of a whole run, from time 0 to the last completion, which is `length`.

    turnaround, waiting, response   percentiles, mean and worst case, in time; None where there are none
    starvation       the longest time for which a flow had a job waiting and none in service: max of s - max(a of its
                     first waiting job, C of its job before)
    throughput       sum of c / length: amount per time
    utilisation      sum of p / length: a share of time, without unit
    work_conserving  was the server always busy while a job was there? For each busy period (a maximal time in which
                     some job had arrived and not completed): its length, less stalls, is the sum of p in it
    """

    jobs: int
    turnaround: Summary | None
    waiting: Summary | None
    response: Summary | None
    starvation: float
    throughput: float
    utilisation: float
    work_conserving: bool


def measure(jobs: Sequence[Served], worked: Callable[[Number], Number] = lambda time: time) -> Measures:
    """worked: time -> how much of it the server has been able to work, for one that stalls. O(n log n)."""
    length = max((job.finish for job in jobs), default=0)
    total, busy = sum(job.amount for job in jobs), sum(job.time for job in jobs)
    return Measures(
        jobs=len(jobs),
        turnaround=summary(job.turnaround for job in jobs),
        waiting=summary(job.waiting for job in jobs),
        response=summary(job.response for job in jobs if job.response is not None),
        starvation=float(starvation(jobs)),
        throughput=float(Fraction(total) / length) if length else 0.0,
        utilisation=float(Fraction(busy) / length) if length else 0.0,
        work_conserving=is_work_conserving(jobs, worked),
    )


def starvation(jobs: Iterable[Served]) -> Number:
    """The longest time for which a flow had a job waiting and none in service; 0 in a fluid."""
    by_flow: dict[str, list[Served]] = {}
    for job in jobs:
        if job.start is not None:
            by_flow.setdefault(job.flow, []).append(job)
    longest: Number = 0
    for own in by_flow.values():
        own.sort(key=attrgetter("start"))
        since = list(accumulate((job.arrival for job in reversed(own)), min))[::-1]  # the first that still waits
        before: Number = 0
        for job, first in zip(own, since, strict=True):
            assert job.start is not None
            longest = max(longest, job.start - max(first, before))
            before = job.finish
    return longest


def is_work_conserving(jobs: Iterable[Served], worked: Callable[[Number], Number]) -> bool:
    """In every busy period the server worked all the time. Exact."""
    begin: Number = 0
    end: Number = 0
    due: Number = 0
    for job in sorted(jobs, key=attrgetter("arrival")):
        if job.arrival >= end:
            if worked(end) - worked(begin) != due:
                return False
            begin, end, due = job.arrival, job.finish, 0
        end, due = max(end, job.finish), due + job.time
    return worked(end) - worked(begin) == due


def shares(
    jobs: Iterable[Served], weights: Mapping[str, Number], worked: Callable[[Number], Number] = lambda time: time
) -> list[Interval]:
    """Normalized service (c / w) over the maximal intervals in which the same flows have work waiting.

    A job is charged when it starts; its flow was waiting then. A fluid's flows wait until they complete, and each is
    given c / p * dt * w / (sum of w over the backlogged flows) in dt. O(changes of the set * flows in it).
    """
    changes: list[tuple[Number, int, int, Served]] = []  # when, arrivals first, in order
    for index, job in enumerate(jobs):
        changes.append((job.arrival, 0, index, job))
        changes.append((job.finish if job.start is None else job.start, 1, index, job))
    intervals, waiting = BackloggedIntervals(), dict.fromkeys(weights, 0)
    before: Number = 0
    for now, leaves, _, job in sorted(changes, key=lambda change: change[:3]):
        if job.start is None:
            total = sum(weights[flow] for flow, count in waiting.items() if count)
            if total and now > before:
                given = quotient((worked(now) - worked(before)) * quotient(job.amount, job.time), total)
                for flow, count in waiting.items():
                    if count:
                        intervals.charge(flow, given)
            before = now
        elif leaves:
            intervals.charge(job.flow, quotient(job.amount, weights[job.flow]))
        waiting[job.flow] += -1 if leaves else 1
        if not waiting[job.flow]:
            intervals.leave(job.flow, now)
        elif not leaves:
            intervals.enter(job.flow, now)
    return intervals.close(max((change[0] for change in changes), default=0))
