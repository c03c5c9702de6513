"""Longest prefix match (SGLang; Zheng et al., NeurIPS 2024): the request with most of its prompt in the cache.

    select   argmax over waiting requests of matched prefix, among equals the first come; first come first served
             while more than `fallback` wait (0: never), since looking at all of them costs time

Unit of fairness: none. It saves the most prefill; a client whose prompts share nothing may wait for ever behind one
whose prompts do.
"""

from typing import Any

from fairq.core.job import Job
from fairq.core.policy import NOTHING_WAITS, Decision, Need, Param, Pick, Time, Unit, View, Why
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
        open_ = [self.jobs[id_] for id_ in self.entries]
        if not open_:
            return NOTHING_WAITS
        if self.fallback and len(open_) > self.fallback:
            return Pick(min(open_, key=lambda job: (job.seq, job.id)), Why("first-come"))
        cached = {job.id: view.cached_prefix(job) for job in open_}
        first = min(open_, key=lambda job: (-cached[job.id], job.seq, job.id))
        return Pick(first, Why("longest-prefix", {"cached": cached[first.id]}))

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
