"""The placement contract: which upstream gets a job that the policy has picked. It never changes who is next."""

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct

from fairq.core.job import Job


class Upstream(Struct):
    """One server of a pool, as a placement sees it. `free` may be negative after a reconfiguration."""

    name: str
    slots: int
    inflight: int = 0
    healthy: bool = True
    draining: bool = False

    @property
    def free(self) -> int:
        return self.slots - self.inflight if self.healthy and not self.draining else 0


class Placement:
    name: ClassVar[str]

    def choose(self, job: Job, upstreams: Sequence[Upstream]) -> Upstream:
        """One of `upstreams`, each of which has a free slot and may serve the job. Pure; never empty."""
        raise NotImplementedError

    def dispatched(self, job: Job, upstream: Upstream) -> None: ...
    def finished(self, job: Job, upstream: Upstream) -> None: ...
