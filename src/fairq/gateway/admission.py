"""Admission: may one more request wait? Another layer than the scheduler, with its own reasons.

A tenant's own bounds refuse only its own requests. When the queues are full in total, the tenant that holds the most
gives way: its newest waiting request is evicted for the arrival of a tenant that holds less, so that one tenant's
flood cannot shut the others out.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final

from fairq.core.ranking import Ranking
from fairq.gateway.backoff import Backoffs


class Bounds:
    """How many requests may wait, and how many bytes of their bodies."""

    __slots__ = ("bytes", "requests")

    def __init__(self, requests: int, bytes: int) -> None:
        self.requests, self.bytes = requests, bytes


class Full(Enum):
    TENANT = "the queue of this tenant is full"
    TOTAL = "the queues are full"
    NEVER = "the body is larger than the queue"


class Holding:
    """What one tenant has waiting."""

    __slots__ = ("bytes", "jobs")

    def __init__(self) -> None:
        self.jobs: dict[str, int] = {}  # id -> bytes, oldest first
        self.bytes = 0


NOTHING: Final = Holding()


class Admission:
    """Counts what waits in a pool. O(log tenants) for each call."""

    def __init__(self, total: Bounds, tenant_bounds: Callable[[str], Bounds], clock: Callable[[], int]) -> None:
        self.total, self.tenant_bounds = total, tenant_bounds
        self.requests = self.bytes = 0
        self._holdings: dict[str, Holding] = {}
        self._owner: dict[str, str] = {}
        self._most_requests: Ranking[str, int] = Ranking()
        self._most_bytes: Ranking[str, int] = Ranking()
        self.clock = clock
        self._backoffs = Backoffs()

    def ask(self, tenant: str, size: int, more: int = 0, more_bytes: int = 0) -> Full | list[str]:
        """The ids to evict so that a request of `size` bytes may wait (mostly none), or why it may not. Pure.

        `more` requests of `more_bytes` may be waiting besides, of whichever tenant.
        """
        mine = self._holdings.get(tenant, NOTHING)
        bounds = self.tenant_bounds(tenant)
        if size > min(bounds.bytes, self.total.bytes):
            return Full.NEVER
        if len(mine.jobs) + more >= bounds.requests or mine.bytes + more_bytes + size > bounds.bytes:
            return Full.TENANT
        if self.requests + more < self.total.requests and self.bytes + more_bytes + size <= self.total.bytes:
            return []
        if self.requests >= self.total.requests:
            victim = self._heaviest(self._most_requests)
            if victim is None or len(self._holdings[victim].jobs) <= len(mine.jobs) + 1:
                return Full.TOTAL
        else:
            victim = self._heaviest(self._most_bytes)
            if victim is None or self._holdings[victim].bytes <= mine.bytes + size:
                return Full.TOTAL
        if victim == tenant:
            return Full.TOTAL
        evicted, freed = [], 0
        for id_ in reversed(self._holdings[victim].jobs):
            evicted.append(id_)
            freed += self._holdings[victim].jobs[id_]
            if self.bytes - freed + size <= self.total.bytes:
                return evicted
        return Full.TOTAL

    def enter(self, tenant: str, id_: str, size: int) -> None:
        holding = self._holdings.get(tenant)
        if holding is None:
            holding = self._holdings[tenant] = Holding()
        holding.jobs[id_] = size
        self._owner[id_] = tenant
        self._count(tenant, holding, 1, size)

    def leave(self, id_: str) -> None:
        """It waits no more; a second call changes nothing."""
        tenant = self._owner.pop(id_, None)
        if tenant is not None:
            holding = self._holdings[tenant]
            self._count(tenant, holding, -1, -holding.jobs.pop(id_))

    def position(self, tenant: str, id_: str) -> int:
        """From 1; 0 when it does not wait. O(jobs of the tenant)."""
        holding = self._holdings.get(tenant)
        return 0 if holding is None else next((n for n, job in enumerate(holding.jobs, 1) if job == id_), 0)

    def retry_after(self, tenant: str = "") -> int:
        """Seconds that a client should stay away whose request a bound or a deadline of its tenant's own refused; ""
        when it was the bound of all together."""
        return self._backoffs.refuse(tenant, self.clock())

    def _count(self, tenant: str, holding: Holding, requests: int, size: int) -> None:
        self.requests += requests
        self.bytes += size
        holding.bytes += size
        if holding.jobs:
            self._most_requests.put(tenant, -len(holding.jobs))
            self._most_bytes.put(tenant, -holding.bytes)
        else:
            del self._holdings[tenant]
            self._most_requests.drop(tenant)
            self._most_bytes.drop(tenant)

    @staticmethod
    def _heaviest(ranking: Ranking[str, int]) -> str | None:
        first = ranking.first()
        return first and first[1]
