"""CPU schedulers and lock protocols with one mistake each, all of which public programs make."""

from typing import Any

from fairq.core.job import Job
from fairq.core.policy import NOTHING_WAITS, Cause, Decision, Pick, Time, View, Why
from fairq.locks import Ceiling, Inheritance, Protocol
from fairq.policies.edf import EDF
from fairq.policies.eevdf import EEVDF
from fairq.policies.lottery import Lottery
from fairq.policies.mlfq import MLFQ
from fairq.policies.rr import RR
from fairq.policies.srtf import SRTF
from fairq.policies.stride import Stride


class ExpiredFirst(RR):
    """Whose quantum has ended is queued before those that arrive at that instant."""

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        self.expired_first, self.overtakes = True, "instant"
        super().arrive(job, now, cause)


class ForgetsProgress(SRTF):
    """Compares sizes, not what is left of them."""

    def charge(self, job: Job, amount: int, now: Time) -> None: ...


class RelativeDeadlines(EDF):
    """The job with the least time it was given, not with the least time it has left."""

    def rank(self, job: Job) -> int:
        return (job.deadline or 1 << 62) - job.arrival


class ResetsOnSleep(MLFQ):
    """A job that sleeps starts its allotment afresh, although it was asked to count on."""

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.anti_gaming = False


class NeverBoosts(MLFQ):
    def timer(self, now: Time) -> None:
        self.boosts_at += self.boost


class KeepsItsPass(Stride):
    """A client that was away comes back with the pass it left with, and runs until it has caught up."""

    def entered(self, flow: str, cause: Cause) -> None:
        self.passes[flow] = self.remain.pop(flow, self.normalized(flow, self.quantum))

    def left(self, flow: str) -> None:
        self.remain[flow] = self.passes.pop(flow)


class OffByOne(Lottery):
    """The first cumulative sum that reaches the draw wins, so ticket 0 of the next client is always lost."""

    def select(self, now: Time, view: View) -> Decision:
        decision = super().select(now, view)
        if isinstance(decision, Pick):
            drawn = int(decision.why.values["ticket"])
            for flow in sorted(self.ranking):
                drawn -= int(self.tickets(flow))
                if drawn <= 0:
                    return Pick(self.head(flow), decision.why)
        return decision


class AnyoneEligible(EEVDF):
    """The earliest deadline, whether it is eligible or not."""

    def select(self, now: Time, view: View) -> Decision:
        if not self.ranking:
            return NOTHING_WAITS
        flow = min(self.ranking, key=lambda flow: (self.clients[flow].due, flow))
        values: dict[str, Any] = {"v": str(self.clients[flow].v), "virtual_time": str(self.lags.virtual_time)}
        return Pick(self.head(flow), Why("earliest-deadline", values))


class NoLagKept(EEVDF):
    """Everybody joins with no lag: a nap cancels debts."""

    def left(self, flow: str) -> None:
        super().left(flow)
        self.clients[flow].owed = 0


class CeilingThatIsInheritance(Ceiling):
    """Looks only at the resource that is asked for."""

    def blocker(self, job: str, resource: str) -> str | None:
        return Protocol.blocker(self, job, resource)

    woken = Protocol.woken


class OneLink(Inheritance):
    """Inherits from those that wait for it, not from those that wait for them."""

    def effective(self, job: str) -> int:
        return max([self.own[job], *(self.own[waiter] for waiter in self.waiters(job))])


class NeverGivesBack(Inheritance):
    """Keeps an inherited priority after it has let go."""

    def __init__(self, ceilings: Any) -> None:
        super().__init__(ceilings)
        self.highest: dict[str, int] = {}

    def effective(self, job: str) -> int:
        self.highest[job] = max(super().effective(job), self.highest.get(job, self.own[job]))
        return self.highest[job]

    def concerned(self) -> set[str]:
        return super().concerned() | (self.highest.keys() & self.own.keys())
