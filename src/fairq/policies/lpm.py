"""Longest prefix match (SGLang; Zheng et al., NeurIPS 2024): the request with most of its prompt in the cache.

    select   argmax over waiting requests of matched prefix, among equals the first come; first come first served
             while more than `fallback` wait (0: never), as SGLang does to save time

Unit of fairness: none. It saves the most prefill; a client whose prompts share nothing may wait for ever behind one
whose prompts do.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fairq.core.job import Job
from fairq.core.matches import Matches
from fairq.core.policy import NOTHING_WAITS, Cause, Decision, Layer, Need, Param, Pick, Time, Unit, View, Why
from fairq.core.ready import JobPolicy


class LPM(JobPolicy):
    name = "lpm"
    unit = Unit.ORDER
    needs = frozenset({Need.TOKENS, Need.PREFIX})
    params = (Param(name="fallback", default=128, low=0, text="param.lpm.fallback"),)
    fallback: int

    def rank(self, job: Job) -> Any:
        return 0

    def why(self, job: Job) -> Why:
        return Why("longest-prefix")

    def select(self, now: Time, view: View) -> Decision:
        first = self.first()
        if first is None:
            return NOTHING_WAITS
        if self.fallback and len(self.entries) > self.fallback:
            return Pick(self.jobs[first[2]], Why("first-come"))
        self.matches.settle(view)
        flows = self.matches.spots.keys() - self.closed
        job, cached, _ = next(self.matches.longest_first(flows, view))
        return Pick(job, Why("longest-prefix", {"cached": cached}))

    def cached(self, blocks: Sequence[int]) -> None:
        self.matches.came(blocks)

    def bind(self, layer: Layer) -> None:
        super().bind(layer)
        self.matches = Matches(layer.prefix_tokens)

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        super().arrive(job, now, cause)
        self.matches.add(job)

    def leave(self, job: Job) -> None:
        super().leave(job)
        self.matches.remove(job)

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        super().restore(state, jobs)
        for job in self.jobs.values():
            self.matches.add(job)

    def peek(self, now: Time, view: View) -> Job | None:
        decision = self.select(now, view)
        return decision.job if isinstance(decision, Pick) else None

    def admit(self, now: Time, view: View) -> Job | None:
        job = self.peek(now, view)
        if job is None or not view.fits(job):
            return None
        self.leave(job)
        return job

    def take(self, now: Time, view: View) -> Job | None:
        job = self.peek(now, view)
        if job is not None:
            self.leave(job)
        return job
