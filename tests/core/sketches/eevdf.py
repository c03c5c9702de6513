"""Earliest eligible virtual deadline first, as Linux states it since 6.6: lag_i = w_i (V - v_i), V the weighted mean.

A sleeper takes its lag along: it comes back so placed that its lag is the stored one after it has joined.
"""

from fractions import Fraction

from fairq.core.job import Flow, Job
from fairq.core.policy import NOTHING_WAITS, Cause, Decision, Pick, Policy, Stop, Time, Unit, View, Why


class EEVDF(Policy):
    name, unit = "eevdf", Unit.NORMALIZED

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.ready: dict[str, Job] = {}
        self.weights: dict[str, Fraction] = {}
        self.virtual: dict[str, Fraction] = {}  # v of those that are here, a running one too
        self.deadline: dict[str, Fraction] = {}
        self.stored: dict[str, Fraction] = {}  # V - v of those asleep

    def flow_changed(self, flow: Flow, now: Time) -> None:
        self.weights[flow.id] = flow.weight

    def total(self) -> Fraction:
        return sum((self.weights[flow] for flow in self.virtual), Fraction(0))

    def mean(self) -> Fraction:
        return sum((self.weights[f] * v for f, v in self.virtual.items()), Fraction(0)) / (self.total() or 1)

    def lag(self, flow: str) -> Fraction:
        return self.weights[flow] * (self.mean() - self.virtual[flow])

    def request(self, job: Job) -> Fraction:
        return (job.slice or 1) / self.weights[job.flow]

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        flow = job.flow
        self.ready[flow] = job
        if flow not in self.virtual:
            others = self.total()
            inflated = self.stored.pop(flow, Fraction(0)) * (others + self.weights[flow]) / (others or 1)
            self.virtual[flow] = self.mean() - inflated
            self.deadline[flow] = self.virtual[flow] + self.request(job)

    def select(self, now: Time, view: View) -> Decision:
        if not self.ready:
            return NOTHING_WAITS
        mean = self.mean()
        flow = min((f for f in self.ready if self.virtual[f] <= mean), key=lambda f: (self.deadline[f], f))
        return Pick(self.ready[flow], Why("earliest-eligible", {"deadline": str(self.deadline[flow])}))

    def commit(self, decision: Decision, now: Time) -> None:
        if isinstance(decision, Pick):
            del self.ready[decision.job.flow]

    def charge(self, job: Job, amount: int, now: Time) -> None:
        self.virtual[job.flow] += amount / self.weights[job.flow]
        if self.virtual[job.flow] >= self.deadline[job.flow]:
            self.deadline[job.flow] = self.virtual[job.flow] + self.request(job)

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        if reason in (Stop.FINISHED, Stop.BLOCKED):
            self.stored[job.flow] = self.mean() - self.virtual[job.flow]
            del self.virtual[job.flow], self.deadline[job.flow]
