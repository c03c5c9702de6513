"""Shortest remaining time first, SRPT, STCF (Schrage, Operations Research 1968): the job with the least left to do.

    select   argmin over waiting jobs of (r_i, arrival)
    preempt  when a waiting job has less left than the running one
    charge   r_i -= service

r_i starts as what the policy is told (`estimate`, else the true size) and never goes below 0: a job that has outlived
its estimate is taken to be about to end.

Unit of fairness: none; it minimises the mean flow time. Guarantee (Schrage 1968): with true sizes, one processor of
constant speed and free preemption, no schedule has a smaller total flow time, whatever the arrivals. Long jobs starve
while short ones keep coming, and whoever understates its size gains.
"""

from collections.abc import Mapping
from typing import Any

from fairq.core.job import Job
from fairq.core.policy import Cause, Need, Time, Unit, Why
from fairq.core.ready import JobPolicy


class SRTF(JobPolicy):
    name = "srtf"
    unit = Unit.COMPLETION
    needs = frozenset({Need.SIZE, Need.PREEMPTION})
    per_job = ("left",)
    takes_over = True

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.left: dict[str, int] = {}  # r, of waiting and running jobs

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        if cause is not Cause.PREEMPTED:
            self.left[job.id] = self.layer.cost(job)
        super().arrive(job, now, cause)

    def charge(self, job: Job, amount: int, now: Time) -> None:
        self.left[job.id] = max(self.left[job.id] - amount, 0)

    def rank(self, job: Job) -> int:
        return self.left[job.id]

    def why(self, job: Job) -> Why:
        return Why("least-remaining", {"remaining": self.left[job.id]})

    def show(self) -> Mapping[str, Any]:
        return {"remaining": dict(self.left)}
