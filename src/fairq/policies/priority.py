"""Fixed priority (its protocols: Sha, Rajkumar, Lehoczky 1990): the most urgent ready job; larger is more urgent.

    select   argmax over waiting jobs of priority, among equals the first in turn
    preempt  when a waiting job is more urgent than the running one
    equals   round robin with `quantum` (0: the first of them runs until it ends or sleeps)
    aging    a waiting job gains 1 for every `aging` ticks it has waited, at most `boost` in all (0: no limit); it keeps
             this while it runs, until its quantum is used up, it sleeps, or a job more urgent still takes its place

A job that is preempted stays first among its equals with the rest of its quantum (as in POSIX); with `preempted=last`
it goes behind them and starts a new one (as in Silberschatz's text). `protocol` says which lock protocol the simulator
is to use.

Unit of fairness: none. Guarantee: the most urgent ready job runs at once (preemptive). Without aging the others may
starve; with it every job runs in the end, since its priority grows beyond any fixed one (no `boost` limit).
"""

from collections.abc import Mapping
from typing import Any

from fairq.core.job import Job
from fairq.core.policy import Cause, Need, Param, Stop, Time, Unit, View, Why
from fairq.core.ranking import Ranking
from fairq.policies.fixed import PROTOCOL, FixedPriority


class Priority(FixedPriority):
    name = "priority"
    unit = Unit.PRIORITY
    needs = frozenset({Need.PREEMPTION})
    per_job = ("priority", "turn", "used", "raised")
    memory = ("steps", "turns")
    params = (
        Param(name="preemptive", default=True, text="param.priority.preemptive"),
        Param(name="quantum", default=1, low=0, text="param.priority.quantum"),
        Param(name="preempted", default="first", choices=("first", "last"), text="param.priority.preempted"),
        Param(name="aging", default=0, low=0, text="param.priority.aging"),
        Param(name="boost", default=0, low=0, text="param.priority.boost"),
        PROTOCOL,
    )
    preemptive: bool
    quantum: int
    preempted: str
    aging: int
    boost: int

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.raised: dict[str, int] = {}  # by aging, while it waits and the turn after that
        self.steps: Ranking[str, int] = Ranking()  # when aging raises a waiting job next
        self.turn: dict[str, int] = {}  # place among equals, kept while it runs
        self.used: dict[str, int] = {}  # of the quantum; a job without an entry is due a new turn
        self.turns = 0

    def base(self, job: Job) -> int:
        return job.priority

    def rank(self, job: Job) -> tuple[int, ...]:
        return super().rank(job)[0] - self.raised.get(job.id, 0), self.turn[job.id]

    def slice(self, job: Job) -> int | None:
        return max(self.quantum - self.used[job.id], 0) if self.quantum and self.preemptive else None

    # Its turns
    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        if job.id not in self.used:
            self.turns += 1
            self.turn[job.id], self.used[job.id] = self.turns, 0
        if self.aging:
            self.steps.put(job.id, now + self.aging)
        super().arrive(job, now, cause)

    def charge(self, job: Job, amount: int, now: Time) -> None:
        self.used[job.id] += amount

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        if reason is not Stop.PREEMPTED or self.preempted == "last":
            self.used.pop(job.id, None)
        self.raised.pop(job.id, None)
        super().stop(job, now, reason, on)

    # Aging
    def leave(self, job: Job) -> None:
        super().leave(job)
        self.steps.drop(job.id)

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
