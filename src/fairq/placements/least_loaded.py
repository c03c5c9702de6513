"""Least loaded: the upstream with the smallest share of its slots in use; ties go to the earlier name."""

from collections.abc import Sequence

from fairq.core.job import Job
from fairq.core.placement import Placement, Upstream


class LeastLoaded(Placement):
    name = "least-loaded"

    def choose(self, job: Job, upstreams: Sequence[Upstream]) -> Upstream:
        if len(upstreams) == 1:
            return upstreams[0]
        return min(upstreams, key=lambda upstream: (upstream.inflight / upstream.slots, upstream.name))
