"""Round robin (OSTEP, chapter 7): the head of the queue runs for at most one quantum; unfinished, it goes to the tail.

    select  the head of the ready queue
    run     min(quantum, what is left)
    return  to the tail, behind the jobs that arrived until that instant

With `expired-first` the expired job goes before those that arrive at the very instant its quantum ends (some texts
and programs do it so; the article's lab does not).

Unit of fairness: service, in whole quanta: n jobs that stay ready differ by at most one quantum. Guarantees: with n
jobs present a job first runs within (n - 1) quanta; no job starves. A quantum that no job outlasts is FCFS; a short
one pays for response with switches.
"""

from collections.abc import Mapping
from typing import Any

from fairq.core.job import Job
from fairq.core.policy import Cause, Need, Param, Time, Unit, Why
from fairq.core.ready import JobPolicy


class RR(JobPolicy):
    name = "rr"
    unit = Unit.SERVICE
    needs = frozenset({Need.PREEMPTION})
    memory = ("queued", "turns")
    params = (
        Param(name="quantum", default=1, low=1, text="param.rr.quantum"),
        Param(name="expired_first", default=False, text="param.rr.expired-first"),
    )
    quantum: int
    expired_first: bool

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.queued: dict[str, tuple[int, bool, int]] = {}  # when, with the later half of that instant?, which in turn
        self.turns = 0

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        expired = cause is Cause.PREEMPTED
        self.turns += 1
        self.queued[job.id] = (now, expired is not self.expired_first, self.turns)
        super().arrive(job, now, cause)

    def rank(self, job: Job) -> tuple[int, bool, int]:
        return self.queued[job.id]

    def leave(self, job: Job) -> None:
        super().leave(job)
        del self.queued[job.id]

    def slice(self, job: Job) -> int:
        return self.quantum

    def why(self, job: Job) -> Why:
        return Why("next-in-turn", {"since": self.queued[job.id][0]})

    def show(self) -> Mapping[str, Any]:
        return {"queue": sorted(self.queued, key=self.queued.__getitem__)}
