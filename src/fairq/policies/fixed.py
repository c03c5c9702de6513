"""What fixed-priority policies share: the most urgent ready job runs, and lock protocols may raise a job's priority."""

from collections.abc import Mapping
from typing import Any

from fairq.core.job import Job
from fairq.core.policy import Param, Time
from fairq.core.ready import JobPolicy

PROTOCOL = Param(
    name="protocol",
    default="none",
    choices=("none", "inheritance", "ceiling", "immediate-ceiling"),
    text="param.priority.protocol",
)


class FixedPriority(JobPolicy):
    """A subclass says `base(job)`, a job's own priority; a larger one is more urgent. Equals: first come, first served.

    Lock protocols are the simulator's: it reads which one it is to use from `protocol`, and tells a job's priority by
    `priority_changed`.
    """

    preemptive: bool = True
    protocol: str

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.priority: dict[str, int] = {}  # own or inherited, of jobs that were ranked and live

    def base(self, job: Job) -> int:
        raise NotImplementedError

    def rank(self, job: Job) -> tuple[int, ...]:
        urgency = self.priority.get(job.id)
        if urgency is None:
            urgency = self.priority[job.id] = self.base(job)
        return (-urgency,)

    def preempts(self, running: Job, now: Time) -> bool:
        first = self.first()
        return self.preemptive and first is not None and first[0][0] < self.rank(running)[0]

    def priority_changed(self, job: Job, now: Time) -> None:
        self.priority[job.id] = job.priority
        if job.id in self.jobs:
            self.place(self.jobs[job.id])

    def show(self) -> Mapping[str, Any]:
        return {"priority": dict(self.priority)}
