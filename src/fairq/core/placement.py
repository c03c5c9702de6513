"""The placement contract: which upstream gets a job that the policy has picked. It never changes who is next."""

from collections.abc import Sequence
from typing import ClassVar

from fairq.core.errors import UnknownName
from fairq.core.job import Job
from fairq.core.param import Param


class Upstream:
    """One server of a pool, as a placement sees it. `free` may be negative after a reconfiguration."""

    __slots__ = ("draining", "healthy", "inflight", "name", "slots")

    def __init__(self, name: str, slots: int, inflight: int = 0, healthy: bool = True, draining: bool = False) -> None:
        self.name, self.slots, self.inflight = name, slots, inflight
        self.healthy, self.draining = healthy, draining

    @property
    def usable(self) -> bool:
        return self.healthy and not self.draining and self.slots > 0

    @property
    def free(self) -> int:
        return self.slots - self.inflight if self.usable else 0


class Placement:
    """needs_prefix: it asks jobs for the blocks of their prompts, which not every layer knows."""

    name: ClassVar[str]
    needs_prefix: ClassVar[bool] = False
    params: ClassVar[tuple[Param, ...]] = ()

    def __init__(self, **given: object) -> None:
        for name in given.keys() - {param.name for param in self.params}:
            raise UnknownName(f"{self.name} parameter", name, [p.name for p in self.params] or ["(it has none)"])
        for param in self.params:
            setattr(self, param.name, param.parse(self.name, given.get(param.name, param.default)))

    def choose(self, job: Job, upstreams: Sequence[Upstream]) -> Upstream:
        """One of `upstreams`: never none, in order of name, each with a free slot and fit for the job. Pure."""
        raise NotImplementedError

    def dispatched(self, job: Job, upstream: Upstream) -> None: ...
    def finished(self, job: Job, upstream: Upstream) -> None: ...
