"""Earliest deadline first (Liu, Layland 1973), preemptive."""

from fairq.core.job import Job
from fairq.core.policy import NOTHING_WAITS, Cause, Decision, Need, Pick, Policy, Time, Unit, View, Why
from fairq.core.ranking import Ranking


class EDF(Policy):
    name, unit, needs = "edf", Unit.DEADLINE, frozenset({Need.DEADLINE, Need.PREEMPTION})

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.ready: Ranking[str, tuple[int, int]] = Ranking()
        self.jobs: dict[str, Job] = {}

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        assert job.deadline is not None
        self.jobs[job.id] = job
        self.ready.put(job.id, (job.deadline, job.seq))

    def cancel(self, job: Job, now: Time) -> None:
        self.ready.drop(job.id)
        del self.jobs[job.id]

    def select(self, now: Time, view: View) -> Decision:
        first = self.ready.first()
        if first is None:
            return NOTHING_WAITS
        return Pick(self.jobs[first[1]], Why("earliest-deadline", {"deadline": first[0][0]}))

    def commit(self, decision: Decision, now: Time) -> None:
        if isinstance(decision, Pick):
            self.cancel(decision.job, now)

    def preempts(self, running: Job, now: Time) -> bool:
        first = self.ready.first()
        return first is not None and running.deadline is not None and first[0][0] < running.deadline
