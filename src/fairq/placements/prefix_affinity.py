"""Prefix affinity: the upstream that holds most of the prompt's beginning, unless it is much fuller than the others.

What cache-aware routers ship. It is blind to who sends: a client whose prompts all begin alike keeps one upstream for
itself, which D²LPM prevents. Ties go to the least loaded, then to the earlier name.
"""

from collections.abc import Sequence

from fairq.core.job import Job
from fairq.core.param import Param
from fairq.core.placement import Placement, Upstream
from fairq.placements.holdings import Holdings, prefix_of


class PrefixAffinity(Placement):
    """imbalance  with so many more jobs in flight than the emptiest, an upstream's cache no longer counts; 0: always
    blocks     that are remembered of each upstream
    """

    name = "prefix-affinity"
    needs_prefix = True
    params = (
        Param(name="imbalance", default=32, low=0, text="param.placement.imbalance"),
        Param(name="blocks", default=100_000, low=1, text="param.placement.blocks"),
    )
    imbalance: int
    blocks: int

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.holdings = Holdings(self.blocks)

    def choose(self, job: Job, upstreams: Sequence[Upstream]) -> Upstream:
        emptiest = min(upstream.inflight for upstream in upstreams)
        fair = [one for one in upstreams if not self.imbalance or one.inflight < emptiest + self.imbalance]
        _, names = self.holdings.longest(prefix_of(job), [one.name for one in fair])
        return min((one for one in fair if one.name in names), key=lambda one: one.inflight)

    def dispatched(self, job: Job, upstream: Upstream) -> None:
        self.holdings.send(prefix_of(job), upstream.name)
