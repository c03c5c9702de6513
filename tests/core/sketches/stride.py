"""Stride scheduling (MIT/LCS/TM-528) with leave and join: what a client is ahead or behind by survives its absence."""

from fractions import Fraction

from fairq.core.job import Flow, Job
from fairq.core.policy import NOTHING_WAITS, Cause, Decision, Pick, Policy, Stop, Time, Unit, View, Why


class Stride(Policy):
    name, unit = "stride", Unit.NORMALIZED

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.ready: dict[str, Job] = {}
        self.tickets: dict[str, Fraction] = {}
        self.passes: dict[str, Fraction] = {}  # of the clients that are here, running ones too
        self.remain: dict[str, Fraction] = {}
        self.global_pass = Fraction(0)

    def flow_changed(self, flow: Flow, now: Time) -> None:
        self.tickets[flow.id] = flow.weight

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        self.ready[job.flow] = job
        if job.flow not in self.passes:
            self.passes[job.flow] = self.global_pass + self.remain.pop(job.flow, 1 / self.tickets[job.flow])

    def select(self, now: Time, view: View) -> Decision:
        if not self.ready:
            return NOTHING_WAITS
        flow = min(self.ready, key=lambda flow: (self.passes[flow], flow))
        return Pick(self.ready[flow], Why("least-pass", {"pass": str(self.passes[flow])}))

    def commit(self, decision: Decision, now: Time) -> None:
        if isinstance(decision, Pick):
            del self.ready[decision.job.flow]

    def charge(self, job: Job, amount: int, now: Time) -> None:
        self.passes[job.flow] += amount / self.tickets[job.flow]
        self.global_pass += amount / sum((self.tickets[flow] for flow in self.passes), Fraction(0))

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        if reason in (Stop.FINISHED, Stop.BLOCKED):
            self.remain[job.flow] = self.passes.pop(job.flow) - self.global_pass
