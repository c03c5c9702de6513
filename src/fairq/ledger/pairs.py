"""Service of tenants two by two, over the times at which both are backlogged.

With D = W_i/w_i - W_j/w_j since such a time began, the largest difference over any interval inside it is max D - min D.
A time ends when one of them leaves, is paused, reaches its cap or changes its weight; the next one begins at D = 0.
"""

from collections.abc import Callable, Collection

from fairq.core.commands import Ended
from fairq.core.number import fixed
from fairq.ledger.book import Book, Living, Tenant
from fairq.ledger.segment import Head


class Pair:
    """
    tenants   their ids, in order
    gap       the largest difference of charged normalized service so far, tag units
    charged   normalized charges of each while both were backlogged, tag units
    actual    the same of what the requests that were dispatched then really used, as far as they have ended
    duration  how long both were backlogged, ns, up to the last time that ended
    """

    __slots__ = ("actual", "charged", "difference", "duration", "gap", "high", "low", "since", "tenants")

    def __init__(self, one: str, other: str) -> None:
        self.tenants = (one, other)
        self.gap = self.difference = self.high = self.low = self.duration = self.since = 0
        self.charged, self.actual = [0, 0], [0, 0]


Wide = Callable[[Pair, int], None]


class Pairs(Book):
    """O(watched backlogged tenants) per dispatch of a watched tenant, nothing for others.

    most   how many tenants are watched, first come first watched; `only`: these and no others
    wide   told (pair, difference) at every dispatch of one of the pair
    clock  the time of the line that is being applied, ns
    """

    def __init__(self, most: int, only: Collection[str] | None, wide: Wide, clock: Callable[[], int]) -> None:
        self.pairs: dict[tuple[str, str], Pair] = {}
        self.unwatched = 0  # dispatches of tenants that nobody compares
        self._most, self._only = most, only
        self._watched: set[str] = set(only or ())
        self._open: dict[str, dict[str, tuple[Pair, int]]] = {}
        self._wide, self._clock = wide, clock

    @property
    def watched(self) -> list[str]:
        return sorted(self._watched)

    # Book
    def restored(self, head: Head) -> None:
        for name in list(self._open):
            self._close(name)

    def joined(self, tenant: Tenant) -> None:
        if self._watches(tenant.id):
            now, mine = self._clock(), dict[str, tuple[Pair, int]]()
            for name, others in self._open.items():
                pair = self._pair(tenant.id, name)
                pair.difference = pair.low = pair.high = 0
                pair.since = now
                side = pair.tenants.index(tenant.id)
                mine[name], others[tenant.id] = (pair, side), (pair, 1 - side)
            self._open[tenant.id] = mine

    def left(self, tenant: Tenant) -> None:
        self._close(tenant.id)

    def reweighted(self, tenant: Tenant) -> None:
        if tenant.id in self._open:
            self._close(tenant.id)
            self.joined(tenant)

    def served(self, living: Living) -> None:
        tenant = living.tenant
        mine = self._open.get(tenant.id)
        if mine is None:
            self.unwatched += tenant.id not in self._watched
            return
        normalized = fixed(living.charge, tenant.above, tenant.below)
        wide = self._wide
        for pair, side in mine.values():
            pair.charged[side] += normalized
            difference = pair.difference = pair.difference + (-normalized if side else normalized)
            if difference > pair.high:
                pair.high = difference
            elif difference < pair.low:
                pair.low = difference
            width = pair.high - pair.low
            if width > pair.gap:
                pair.gap = width
            wide(pair, width)
        living.paired = list(mine.values())

    def ended(self, living: Living, record: Ended) -> None:
        if living.paired:
            normalized = fixed(record.actual, living.tenant.above, living.tenant.below)
            for pair, side in living.paired:
                pair.actual[side] += normalized

    def _watches(self, name: str) -> bool:
        if name in self._watched:
            return True
        if self._only is not None or len(self._watched) >= self._most:
            return False
        self._watched.add(name)
        return True

    def _pair(self, one: str, other: str) -> Pair:
        key = (one, other) if one < other else (other, one)
        pair = self.pairs.get(key)
        if pair is None:
            pair = self.pairs[key] = Pair(*key)
        return pair

    def _close(self, name: str) -> None:
        mine = self._open.pop(name, None)
        for other, (pair, _) in (mine or {}).items():
            del self._open[other][name]
            pair.duration += self._clock() - pair.since
