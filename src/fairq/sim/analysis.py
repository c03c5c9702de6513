"""Will a periodic task set meet its deadlines? Exact tests, without simulation. C = wcet, T = period, D = deadline.

One processor, preemption, free switches, jobs released as early as T allows. Sporadic tasks count with their least gap,
offsets as 0 (the worst case; with offsets a "no" may be pessimistic). Sources: Liu and Layland 1973 (bound, EDF);
Bini, Buttazzo 2001 (hyperbolic bound); Joseph, Pandya 1986 and Lehoczky 1990 (response times); Baruah, Rosier, Howell
1990 (processor demand); Sha, Rajkumar, Lehoczky 1990, section 5 (blocking; theorem 16 for the utilisation bound);
Buttazzo, Hard Real-Time Computing Systems, section 7.9 (blocking in the hyperbolic bound).
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain
from math import lcm, prod

from msgspec import Struct

from fairq.core.errors import ConfigError
from fairq.sim.cpu.scenario import CpuScenario

MOST_POINTS = 2_000_000


Section = tuple[str, int, int]
"""(resource, start, end): held from the task's own tick `start` to `end`."""


class Periodic(Struct, frozen=True, kw_only=True):
    id: str
    wcet: int
    period: int
    deadline: int
    sections: tuple[Section, ...] = ()


class Response(Struct, frozen=True, kw_only=True):
    """Of one task under fixed priorities.

    blocking  for how long at most less urgent tasks keep it waiting
    response  its worst response time; None when it is past the deadline
    iterates  the fixed point iteration of its first job, from below
    """

    id: str
    wcet: int
    period: int
    deadline: int
    blocking: int
    response: int | None
    iterates: tuple[int, ...]


class Demand(Struct, frozen=True, kw_only=True):
    """EDF's processor demand test: h(t) <= t at every deadline t up to `limit`.

    first_failure  (t, h(t)) of the first t at which more is due than there was time; None: feasible
    """

    feasible: bool
    points: int
    limit: int
    first_failure: tuple[int, int] | None


def periodic(scenario: CpuScenario) -> list[Periodic]:
    """The recurring tasks of a scenario. Raises ConfigError where there is none."""
    found = [
        Periodic(
            id=task.id,
            wcet=task.work,
            period=task.period,
            deadline=task.deadline or task.period,
            sections=tuple((hold.resource, hold.at, hold.at + hold.for_) for hold in task.locks),
        )
        for task in scenario.tasks
        if task.period is not None
    ]
    if not found:
        raise ConfigError("tasks", len(scenario.tasks), "there is none with a period and a wcet among them")
    return found


def utilisation(tasks: Sequence[Periodic]) -> Fraction:
    """Sum of C / T."""
    return sum((Fraction(task.wcet, task.period) for task in tasks), Fraction(0))


def implicit(tasks: Sequence[Periodic]) -> bool:
    """D = T for all: what both utilisation bounds assume."""
    return all(task.deadline == task.period for task in tasks)


def liu_layland(n: int) -> float:
    """n (2^(1/n) - 1): below that utilisation n tasks are safe under rate monotonic."""
    return float(n * (2 ** (1 / n) - 1))


def loads(tasks: Sequence[Periodic], blocked: Sequence[int] = ()) -> list[Fraction]:
    """Of each task i, most urgent first: sum over k <= i of C_k / T_k, and B_i / T_i where it may be blocked."""
    return [utilisation(tasks[:i]) + delay for i, delay in enumerate(delays(tasks, blocked), 1)]


def delays(tasks: Sequence[Periodic], blocked: Sequence[int]) -> list[Fraction]:
    """B / T of each; nothing given: 0."""
    return [Fraction(time, task.period) for time, task in zip(blocked or [0] * len(tasks), tasks, strict=True)]


def within_liu_layland(tasks: Sequence[Periodic], blocked: Sequence[int] = ()) -> bool:
    """load_i <= i (2^(1/i) - 1) for every i, tested as (load_i / i + 1)^i <= 2, which is exact.

    Without blocking the last task's condition, U <= n (2^(1/n) - 1), has the others in it.
    """
    return all((load / i + 1) ** i <= 2 for i, load in enumerate(loads(tasks, blocked), 1))


def hyperbolic(tasks: Sequence[Periodic]) -> Fraction:
    """Product of (C/T + 1)."""
    return prod((Fraction(task.wcet, task.period) + 1 for task in tasks), start=Fraction(1))


def within_hyperbolic(tasks: Sequence[Periodic], blocked: Sequence[int] = ()) -> bool:
    """Product of (C/T + 1) over k <= i, with B_i added to C_i, <= 2 for every i: safe under rate monotonic.

    Never stricter than Liu and Layland's bound.
    """
    factors = [Fraction(task.wcet, task.period) + 1 for task in tasks]
    return all(
        prod(factors[: i + 1]) + prod(factors[:i]) * delay <= 2 for i, delay in enumerate(delays(tasks, blocked))
    )


def by_urgency(tasks: Sequence[Periodic], by: str = "period") -> list[Periodic]:
    """Most urgent first: the shortest period (rate monotonic) or deadline (deadline monotonic)."""
    return sorted(tasks, key=lambda task: getattr(task, by))


