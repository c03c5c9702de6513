"""Policies that serve in a wrong order, or not at all."""

from tests.bad.sfq import Reranked

from fairq.core.job import Job
from fairq.core.number import Number
from fairq.core.policy import NOTHING_WAITS, Decision, Pick, Time, Unit, View, Wait, Why
from fairq.core.queues import FlowPolicy
from fairq.policies.fcfs import FCFS


class Lifo(FCFS):
    """The youngest job of each flow first."""

    def head(self, flow: str) -> Job:
        return self.queues[flow][-1]

    def select(self, now: Time, view: View) -> Decision:
        first = self.ranking.first()
        return Pick(self.head(first[1]), Why("youngest")) if first else NOTHING_WAITS

    def arrive(self, job: Job, now: Time, cause: object = None) -> None:
        super().arrive(job, now)
        if job.flow in self.ranking:
            self.ranking.put(job.flow, self.rank(job.flow))


class Starving(FlowPolicy):
    """The first flow of the alphabet, always."""

    name = "starving"
    unit = Unit.ORDER

    def rank(self, flow: str) -> int:
        return 0

    def why(self, flow: str, rank: int) -> Why:
        return Why("first-of-all")


class GreedyReverse(Reranked):
    """The one that has had most gets more."""

    def rank(self, flow: str) -> Number:
        return -self.meters[flow]


class Impure(FCFS):
    """`select` already takes the job."""

    def select(self, now: Time, view: View) -> Decision:
        decision = super().select(now, view)
        if isinstance(decision, Pick):
            super().commit(decision, now)
        return decision

    def commit(self, decision: Decision, now: Time) -> None: ...


class Fickle(FCFS):
    """Asked twice, it says two things."""

    asked = 0

    def select(self, now: Time, view: View) -> Decision:
        self.asked += 1
        names = sorted(self.ranking)
        return Pick(self.head(names[self.asked % len(names)]), Why("whim")) if names else NOTHING_WAITS


class Lazy(FCFS):
    """It waits although somebody could go."""

    def select(self, now: Time, view: View) -> Decision:
        return Wait(Why("not-yet")) if self.waiting() < 2 else super().select(now, view)


class ServesThePaused(FCFS):
    def flow_open(self, flow: str, open_: bool, now: Time) -> None: ...
