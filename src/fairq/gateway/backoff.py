"""How long a refused client should stay away. It grows while refusals keep coming, each tenant's by its own alone."""

from collections import OrderedDict
from typing import Final

SHORTEST, LONGEST = 1, 32  # seconds; Kubernetes' API priority and fairness uses the same range
SECOND: Final = 1_000_000_000
QUIET: Final = 4  # times what it was told: a client that was not refused again for so long begins anew
REMEMBERED: Final = 4096  # tenants


class Backoff:
    """Of one tenant, or of all together."""

    __slots__ = ("_refused", "_since", "seconds")

    def __init__(self, now: int) -> None:
        self.seconds, self._since = SHORTEST, now
        self._refused = -1  # since then; the one that begins the time is not counted

    def refuse(self, now: int) -> int:
        """Seconds to stay away: doubled while there is more than one refusal a second, SHORTEST again after few."""
        self._refused += 1
        passed = now - self._since
        if passed >= self.seconds * SECOND:
            grew = self._refused > self.seconds and not self.quiet(now)
            self.seconds = min(self.seconds * 2, LONGEST) if grew else SHORTEST
            self._refused, self._since = 0, now
        return self.seconds

    def quiet(self, now: int) -> bool:
        """As good as new."""
        return now - self._since >= QUIET * self.seconds * SECOND


class Backoffs:
    """By tenant; "" stands for all together. O(1): whose last refusal is long ago is forgotten in passing."""

    __slots__ = ("_of",)

    def __init__(self) -> None:
        self._of: OrderedDict[str, Backoff] = OrderedDict()  # the last refused at the end

    def __len__(self) -> int:
        return len(self._of)

    def refuse(self, tenant: str, now: int) -> int:
        """Seconds for `tenant` to stay away."""
        backoff = self._of.get(tenant)
        if backoff is None:
            backoff = self._of[tenant] = Backoff(now)
        else:
            self._of.move_to_end(tenant)
        seconds = backoff.refuse(now)
        for _ in (1, 2):  # more may go than come
            oldest = next(iter(self._of))
            if len(self._of) <= REMEMBERED and not self._of[oldest].quiet(now):
                break
            del self._of[oldest]
        return seconds
