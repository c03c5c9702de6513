"""What a router takes a request to cost before it knows."""

from __future__ import annotations

from fairq.core.job import Generation, Job
from fairq.sim.engine.call import Call

FIRST = 256  # tokens, of a client that has had no answer yet
SHARE = 8  # an answer counts for an eighth: slow, as a gateway's estimates are


class Prediction:
    """average: of the client's answers so far, and never more than a request's limit; oracle: the answer's length."""

    def __init__(self, kind: str) -> None:
        self.oracle = kind == "oracle"
        self.average: dict[str, int] = {}

    def of(self, job: Generation) -> int:
        if self.oracle:
            return min(job.size or 0, job.limit)
        return min(self.average.get(job.flow, FIRST), job.limit)

    def finished(self, call: Call) -> None:
        if call.reason in ("stop", "limit"):
            old = self.average.get(call.job.flow, call.produced)
            self.average[call.job.flow] = old + (call.produced - old) // SHARE

    def cost(self, job: Job) -> int:
        """c(r) = input tokens + 2 * predicted output tokens, whole and at least 1."""
        assert isinstance(job, Generation)
        return max(job.prompt + 2 * self.of(job), 1)
