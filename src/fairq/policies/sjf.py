"""Shortest job first (Smith, Naval Res. Logistics Quarterly 1956; OSTEP, chapter 7): run the shortest to its end.

    select  argmin over waiting jobs of (p_i, arrival), whenever the processor is free

p_i is what the policy is told: the job's `estimate` where there is one, else its true size. A job that sleeps comes
back with its next burst, and competes with that.

Unit of fairness: none; it minimises the mean wait. Guarantee: with all jobs present at the start, sizes true, one
processor and no preemption, no order has a smaller mean waiting time (exchange argument: a longer job before a
shorter one can be swapped to gain). With later arrivals it is not optimal. Long jobs can starve, a wrong estimate
moves a job, and whoever understates its size gains.
"""

from collections.abc import Mapping
from typing import Any

from fairq.core.job import Job
from fairq.core.policy import Need, Unit, Why
from fairq.core.ready import JobPolicy


class SJF(JobPolicy):
    name = "sjf"
    unit = Unit.COMPLETION
    needs = frozenset({Need.SIZE})

    def rank(self, job: Job) -> int:
        return self.layer.cost(job)

    def why(self, job: Job) -> Why:
        return Why("shortest", {"size": self.layer.cost(job)})

    def show(self) -> Mapping[str, Any]:
        return {"size": {id_: self.layer.cost(job) for id_, job in self.jobs.items()}}
