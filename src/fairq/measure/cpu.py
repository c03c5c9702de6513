"""What a schedule of jobs on processors did: the article's measures, each with its formula. Times are ticks.

a arrival   p work   C completion   d absolute deadline
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate

from msgspec import Struct

from fairq.measure.fairness import BackloggedIntervals, Interval
from fairq.measure.latency import Summary, summary

Span = tuple[int, int]
Piece = tuple[str | None, int, int, str]
"""(task, start, end, state) of one processor; the state is run, or with no task idle, switch or blocked."""
Reweighted = tuple[int, str, Fraction]
"""(when, task, its weight from then on)."""


class Story(Struct, frozen=True, kw_only=True):
    """One job. Jobs of one task follow each other: the next is not ready before the one before it is over.

    first_run, completion  None where it has not come to that
    until                  when it was over: completed, aborted, or the run ended
    away                   when it was not ready: asleep, or waiting for a lock; in order
    slept                  how much of that was sleep of its own
    """

    task: str
    arrival: int
    work: int
    until: int
    first_run: int | None = None
    completion: int | None = None
    deadline: int | None = None
    away: tuple[Span, ...] = ()
    slept: int = 0

    @property
    def turnaround(self) -> int | None:
        """C - a, also called flow time (and the response time of a periodic task's job)."""
        return None if self.completion is None else self.completion - self.arrival

    @property
    def waiting(self) -> int | None:
        """C - a - p, less its own sleep."""
        return None if self.turnaround is None else self.turnaround - self.work - self.slept

    @property
    def response(self) -> int | None:
        """First run - a."""
        return None if self.first_run is None else self.first_run - self.arrival

    @property
    def lateness(self) -> int | None:
        """C - d, negative when early; None without a deadline or a completion."""
        return None if self.completion is None or self.deadline is None else self.completion - self.deadline

    @property
    def missed(self) -> bool:
        """C > d, or not completed although d has come."""
        if self.deadline is None:
            return False
        return self.until >= self.deadline if self.completion is None else self.completion > self.deadline


class Measures(Struct, frozen=True, kw_only=True):
    """Of a whole run, from tick 0 to `length`. In ticks, but for counts and shares.

    turnaround, waiting, response   percentiles, mean and worst case over the jobs for which they are known; None where
                   there are none. The mean turnaround is the mean flow time
    misses         jobs that missed their deadlines
    max_lateness   max of C - d; None without deadlines
    jitter         max over tasks of (max - min) of the turnaround of its jobs; None for single jobs
    longest_wait   max over maximal times in which a job was ready and did not run of their length
    starvation     the same, counting only ticks in which others ran: not switches, not idle ticks, not failed attempts
    throughput     completed jobs / length: jobs per tick
    utilisation    ticks of work / (processors * length): a share, without unit
    switches       how often a processor began a task that was not its last one
    work_conserving  was no processor ever idle while a job was ready and did not run?
    """

    jobs: int
    completed: int
    turnaround: Summary | None
    waiting: Summary | None
    response: Summary | None
    misses: int
    max_lateness: int | None
    jitter: int | None
    longest_wait: int
    starvation: int
    throughput: float
    utilisation: float
    switches: int
    work_conserving: bool


def measure(stories: Sequence[Story], processors: Sequence[Sequence[Piece]], end: int, *, switches: int) -> Measures:
    """stories: every job, those of one task in order; processors: what each did from 0 to `end`; switches: counted."""
    waits = [wait for gaps in waiting_times(stories, processors) for wait in gaps]
    idle = [(start, stop) for line in processors for _, start, stop, state in line if state == "idle"]
    worked = sum(stop - start for line in processors for _, start, stop, state in line if state == "run")
    turnarounds = [story.turnaround for story in stories if story.turnaround is not None]
    return Measures(
        jobs=len(stories),
        completed=len(turnarounds),
        turnaround=summary(turnarounds),
        waiting=summary(story.waiting for story in stories if story.waiting is not None),
        response=summary(story.response for story in stories if story.response is not None),
        misses=sum(story.missed for story in stories),
        max_lateness=max((story.lateness for story in stories if story.lateness is not None), default=None),
        jitter=jitter(stories),
        longest_wait=max((stop - start for start, stop in waits), default=0),
        starvation=starvation(waits, processors),
        throughput=float(Fraction(len(turnarounds), end)) if end else 0.0,
        utilisation=float(Fraction(worked, end * len(processors))) if end else 0.0,
        switches=switches,
        work_conserving=not overlap(waits, idle),
    )


def starvation(waits: Iterable[Span], processors: Sequence[Sequence[Piece]]) -> int:
    """The most ticks of one wait in which some processor ran a job: another one, since this one waits. O(n log n)."""
    runs = merged(sorted((start, stop) for line in processors for _, start, stop, state in line if state == "run"))
    starts = [start for start, _ in runs]
    before = [0, *accumulate(stop - start for start, stop in runs)]  # ticks run before each of them

    def ran(until: int) -> int:
        last = bisect_right(starts, until)
        return before[last] - (max(0, runs[last - 1][1] - until) if last else 0)

    return max((ran(stop) - ran(start) for start, stop in waits), default=0)


def merged(spans: Iterable[Span]) -> list[Span]:
    """The union of `spans`, which are in order, as spans that do not touch."""
    union: list[Span] = []
    for start, stop in spans:
        if union and start <= union[-1][1]:
            union[-1] = union[-1][0], max(union[-1][1], stop)
        else:
            union.append((start, stop))
    return union


def jitter(stories: Iterable[Story]) -> int | None:
    """The largest max - min of turnaround among the completed jobs of one task; None when no task has two."""
    found: dict[str, list[int]] = {}
    for story in stories:
        if story.turnaround is not None:
            found.setdefault(story.task, []).append(story.turnaround)
    return max((max(times) - min(times) for times in found.values() if len(times) > 1), default=None)


def waiting_times(stories: Sequence[Story], processors: Sequence[Sequence[Piece]]) -> list[list[Span]]:
    """For each job the maximal times in which it was ready and did not run. O(n log n)."""
    runs: dict[str | None, list[Span]] = {}
    for line in processors:
        for task, start, stop, _ in line:
            runs.setdefault(task, []).append((start, stop))
    for spans in runs.values():
        spans.sort()
    over: dict[str, int] = {}
    found = []
    for story in stories:
        begin = max(story.arrival, over.get(story.task, 0))
        over[story.task] = story.until
        own = runs.get(story.task, [])
        first = bisect_left(own, (begin, 0))
        if first and own[first - 1][1] > begin:
            first -= 1  # it goes on from the job before
        own = own[first : bisect_left(own, (story.until, 0))]
        found.append(gaps(sorted([*own, *story.away]), begin, story.until))
    return found


def gaps(spans: Iterable[Span], begin: int, end: int) -> list[Span]:
    """What is left of begin..end without `spans`, which are in order."""
    left, at = [], begin
    for start, stop in [*spans, (end, end)]:
        if start > at:
            left.append((at, start))
        at = max(at, stop)
    return left


def overlap(some: Iterable[Span], others: Iterable[Span]) -> bool:
    """Do any two of them, one of each kind, share a tick?"""
    edges = [
        (at, way, kind) for kind, spans in enumerate((some, others)) for a, b in spans for at, way in ((a, 1), (b, 0))
    ]
    open_ = [0, 0]
    for _, way, kind in sorted(edges):
        open_[kind] += 1 if way else -1
        if all(open_):
            return True
    return False


def shares(
    stories: Sequence[Story],
    processors: Sequence[Sequence[Piece]],
    weights: Mapping[str, Fraction],
    reweighted: Sequence[Reweighted] = (),
) -> list[Interval]:
    """Normalized service (ticks / weight) of each task over the maximal intervals in which the same tasks are active.

    Active is ready or running here, not only waiting as at a router: a processor's running task is not out of the
    competition. Each tick counts at the weight of its time: another weight of an active task begins a new interval.

    weights     of the tasks at the beginning
    reweighted  what they become, and when; in order of time
    """
    changes: list[tuple[int, int, str, int]] = []  # (when, what first, task, ticks or which)
    over: dict[str, int] = {}
    for story in stories:
        begin = max(story.arrival, over.get(story.task, 0))
        over[story.task] = story.until
        for start, stop in gaps(story.away, begin, story.until):
            changes += [(start, 2, story.task, 0), (stop, 1, story.task, 0)]
    changes += [(at, 3, task, which) for which, (at, task, _) in enumerate(reweighted)]
    cuts = sorted({at for at, *_ in changes})
    for line in processors:
        for task, start, stop, _ in line:
            if task is not None:
                inner = cuts[bisect_left(cuts, start + 1) : bisect_left(cuts, stop)]
                for a, b in zip([start, *inner], [*inner, stop], strict=True):
                    changes.append((b, 0, task, b - a))
    intervals = BackloggedIntervals()
    present = dict(weights)
    active: set[str] = set()
    for now, what, task, number in sorted(changes):
        if what == 0:
            intervals.charge(task, number / present[task])
        elif what == 1:
            active.discard(task)
            intervals.leave(task, now)
        elif what == 2:
            active.add(task)
            intervals.enter(task, now)
        elif present[task] != reweighted[number][2]:
            present[task] = reweighted[number][2]
            if task in active:
                intervals.leave(task, now)
                intervals.enter(task, now)
    return intervals.close(max((at for at, *_ in changes), default=0))
