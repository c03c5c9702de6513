"""What a CPU simulation is given: tasks, locks, and what the machine costs. All times are whole ticks."""

from fractions import Fraction
from math import ceil, lcm
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fairq.sim.scenario import Name, Natural, Part, Positive, Ratio, Scenario, Whole, broken
from fairq.sim.source import InvalidScenario

LINUX_WEIGHTS = (
    *(88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916),
    *(9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277),
    *(1024, 820, 655, 526, 423, 335, 272, 215, 172, 137),
    *(110, 87, 70, 56, 45, 36, 29, 23, 18, 15),
)
"""Linux's sched_prio_to_weight, nice -20 to 19; nice 0 is weight 1 here."""

MOST_JOBS = 1_000_000  # of a default horizon
MOST_SLEEPS = 100_000  # of one task


class Hold(Part):
    """A critical section: after `at` ticks of its own the task locks `resource`, and lets go `for` own ticks later."""

    resource: Name
    at: Natural
    for_: Positive = Field(alias="for")


class Io(Part):
    """A sleep of `for` ticks after every `every` ticks of the task's own, except after its last."""

    every: Positive
    for_: Positive = Field(alias="for")


class Change(Part):
    """At time `at`, the weight of a task becomes another one."""

    at: Natural
    task: Name
    weight: Ratio


class Task(Part):
    """Either one job, or one that comes again and again.

    one job     arrival, burst (or bursts: CPU, I/O, CPU, ...), deadline: absolute
    periodic    period, wcet, offset, deadline: relative, the period by default
    sporadic    the same with max_gap: each gap is drawn from period..max_gap; or arrivals: [0, 7, 20] with wcet
    estimate    what the policy is told instead of the size (of each CPU burst)
    weight      its share; nice -20..19 sets Linux's weight for it, relative to nice 0
    slice       the CPU time it asks for at a time (EEVDF)
    """

    id: Name
    arrival: Natural = 0
    burst: Positive | None = None
    bursts: Annotated[tuple[Positive, ...], Field(max_length=2 * MOST_SLEEPS)] = ()
    io: Io | None = None
    estimate: Positive | None = None
    priority: Whole = 0
    deadline: Positive | None = None
    weight: Ratio = Fraction(1)
    nice: Annotated[int, Field(ge=-20, le=19)] | None = None
    slice: Positive | None = None
    locks: tuple[Hold, ...] = ()
    period: Positive | None = None
    wcet: Positive | None = None
    offset: Natural = 0
    max_gap: Positive | None = None
    arrivals: tuple[Natural, ...] = ()

    @property
    def recurs(self) -> bool:
        return self.wcet is not None

    @property
    def work(self) -> int:
        """Its CPU ticks, for each job."""
        return self.wcet or self.burst or sum(self.bursts[::2])

    @property
    def share(self) -> Fraction:
        return self.weight if self.nice is None else Fraction(LINUX_WEIGHTS[self.nice + 20], 1024)

    @property
    def due(self) -> int | None:
        """The relative deadline of a task that recurs."""
        return self.deadline or self.period

    def sleeps(self) -> list[tuple[int, int]]:
        """(own ticks done, ticks of sleep then), in order."""
        if self.io:
            return [(done, self.io.for_) for done in range(self.io.every, self.work, self.io.every)]
        done, found = 0, []
        for run, sleep in zip(self.bursts[::2], self.bursts[1::2], strict=False):
            done += run
            found.append((done, sleep))
        return found

    @model_validator(mode="after")
    def _is_possible(self) -> "Task":
        self._is_one_kind()
        if self.bursts and len(self.bursts) % 2 == 0:
            raise broken("must end with a CPU burst (CPU, I/O, CPU, ...)", "bursts")
        if self.io and self.work // self.io.every > MOST_SLEEPS:
            raise broken(f"more than {MOST_SLEEPS} sleeps", "io", "every")
        if self.nice is not None and "weight" in self.model_fields_set:
            raise broken("give weight or nice, not both", "nice")
        due, earliest = (self.due, self.work) if self.recurs else (self.deadline, self.arrival + self.work)
        if due is not None and due < earliest:
            key = "deadline" if self.deadline else "wcet"
            raise broken(f"impossible: its {self.work} ticks end at {earliest} or later, its deadline is {due}", key)
        self._locks_are_possible()
        return self

    def _is_one_kind(self) -> None:
        works = [key for key in ("burst", "bursts", "wcet") if getattr(self, key)]
        if not works:
            raise broken("missing (or bursts, or period and wcet)", "burst")
        if len(works) > 1:
            raise broken(f"cannot go with {works[0]}", works[1])
        given = self.model_fields_set
        if not self.recurs:
            for key in ("period", "offset", "max_gap", "arrivals"):
                if key in given:
                    raise broken("goes with wcet, not with burst", key)
            return
        if self.period is None and not self.arrivals:
            raise broken("missing (or arrivals)", "period")
        if "arrival" in given:
            raise broken("a task with wcet has an offset instead", "arrival")
        if list(self.arrivals) != sorted(set(self.arrivals)):
            raise broken("must increase", "arrivals")
        if self.arrivals and (self.offset or self.max_gap):
            raise broken("cannot go with offset or max_gap", "arrivals")
        if self.max_gap is not None and self.max_gap < (self.period or 0):
            raise broken(f"must be at least the period, {self.period}", "max_gap")

    def _locks_are_possible(self) -> None:
        for index, one in enumerate(self.locks):
            end = one.at + one.for_
            if end > self.work:
                raise broken(f"held until {end} of its {self.work} own ticks", "locks", index)
            if any(one.resource == two.resource and one.at <= two.at < end for two in self.locks if two is not one):
                raise broken(f"{one.resource} is asked for again while it is held", "locks", index)


