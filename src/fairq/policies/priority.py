"""Fixed priority: the most urgent job that is ready; a larger number is more urgent.

    select   argmax over waiting jobs of priority, among equals the first in turn
    preempt  when a waiting job is more urgent than the running one
    equals   round robin with `quantum` (0: the first of them runs until it ends or sleeps)
    aging    a waiting job gains 1 for every `aging` ticks it has waited, at most `boost` in all (0: no limit);
             running, it has its own priority again

A job that is preempted stays first among its equals with the rest of its quantum. Lock protocols belong to the
simulator, which tells a job's inherited priority by `priority_changed`; `protocol` says which one it is to use.

Unit of fairness: none. Guarantee: the most urgent ready job runs at once (preemptive). Without aging the others may
starve; with it every job runs in the end, since its priority grows beyond any fixed one (no `boost` limit).
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from fairq.core.job import Job
from fairq.core.policy import Cause, Need, Param, Stop, Time, Unit, View, Why
from fairq.core.ranking import Ranking
from fairq.core.ready import JobPolicy

PROTOCOLS = ("none", "inheritance", "ceiling", "immediate-ceiling")


class Priority(JobPolicy):
    name = "priority"
    unit = Unit.PRIORITY
    needs = frozenset({Need.PREEMPTION})
    memory = ("priority", "raised", "steps", "turn", "used", "turns")
    params: ClassVar[tuple[Param, ...]] = (
        Param(name="preemptive", default=True, text="param.priority.preemptive"),
        Param(name="quantum", default=1, low=0, text="param.priority.quantum"),
        Param(name="aging", default=0, low=0, text="param.priority.aging"),
        Param(name="boost", default=0, low=0, text="param.priority.boost"),
        Param(name="protocol", default="none", choices=PROTOCOLS, text="param.priority.protocol"),
    )
    preemptive: bool
    quantum: int
    aging: int
    boost: int
    protocol: str

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.priority: dict[str, int] = {}  # own or inherited, of jobs that wait, run or sleep
        self.raised: dict[str, int] = {}  # by aging, of jobs that wait
        self.steps: Ranking[str, int] = Ranking()  # when aging raises a waiting job next
        self.turn: dict[str, int] = {}  # place among equals, kept while it runs
        self.used: dict[str, int] = {}  # of the quantum; a job without an entry is due a new turn
        self.turns = 0

    def base(self, job: Job) -> int:
        """A job's own priority."""
        return job.priority

    # The rule
    def rank(self, job: Job) -> tuple[int, int]:
        id_ = job.id
        urgency = self.priority[id_] + self.raised[id_] if id_ in self.raised else self.priority[id_]
        return -urgency, self.turn[id_]

    def preempts(self, running: Job, now: Time) -> bool:
        first = self.first()
        return self.preemptive and first is not None and first[0][0] < -self.priority[running.id]

    def slice(self, job: Job) -> int | None:
        return max(self.quantum - self.used[job.id], 0) if self.quantum and self.preemptive else None

    # Its queue
    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        id_ = job.id
        if id_ not in self.used:
            self.turns += 1
            self.turn[id_], self.used[id_] = self.turns, 0
        if id_ not in self.priority:
            self.priority[id_] = self.base(job)
        if self.aging:
            self.steps.put(id_, now + self.aging)
        super().arrive(job, now, cause)

    def charge(self, job: Job, amount: int, now: Time) -> None:
        self.used[job.id] += amount

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        if reason is not Stop.PREEMPTED:
            self.used.pop(job.id, None)
            if reason is Stop.FINISHED:
                self.gone(job)

    def leave(self, job: Job) -> None:
        super().leave(job)
        if self.aging:
            self.raised.pop(job.id, None)
            self.steps.drop(job.id)

    def gone(self, job: Job) -> None:
        del self.priority[job.id], self.turn[job.id]
        self.used.pop(job.id, None)

    def priority_changed(self, job: Job, now: Time) -> None:
        self.priority[job.id] = job.priority
        if job.id in self.jobs:
            self.place(self.jobs[job.id])

    # Aging
    def next_change(self, now: Time, view: View) -> Time | None:
        first = self.steps.first()
        return first and first[0]

    def timer(self, now: Time) -> None:
        while (first := self.steps.first()) and first[0] <= now:
            at, id_ = first
            self.raised[id_] = self.raised.get(id_, 0) + 1
            if self.raised[id_] == self.boost:
                self.steps.drop(id_)
            else:
                self.steps.put(id_, at + self.aging)
            self.place(self.jobs[id_])

    # What shells read
    def why(self, job: Job) -> Why:
        raised = {"raised": self.raised[job.id]} if job.id in self.raised else {}
        return Why("most-urgent", {"priority": self.priority[job.id], **raised})

    def show(self) -> Mapping[str, Any]:
        return {"priority": {id_: own + self.raised.get(id_, 0) for id_, own in self.priority.items()}}
