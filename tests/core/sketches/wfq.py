"""Weighted fair queueing (PGPS): the least virtual finish time, with the virtual time of the fluid system itself."""

from fractions import Fraction

from fairq.core.job import Flow, Job
from fairq.core.policy import NOTHING_WAITS, Cause, Decision, Need, Pick, Policy, Time, Unit, View, Why


class WFQ(Policy):
    name, unit, needs = "wfq", Unit.NORMALIZED, frozenset({Need.SIZE, Need.RATE})

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.weights: dict[str, Fraction] = {}
        self.finish: dict[str, Fraction] = {}  # of each flow's last packet; GPS serves the flow until V gets there
        self.waiting_: list[tuple[Fraction, int, Job]] = []
        self.virtual_time, self.at = Fraction(0), Fraction(0)

    def flow_changed(self, flow: Flow, now: Time) -> None:
        self.weights[flow.id] = flow.weight

    def advance(self, now: Time) -> None:
        """dV/dt = rate / weights of the flows that GPS is serving; it bends where one of them ends."""
        while busy := {flow: end for flow, end in self.finish.items() if end > self.virtual_time}:
            slope = self.layer.rate / sum(self.weights[flow] for flow in busy)
            ends = self.at + (min(busy.values()) - self.virtual_time) / slope
            if ends > now:
                self.virtual_time += (now - self.at) * slope
                break
            self.virtual_time, self.at = min(busy.values()), Fraction(ends)
        self.at = Fraction(now)

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        self.advance(now)
        start = max(self.virtual_time, self.finish.get(job.flow, Fraction(0)))
        self.finish[job.flow] = start + self.layer.cost(job) / self.weights[job.flow]
        self.waiting_.append((self.finish[job.flow], job.seq, job))

    def select(self, now: Time, view: View) -> Decision:
        if not self.waiting_:
            return NOTHING_WAITS
        finish, _, job = min(self.waiting_)
        return Pick(job, Why("least-finish", {"finish": str(finish)}))

    def commit(self, decision: Decision, now: Time) -> None:
        if isinstance(decision, Pick):
            self.waiting_.remove(min(self.waiting_))
