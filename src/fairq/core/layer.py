"""The layer under a policy: what it gives, and what a policy may see of it."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from fairq.core.job import Job
from fairq.core.layer_defaults import no_service, size_of
from fairq.core.number import Normalize, Number, exact, to_json


class Need(StrEnum):
    """What a policy must be given by its layer; a missing one is a clear error at `bind`."""

    SIZE = "size"
    RATE = "rate"
    CAPACITY = "capacity"
    PREFIX = "prefix"
    DEADLINE = "deadline"
    PREEMPTION = "preemption"
    TOKENS = "service by the token"
    RANDOM = "random"
    FLUID = "fluid"


Draw = Callable[[int, int], int]
"""(n, stop) -> the n-th draw of a run, uniform in 0..stop-1. A function of its seed and n; passed in, never made."""


class View(Protocol):
    """What a policy may see of its layer when it selects. Read-only."""

    def fits(self, job: Job) -> bool: ...
    def cached_prefix(self, job: Job) -> int: ...
    @property
    def running(self) -> Sequence[Job]: ...


class Layer(Struct, kw_only=True):
    """What a layer gives its policy once.

    cost       what `charge` will be given if the job is dispatched now
    normalize  (amount, weight's numerator, its denominator) -> tag distance
    tag        how a tag is written where people read it; a layer whose tags are scaled divides here
    rate       service per time unit (a link's)
    capacity   resource totals (a cluster's)
    random     the n-th draw
    clock      the service clock: units that every started job has been given so far (an engine's decode iterations)
    prefix_tokens  of a block of a prompt's prefix; 0 where prompts have none
    rebase     may tags be shifted by a constant? Never where they are shown beside the article's
    """

    name: str
    provides: frozenset[Need] = frozenset()
    cost: Callable[[Job], int] = size_of
    normalize: Normalize = exact
    tag: Callable[[Number], int | str] = to_json
    rate: Number = 1
    capacity: Mapping[str, int] = {}
    random: Draw | None = None
    clock: Callable[[], int] = no_service
    prefix_tokens: int = 0
    rebase: bool = False