def blocking(urgent: Sequence[Periodic], less: Sequence[Periodic], protocol: str) -> int:
    """For how long tasks that are `less` urgent may keep one waiting that is the least urgent of `urgent`.

    Only critical sections on resources that `urgent` use count; sections of one task that overlap count as one.
    ceiling, immediate-ceiling: the longest one. inheritance: the lesser of the longest per task and the longest per
    resource, summed; a resource that a task may wait for inside such a section counts too. Without a protocol there is
    no bound: ConfigError when there are such sections.
    """
    used = {resource for task in urgent for resource, _, _ in task.sections}
    if protocol == "inheritance":
        used = within_reach(used, less)
    found = [[section for section in task.sections if section[0] in used] for task in less]
    if not any(found):
        return 0
    if protocol == "none":
        raise ConfigError(
            "protocol", "none", "blocking has no bound; analyse inheritance, ceiling or immediate-ceiling"
        )
    per_task = [longest_stretch(sections) for sections in found]
    if protocol != "inheritance":
        return max(per_task)
    per_resource: dict[str, int] = {}
    for resource, start, end in chain.from_iterable(found):
        per_resource[resource] = max(per_resource.get(resource, 0), end - start)
    return min(sum(per_task), sum(per_resource.values()))


def within_reach(used: set[str], tasks: Sequence[Periodic]) -> set[str]:
    """`used` and what `tasks` ask for while they hold something of it, and so on: they inherit, and then wait."""
    sections = [(one, other) for task in tasks for one in task.sections for other in task.sections]
    while more := {two[0] for one, two in sections if one[0] in used and one[1] <= two[1] < one[2]} - used:
        used = used | more
    return used


def longest_stretch(sections: Sequence[Section]) -> int:
    """Of own ticks in which something is held without a break."""
    longest = begun = until = 0
    for _, start, end in sorted(sections, key=lambda section: section[1]):
        if start >= until:
            begun = start
        until = max(until, end)
        longest = max(longest, until - begun)
    return longest


def response_times(tasks: Sequence[Periodic], protocol: str = "none", by: str | None = None) -> list[Response]:
    """R = max over its jobs q of w - q T, the least w = B + (q + 1) C + sum over more urgent j of ceil(w / T_j) C_j.

    `tasks` is most urgent first. by: those equal in it, period or deadline, are equally urgent, so each may have to
    wait for the others; None: no two are. Exact without blocking and equals; with them, an upper bound.
    """
    found = []
    for index, task in enumerate(tasks):
        after = tasks[index + 1 :]
        equals = [other for other in after if by and getattr(other, by) == getattr(task, by)]
        urgent = [*tasks[:index], *equals]
        blocked = blocking([*urgent, task], after[len(equals) :], protocol)
        found.append(_response(task, urgent, blocked))
    return found


def _response(task: Periodic, urgent: Sequence[Periodic], blocked: int) -> Response:
    settles = utilisation(urgent) < 1  # else there may be no fixed point past the deadline
    iterates: list[int] = []
    worst: int | None = 0
    busy = job = 0
    while worst is not None and (job == 0 or busy > job * task.period):
        own = blocked + (job + 1) * task.wcet
        busy = max(busy, own)
        late = False
        while True:
            if job == 0:
                iterates.append(busy)
            late = busy - job * task.period > task.deadline
            longer = own + sum(-(-busy // other.period) * other.wcet for other in urgent)
            if longer == busy or (late and not (settles and job == 0)):
                break
            busy = longer
        worst = None if late else max(worst, busy - job * task.period)
        job += 1
    return Response(
        id=task.id,
        wcet=task.wcet,
        period=task.period,
        deadline=task.deadline,
        blocking=blocked,
        response=worst,
        iterates=tuple(iterates),
    )


def demand(tasks: Sequence[Periodic], t: int) -> int:
    """h(t) = sum of max(0, floor((t - D) / T) + 1) C: what is both released and due within t."""
    return sum(max(0, (t - task.deadline) // task.period + 1) * task.wcet for task in tasks)


def demand_test(tasks: Sequence[Periodic]) -> Demand:
    """Raises ConfigError where it would take more than MOST_POINTS points."""
    limit = demand_limit(tasks)
    points = sum(max(0, (limit - task.deadline) // task.period + 1) for task in tasks)
    if points > MOST_POINTS:
        raise ConfigError("tasks", len(tasks), f"the demand test would need {points} points, more than {MOST_POINTS}")
    due = sorted({t for task in tasks for t in range(task.deadline, limit + 1, task.period)})
    failure = next(((t, h) for t in due if (h := demand(tasks, t)) > t), None)
    return Demand(feasible=failure is None, points=len(due), limit=limit, first_failure=failure)


def demand_limit(tasks: Sequence[Periodic]) -> int:
    """Where the demand test may stop: if h(t) <= t holds for every t up to there, it holds for all.

    U < 1: the least of max(D_1..D_n, sum of (T - D) U_i / (1 - U)), the first busy period, and the hyperperiod with the
    longest deadline; U = 1: that last one; U > 1: h(t) >= U t - sum of D_i U_i, so h(t) > t comes by then.
    """
    total = utilisation(tasks)
    loads = [(task, Fraction(task.wcet, task.period)) for task in tasks]
    if total > 1:
        return int(sum((task.deadline * load for task, load in loads), Fraction(0)) / (total - 1)) + 1
    longest = max(task.deadline for task in tasks)
    hyperperiod = lcm(*(task.period for task in tasks)) + longest
    if total == 1:
        return hyperperiod
    slack = sum(((task.period - task.deadline) * load for task, load in loads), Fraction(0)) / (1 - total)
    return min(max(longest, int(slack)), hyperperiod, busy_period(tasks))


def busy_period(tasks: Sequence[Periodic]) -> int:
    """The first time at which all that was released since a common start is done: L = sum of ceil(L / T) C. U <= 1."""
    length = sum(task.wcet for task in tasks)
    while (longer := sum(-(-length // task.period) * task.wcet for task in tasks)) != length:
        length = longer
    return length
