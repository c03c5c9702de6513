"""What a cluster did: who waited for how long, and how much of each resource was held."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from operator import itemgetter

from msgspec import Struct

from fairq.core.number import Number, quotient
from fairq.measure.fairness import BackloggedIntervals, Interval
from fairq.measure.latency import Summary, summary


class Held(Struct, frozen=True, kw_only=True):
    """A task that was started. `finish`: None while it runs. Times are the scenario's."""

    user: str
    demand: Mapping[str, int]
    arrival: int
    start: int
    finish: int | None = None


class Measures(Struct, frozen=True, kw_only=True):
    """Of a whole run, from time 0 to `end`.

    waiting          start - arrival of each task that was started, in time; None where there was none
    throughput       tasks completed / end
    utilisation      resource -> the sum over tasks of (time held * amount held) / (capacity * end), without unit;
                     None for a run that takes no time
    work_conserving  was there never, after the picks of a moment, a waiting task that would have fitted? `misfit=stop`
                     leaves room on purpose
    """

    started: int
    completed: int
    waiting: Summary | None
    throughput: float
    utilisation: dict[str, float] | None
    work_conserving: bool


def measure(tasks: Iterable[Held], capacity: Mapping[str, int], end: int, work_conserving: bool) -> Measures:
    tasks = list(tasks)
    completed = sum(task.finish is not None for task in tasks)
    used = {
        resource: Fraction(amount, capacity[resource] * (end or 1)) for resource, amount in held(tasks, end).items()
    }
    return Measures(
        started=len(tasks),
        completed=completed,
        waiting=summary(task.start - task.arrival for task in tasks),
        throughput=completed / end if end else 0.0,
        utilisation={resource: float(used.get(resource, 0)) for resource in capacity} if end else None,
        work_conserving=work_conserving,
    )


def held(tasks: Iterable[Held], end: int) -> dict[str, int]:
    """resource -> amount * time that tasks held it until `end`."""
    found: dict[str, int] = {}
    for task in tasks:
        until = end if task.finish is None else min(task.finish, end)
        for resource, amount in task.demand.items():
            found[resource] = found.get(resource, 0) + amount * (until - task.start)
    return found


def shares(
    tasks: Iterable[Held],
    backlogs: Sequence[tuple[int, frozenset[str]]],
    end: int,
    capacity: Mapping[str, int],
    weights: Mapping[str, Number],
) -> list[Interval]:
    """Normalized service over the maximal intervals in which the same users have tasks waiting.

    A user's service is its dominant share times time: the largest over resources of (what its tasks hold) / capacity.

    backlogs  (from when on, who has tasks waiting), in order, for every moment at which a task starts or ends
    """
    intervals = BackloggedIntervals()
    changes = sorted(
        [(task.start, 1, task) for task in tasks]
        + [(task.finish, 0, task) for task in tasks if task.finish is not None],
        key=itemgetter(0, 1),
    )
    holding: dict[str, dict[str, int]] = {}
    at = 0
    for (now, users), (until, _) in pairwise([*backlogs, (end, frozenset())]):
        while at < len(changes) and changes[at][0] <= now:
            _, sign, task = changes[at]
            of_user = holding.setdefault(task.user, dict.fromkeys(capacity, 0))
            for resource, amount in task.demand.items():
                of_user[resource] += amount if sign else -amount
            at += 1
        for user in weights:
            (intervals.enter if user in users else intervals.leave)(user, now)
        for user in users:
            held_now = holding.get(user, {})
            share = max((Fraction(amount, capacity[resource]) for resource, amount in held_now.items()), default=0)
            intervals.charge(user, quotient(share * (until - now), weights[user]))
    return intervals.close(end)
