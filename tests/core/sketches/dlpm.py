"""Deficit longest prefix match (arXiv 2501.14312, Alg. 1): the longest cached prefix among clients with quota left.

The plan is the quotas after this pass. One that refills and admits nothing waits with a plan, so refills count once.
"""

from fairq.core.job import Job
from fairq.core.policy import NOTHING_WAITS, Cause, Decision, Need, Param, Pick, Policy, Time, Unit, View, Wait, Why


class DLPM(Policy):
    name, unit, needs = "dlpm", Unit.SERVICE, frozenset({Need.SIZE, Need.PREFIX})
    params = (Param(name="quantum", default=1000),)
    quantum: int

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.queue: dict[str, Job] = {}
        self.quota: dict[str, int] = {}
        self.refills: dict[str, int] = {}

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        self.queue[job.id] = job
        self.quota.setdefault(job.flow, 0)

    def cancel(self, job: Job, now: Time) -> None:
        del self.queue[job.id]

    def select(self, now: Time, view: View) -> Decision:
        if not self.queue:
            return NOTHING_WAITS
        quota, refilled = dict(self.quota), 0
        clients = {job.flow for job in self.queue.values()}
        while not any(quota[client] > 0 for client in clients):
            quota = {client: q + self.quantum if q <= 0 else q for client, q in quota.items()}
            refilled += 1
        for job in sorted(self.queue.values(), key=lambda job: (-view.cached_prefix(job), job.seq)):
            if quota[job.flow] > 0 and view.fits(job):
                return Pick(job, Why("longest-prefix", {"cached": view.cached_prefix(job)}), quota)
        return Wait(Why("does-not-fit"), quota if refilled else None)

    def commit(self, decision: Decision, now: Time) -> None:
        self.quota = decision.plan
        if isinstance(decision, Pick):
            del self.queue[decision.job.id]

    def charge(self, job: Job, amount: int, now: Time) -> None:
        self.quota[job.flow] -= amount
