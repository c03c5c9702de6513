"""Recording of a link: a step for each arrival, start and finish of a packet."""

from fairq.core.job import Job
from fairq.core.number import Number, quotient
from fairq.core.policy import Cause, Pick, Policy, Stop, Time, View
from fairq.sim.trace import Tape


class LinkTape(Tape):
    """A tape that writes the steps down as well. `tick`: how many ticks make a unit of time."""

    def __init__(self, policy: Policy, tick: int) -> None:
        super().__init__(policy)
        self.tick = tick

    def time(self, now: Number) -> Number:
        return quotient(now, self.tick)

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        super().arrive(job, now, cause)
        self.step(self.time(now), "arrive", packet=job.id)

    def take(self, now: Time, view: View) -> Job | None:
        decision = self.select(now, view)
        if not isinstance(decision, Pick):
            return None
        self.commit(decision, now)
        self.step(self.time(now), "start", decision.why, packet=decision.job.id)
        return decision.job

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        super().stop(job, now, reason, on)
        self.step(self.time(now), "finish", packet=job.id)
