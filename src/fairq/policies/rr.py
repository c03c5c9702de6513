"""Round robin (OSTEP, chapter 7): the head of the queue runs for at most one quantum; unfinished, it goes to the tail.

    select  the head of the ready queue
    run     min(quantum, what is left)
    return  to the tail, behind the jobs that arrived until that instant

With `expired-first` the expired job goes before others, as some texts and programs have it (the article's lab does
not): `overtakes=quantum`, before all that arrived while it ran; `instant`, at the very moment its quantum ends.

Unit of fairness: service, in whole quanta: n jobs that stay ready differ by at most one quantum. Guarantees: with n
jobs present a job first runs within (n - 1) quanta; no job starves. A quantum that no job outlasts is FCFS; a short
one pays for response with switches.
"""

from collections.abc import Mapping
from typing import Any

from fairq.core.job import Job
from fairq.core.policy import Cause, Decision, Need, Param, Pick, Stop, Time, Unit, View, Why
from fairq.core.ready import JobPolicy


class RR(JobPolicy):
    name = "rr"
    unit = Unit.SERVICE
    needs = frozenset({Need.PREEMPTION})
    memory = ("queued", "begun", "turns")
    params = (
        Param(name="quantum", default=1, low=1, text="param.rr.quantum"),
        Param(name="expired_first", default=False, text="param.rr.expired-first"),
        Param(name="overtakes", default="quantum", choices=("quantum", "instant"), text="param.rr.overtakes"),
    )
    quantum: int
    expired_first: bool
    overtakes: str

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.queued: dict[str, tuple[int, int, int]] = {}  # since when, before or after whom of then, which in turn
        self.begun: dict[str, int] = {}  # when the present quantum of a running job began
        self.turns = 0

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        begun = self.begun.pop(job.id, now)
        since, place = now, 1
        if cause is Cause.PREEMPTED:
            since = begun if self.expired_first and self.overtakes == "quantum" else now
            place = 0 if self.expired_first and self.overtakes == "instant" else 2
        self.turns += 1
        self.queued[job.id] = (since, place, self.turns)
        super().arrive(job, now, cause)

    def commit(self, decision: Decision, now: Time) -> None:
        super().commit(decision, now)
        if isinstance(decision, Pick):
            self.begun[decision.job.id] = now

    def take(self, now: Time, view: View) -> Job | None:
        job = super().take(now, view)
        if job is not None:
            self.begun[job.id] = now
        return job

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        if reason is Stop.FINISHED or reason is Stop.BLOCKED:
            self.begun.pop(job.id, None)

    def rank(self, job: Job) -> tuple[int, int, int]:
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
