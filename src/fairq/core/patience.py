"""How long jobs wait: until they expire and, while no upstream is usable at all, until they give up on one."""

from collections.abc import Iterable

from fairq.core.job import Request
from fairq.core.lifecycle import Outcome
from fairq.core.policy import Time
from fairq.core.ranking import Ranking


class Patience:
    """
    limit       how long a job waits for an upstream to appear
    dark_since  since when none is usable; None: one is
    """

    def __init__(self, limit: Time) -> None:
        self.limit = limit
        self.dark_since: Time | None = 0
        self.expiry: Ranking[str, Time] = Ranking()
        self.despair: Ranking[str, Time] = Ranking()  # empty unless it is dark

    def wait(self, request: Request) -> None:
        """O(log waiting)."""
        if request.expires:
            self.expiry.put(request.id, request.expires)
        if self.dark_since is not None:
            self.despair.put(request.id, max(request.arrival, self.dark_since) + self.limit)

    def drop(self, id_: str) -> None:
        """It waits no more; nothing happens when it did not."""
        self.expiry.drop(id_)
        if self.despair:
            self.despair.drop(id_)

    def judge(self, lit: bool, waiting: Iterable[Request], now: Time) -> None:
        """Upstreams or the limit changed. O(waiting) when it is dark, which is rare."""
        self.despair.clear()
        if lit:
            self.dark_since = None
            return
        if self.dark_since is None:
            self.dark_since = now
        for request in waiting:
            self.wait(request)

    def due(self) -> Time | None:
        """When somebody's patience ends."""
        expiry, despair = self.expiry.heap, self.despair.heap
        if expiry and despair:
            return min(expiry[0][0], despair[0][0])
        heap = expiry or despair
        return heap[0][0] if heap else None

    def lost(self, now: Time) -> tuple[str, Outcome] | None:
        """One whose patience has ended, and how."""
        heap = self.expiry.heap
        if heap and heap[0][0] <= now:
            return heap[0][1], Outcome.EXPIRED
        heap = self.despair.heap
        if heap and heap[0][0] <= now:
            return heap[0][1], Outcome.REFUSED_NO_UPSTREAM
        return None
