"""Fair queueing with one mistake each."""

from collections.abc import Mapping
from typing import Any

from fairq.core.job import Flow, Job
from fairq.core.number import Number
from fairq.core.policy import Time
from fairq.policies.sfq import SFQ


class BanksIdleCredit(SFQ):
    """A flow comes back with the meter it left with: it spends at once what it did not use for an hour."""

    def joined(self, flow: str, now: Time) -> None:
        self.meters.setdefault(flow, self.origin)


class ShedsDebt(SFQ):
    """A flow that leaves is forgotten: one job at a time, it is always next."""

    def joined(self, flow: str, now: Time) -> None:
        self.meters[flow] = self.virtual_time


class Reranked(SFQ):
    """For those that rank by something else than the meter."""

    def charge(self, job: Job, amount: int, now: Time) -> None:
        super().charge(job, amount, now)
        if job.flow in self.ranking:
            self.ranking.put(job.flow, self.rank(job.flow))


class ChargesBeforeChoosing(Reranked):
    """Least finish tag first: the cost has a part in whether a job goes now, so long jobs wait for short ones."""

    def rank(self, flow: str) -> Number:
        return self.meters[flow] + self.normalized(flow, self.layer.cost(self.head(flow)))


class ForgetsWeights(SFQ):
    def flow_changed(self, flow: Flow, now: Time) -> None:
        super().flow_changed(Flow(id=flow.id), now)


class CarriesOver(SFQ):
    """No idle reset: whoever was served in the last busy period pays for it in the next."""

    def idled(self, now: Time) -> None: ...


class Refunds(SFQ):
    """A cancelled job gives back a charge that it never paid."""

    def cancel(self, job: Job, now: Time) -> None:
        if job.flow in self.ranking:
            self.meters[job.flow] -= self.normalized(job.flow, self.layer.cost(job))
        super().cancel(job, now)


class LosesTags(SFQ):
    """What it restores has no meters."""

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        level = dict.fromkeys(state["meters"], state["virtual_time"])
        super().restore({**state, "meters": level}, jobs)
