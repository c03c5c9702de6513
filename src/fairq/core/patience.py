"""How long jobs wait: until they expire and, while no upstream is usable at all, until they give up on one."""

from collections.abc import Iterable

from fairq.core.job import Request
from fairq.core.policy import Time
from fairq.core.ranking import Ranking


class Patience(Ranking[str, Time]):
    """When the patience of each waiting job ends, by id; of those whose patience does.

    Ends come mostly in order, and mostly their jobs are dispatched before. So an entry of the heap goes when its time
    comes or half of them are stale, not with its job: pushing at the end is O(1), taking out of the top is not.

    limit       how long a job waits for an upstream to appear
    dark_since  since when none is usable; None: one is
    """

    def __init__(self, limit: Time) -> None:
        super().__init__()
        self.limit = limit
        self.dark_since: Time | None = 0

    def first(self) -> tuple[Time, str] | None:
        self._expose()
        return super().first()

    def drop(self, name: str) -> None:
        self.key.pop(name, None)

    def wait(self, request: Request) -> None:
        """O(log waiting) at worst."""
        if self.dark_since is not None:
            despair = max(request.arrival, self.dark_since) + self.limit
            self.put(request.id, min(request.expires or despair, despair))
        elif request.expires:
            self.put(request.id, request.expires)

    def judge(self, lit: bool, waiting: Iterable[Request], now: Time) -> None:
        """Upstreams or the limit changed. O(waiting) when it is dark or was, which is rare."""
        if lit and self.dark_since is None:
            return
        if lit:
            self.dark_since = None
        elif self.dark_since is None:
            self.dark_since = now
        self.clear()
        for request in waiting:
            self.wait(request)
