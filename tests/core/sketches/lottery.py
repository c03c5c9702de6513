"""Lottery (Waldspurger, Weihl 1994): the first client whose running sum of tickets exceeds the draw.

While a client is blocked on another, it lends that one its tickets.
"""

from fairq.core.job import Flow, Job
from fairq.core.policy import NOTHING_WAITS, Cause, Decision, Need, Pick, Policy, Stop, Time, Unit, View, Why


class Lottery(Policy):
    name, unit, needs = "lottery", Unit.NORMALIZED, frozenset({Need.RANDOM})

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.ready: dict[str, Job] = {}
        self.tickets: dict[str, int] = {}
        self.lent: dict[str, str] = {}
        self.draws = 0

    def flow_changed(self, flow: Flow, now: Time) -> None:
        self.tickets[flow.id] = int(flow.weight)

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        self.lent.pop(job.flow, None)
        self.ready[job.flow] = job

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        if reason is Stop.BLOCKED and on:
            self.lent[job.flow] = on

    def worth(self, flow: str) -> int:
        return self.tickets[flow] + sum(self.worth(lender) for lender, on in self.lent.items() if on == flow)

    def select(self, now: Time, view: View) -> Decision:
        if not self.ready:
            return NOTHING_WAITS
        assert self.layer.random
        left = draw = self.layer.random(self.draws, sum(map(self.worth, self.ready)))
        for flow in sorted(self.ready):
            left -= self.worth(flow)
            if left < 0:
                return Pick(self.ready[flow], Why("drawn", {"draw": draw}))
        raise AssertionError("a draw is below the sum of all tickets")

    def commit(self, decision: Decision, now: Time) -> None:
        self.draws += 1
        if isinstance(decision, Pick):
            del self.ready[decision.job.flow]
