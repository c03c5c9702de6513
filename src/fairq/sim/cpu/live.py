"""What the machine keeps of a task and of each of its jobs."""

from collections import deque
from collections.abc import Iterator
from random import Random

from fairq.core.job import Flow, Job
from fairq.sim.cpu.scenario import Task


class Source:
    """A task: where its jobs come from. One job of it is ready at a time; later ones wait for it (`backlog`).

    Such a late one enters a queue when it is ready, but in the order of arrival its place is that of its release.
    """

    def __init__(self, index: int, task: Task, random: Random | None) -> None:
        """index  its place in the scenario; random: of the gaps between releases, where they vary"""
        self.index = index
        self.task, self.id, self.work, self.recurs = task, task.id, task.work, task.recurs
        self.priority, self.slice, self.period, self.estimate = task.priority, task.slice, task.period, task.estimate
        self.due = task.due if task.recurs else None
        self.flow = Flow(id=task.id, weight=task.share)
        self.sleeps = dict(task.sleeps())
        self.asks: dict[int, list[str]] = {}  # own ticks done -> resources to lock then, in order
        self.lets_go: dict[int, list[str]] = {}
        for hold in task.locks:
            self.asks.setdefault(hold.at, []).append(hold.resource)
            self.lets_go.setdefault(hold.at + hold.for_, []).append(hold.resource)
        self.marks = sorted({*self.sleeps, *self.asks, *self.lets_go, task.work} - {0})  # own ticks where it must stop
        self.releases = self._releases(random)
        self.count = 0
        self.current: Live | None = None
        self.backlog: deque[Live] = deque()

    def first(self) -> Job:
        """What its first job looks like before it arrives."""
        task = self.task
        return Job(
            id=task.id,
            arrival=0 if task.recurs else task.arrival,
            priority=task.priority,
            deadline=task.due if task.recurs else task.deadline,
            period=task.period,
        )

    def _releases(self, random: Random | None) -> Iterator[int]:
        task = self.task
        if not task.recurs:
            yield task.arrival
        elif task.arrivals:
            yield from task.arrivals
        else:
            at, period = task.offset, task.period
            assert period is not None
            while True:
                yield at
                at += random.randint(period, task.max_gap) if random and task.max_gap else period


class Live:
    """One job, from its release to its end. `job` is what policies see: the CPU burst that it is in."""

    job: Job
    deadline: int | None
    done = 0  # own ticks
    since = 0  # own ticks when the present burst began
    mark = 0  # index of the next mark
    asked = 0  # how many of the locks due at `done` are held
    slept = 0
    away: list[tuple[int, int]] | None = None  # when it slept or waited for a lock
    preemptions = 0
    first_run: int | None = None
    completion: int | None = None
    aborted = False
    waits = False  # in the policy's queue

    def __init__(self, source: Source, release: int, seq: int) -> None:
        """seq  its place in the order of arrival"""
        self.source, self.release, self.seq = source, release, seq
        self.goal = source.marks[0]
        if source.recurs:
            self.id = f"{source.id}#{source.count}"
            self.deadline = None if source.due is None else release + source.due
        else:
            self.id, self.deadline = source.id, source.task.deadline
        source.count += 1

    def burst(self, seq: int) -> Job:
        """Its present CPU burst: up to its next sleep, or its end."""
        source, end, told = self.source, self.source.work, self.source.estimate
        if source.sleeps:
            end = next((mark for mark in source.marks[self.mark :] if mark in source.sleeps), end)
            if self.done in source.sleeps:
                self.since = self.done
        if told is not None:
            told = max(told - (self.done - self.since), 0)
        self.job = job = Job(
            id=self.id,
            flow=source.id,
            seq=seq,
            arrival=self.release,
            size=end - self.done,
            estimate=told,
            priority=source.priority,
            deadline=self.deadline,
            slice=source.slice,
            period=source.period,
        )
        return job

    def leaves(self, start: int, end: int) -> None:
        """It is not ready from `start` to `end`, which is NEVER while nobody knows."""
        if self.away is None:
            self.away = []
        self.away.append((start, end))
