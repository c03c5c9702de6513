"""Deficit round robin (Shreedhar, Varghese 1996, figure 4). The plan of a pick: where the round stands after it."""

from collections import deque
from typing import Any

from fairq.core.job import Job
from fairq.core.policy import NOTHING_WAITS, Cause, Decision, Need, Pick, Policy, Time, Unit, View, Why

QUANTUM = 500


class DRR(Policy):
    name, unit, needs = "drr", Unit.SERVICE, frozenset({Need.SIZE})

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.queues: dict[str, deque[Job]] = {}
        self.round: tuple[deque[str], dict[str, int], bool] = (deque(), {}, False)  # ring, deficits, visit has begun?

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        if job.flow not in self.queues:
            self.queues[job.flow] = deque()
            self.round[0].append(job.flow)
            self.round[1][job.flow] = 0
        self.queues[job.flow].append(job)

    def select(self, now: Time, view: View) -> Decision:
        if not self.queues:
            return NOTHING_WAITS
        ring, deficit, begun = deque(self.round[0]), dict(self.round[1]), self.round[2]
        while True:
            flow = ring[0]
            deficit[flow] += 0 if begun else QUANTUM
            if self.layer.cost(head := self.queues[flow][0]) <= deficit[flow]:
                return Pick(head, Why("fits-deficit", {"deficit": deficit[flow]}), (ring, deficit, True))
            ring.rotate(-1)
            begun = False

    def commit(self, decision: Decision, now: Time) -> None:
        self.round: Any = decision.plan
        if isinstance(decision, Pick):
            self.queues[decision.job.flow].popleft()

    def charge(self, job: Job, amount: int, now: Time) -> None:
        ring, deficit, _ = self.round
        deficit[job.flow] -= amount
        if not self.queues[job.flow]:
            del self.queues[job.flow], deficit[job.flow]
            ring.popleft()
            self.round = (ring, deficit, False)