class CpuScenario(Scenario):
    """cpus          how many, all alike; what several do at one moment happens in order of their numbers
    switch_cost   ticks lost whenever a CPU starts a task other than its last one
    lock_attempt  tick: a failed attempt costs the tick it is made in
    on_miss       continue: a job that is late goes on; abort: it ends at its deadline
    horizon       where a run with recurring tasks ends; by default all tasks have come round together (hyperperiod)
                  and single jobs are done
    max_steps     a run ends with an error after so many moments
    """

    layer: Literal["cpu"] = "cpu"
    tasks: Annotated[tuple[Task, ...], Field(min_length=1, max_length=200_000)]
    changes: tuple[Change, ...] = ()
    cpus: Annotated[int, Field(ge=1, le=1024)] = 1
    switch_cost: Natural = 0
    lock_attempt: Literal["free", "tick"] = "free"
    on_miss: Literal["continue", "abort"] = "continue"
    horizon: Positive | None = None
    max_steps: Positive = 2_000_000

    @model_validator(mode="after")
    def _is_whole(self) -> "CpuScenario":
        seen: set[str] = set()
        for index, task in enumerate(self.tasks):
            if task.id in seen:
                raise broken("given twice", "tasks", index, "id")
            seen.add(task.id)
        for index, change in enumerate(self.changes):
            if change.task not in seen:
                raise broken("there is no such task", "changes", index, "task")
        return self

    def end(self) -> int | None:
        """When the run stops: the horizon, else the hyperperiod where tasks recur; None: when all is done.

        With offsets that is the last offset and two hyperperiods, after which the schedule repeats. Where other jobs
        come as well it is as many hyperperiods more as they need (`_others_done`). Raises InvalidScenario when that
        would take too many jobs or cannot be said.
        """
        recurring = [task for task in self.tasks if task.period and not task.arrivals]
        if self.horizon is not None or not recurring:
            return self.horizon
        periods = [task.period or 1 for task in recurring]
        lap, offset = lcm(*periods), max(task.offset for task in recurring)
        end = offset + (2 if offset else 1) * lap
        what = "the hyperperiod"
        if len(recurring) < len(self.tasks):
            end += max(ceil((self._others_done(recurring) - end) / lap), 0) * lap
            what = "the hyperperiods until all single jobs are done"
        jobs = sum(end // period for period in periods)
        if jobs > MOST_JOBS:
            enough = int(100_000 / sum(Fraction(1, period) for period in periods))
            rule = f"missing; {what}, {end}, would need {jobs} jobs, more than {MOST_JOBS}; try {enough}"
            raise InvalidScenario([f"horizon: {rule}"])
        return end

    def _others_done(self, recurring: list[Task]) -> Fraction:
        """A time at which the jobs that come once, or at listed times, are over beside `recurring` tasks.

            last arrival + (all their loads + one of each recurring task) / (cpus - sum over these of load / period)

        A load is the work, the sleeps and two switches. On one processor no policy that never idles needs longer: what
        is to do in a busy time of length L is at most this sum and L times the tasks' share. Raises InvalidScenario
        where the recurring tasks leave no time.
        """
        load = {
            task.id: task.work + sum(ticks for _, ticks in task.sleeps()) + 2 * self.switch_cost for task in self.tasks
        }
        free = self.cpus - sum(Fraction(load[task.id], task.period or 1) for task in recurring)
        if free <= 0:
            rule = "missing; the periodic tasks leave no time, so that nobody knows when the single jobs are done"
            raise InvalidScenario([f"horizon: {rule}"])
        names = {task.id for task in recurring}
        others = [(task.arrivals or (task.arrival,), load[task.id]) for task in self.tasks if task.id not in names]
        work = sum(len(arrivals) * ticks for arrivals, ticks in others) + sum(load[name] for name in names)
        return max(arrivals[-1] for arrivals, _ in others) + Fraction(work) / free

    def run(self, policy: str, record: str | None = None) -> Any:
        from fairq.sim.cpu.run import CpuRun

        return CpuRun(self, policy, record)
