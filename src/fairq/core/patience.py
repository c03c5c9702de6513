"""How long jobs wait: until they expire and, while no upstream is usable at all, until they give up on one."""

from collections.abc import Iterable

from fairq.core.job import Request
from fairq.core.policy import Time
from fairq.core.ranking import Ranking


class Patience:
    """
    limit       how long a job waits for an upstream to appear
    dark_since  since when none is usable; None: one is
    ends        when the patience of each waiting job ends; of those whose patience does
    """

    def __init__(self, limit: Time) -> None:
        self.limit = limit
        self.dark_since: Time | None = 0
        self.ends: Ranking[str, Time] = Ranking()

    def wait(self, request: Request) -> None:
        """O(log waiting)."""
        if self.dark_since is not None:
            despair = max(request.arrival, self.dark_since) + self.limit
            self.ends.put(request.id, min(request.expires or despair, despair))
        elif request.expires:
            self.ends.put(request.id, request.expires)

    def drop(self, id_: str) -> None:
        """It waits no more; nothing happens when it did not."""
        self.ends.drop(id_)

    def judge(self, lit: bool, waiting: Iterable[Request], now: Time) -> None:
        """Upstreams or the limit changed. O(waiting) when it is dark or was, which is rare."""
        if lit and self.dark_since is None:
            return
        if lit:
            self.dark_since = None
        elif self.dark_since is None:
            self.dark_since = now
        self.ends.clear()
        for request in waiting:
            self.wait(request)
