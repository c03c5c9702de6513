"""The placement contract: which upstream gets a job that the policy has picked. It never changes who is next."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fairq.core.job import Job


@dataclass(slots=True)
class Upstream:
    """One server of a pool, as a placement sees it. `free` may be negative after a reconfiguration."""

    name: str
    slots: int
    inflight: int = 0
    healthy: bool = True
    draining: bool = False

    @property
    def usable(self) -> bool:
        return self.healthy and not self.draining and self.slots > 0

    @property
    def free(self) -> int:
        return self.slots - self.inflight if self.usable else 0


class Placement:
    name: ClassVar[str]

    def choose(self, job: Job, upstreams: Sequence[Upstream]) -> Upstream:
        """One of `upstreams`: never none, in order of name, each with a free slot and fit for the job. Pure."""
        raise NotImplementedError

    def dispatched(self, job: Job, upstream: Upstream) -> None: ...
    def finished(self, job: Job, upstream: Upstream) -> None: ...
