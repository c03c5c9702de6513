"""Least loaded: the upstream with the smallest share of its slots in use; ties go to the earlier name."""

from collections.abc import Sequence

from fairq.core.job import Job
from fairq.core.placement import Placement, Upstream


class LeastLoaded(Placement):
    name = "least-loaded"

    def choose(self, job: Job, upstreams: Sequence[Upstream]) -> Upstream:
        best = upstreams[0]
        for upstream in upstreams[1:]:
            if upstream.inflight * best.slots < best.inflight * upstream.slots:
                best = upstream
        return best
