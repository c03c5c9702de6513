"""How evenly service was shared among tenants while all of them were backlogged: Jain's index, live.

Joint backlog comes in many short intervals. The service of intervals with the same tenants is added up, and compared
within each such set; never in total, for who asks for little gets little.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction

from fairq.console.heaviest import Heaviest
from fairq.core.commands import Ended
from fairq.core.number import fixed
from fairq.ledger.book import Book, Living, Tenant
from fairq.ledger.segment import Head
from fairq.measure.fairness import BackloggedIntervals, jain

WATCHED = 16  # tenants; a change of who is backlogged costs that many steps
SETS = 64  # different sets that are remembered: those with most service


class Together:
    """Normalized service of tenants over the time in which exactly these were backlogged, tag units and ns."""

    __slots__ = ("actual", "charged", "duration")

    def __init__(self, tenants: Iterable[str]) -> None:
        self.charged = dict.fromkeys(tenants, 0)
        self.actual = dict(self.charged)
        self.duration = 0


class Joint(Book):
    """O(1) per dispatch, O(WATCHED) per change of the backlogged set, and only for the heaviest tenants.

    clock  time of the line that is being applied, ns
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self.sets: dict[tuple[str, ...], Together] = {}
        self._clock = clock
        self._intervals = BackloggedIntervals()
        self._watched = Heaviest(WATCHED, lambda name: self._move(name, False))
        self._present: set[str] = set()
        self._now: Together | None = None  # the set that is backlogged at present
        self._served: dict[str, tuple[Together, int, int]] = {}  # by request, until its actual cost is known

    def index(self, of: Callable[[Together], dict[str, int]]) -> float | None:
        """Jain's index of `charged` or `actual` service, averaged over the sets, each weighted by its service."""
        total = weighted = Fraction(0)
        for together in self.sets.values():
            index = jain(of(together).values())
            if index is not None:
                service = sum(of(together).values())
                total, weighted = total + service, weighted + service * index
        return float(weighted / total) if total else None

    def heaviest(self) -> list[tuple[tuple[str, ...], Together]]:
        """The sets, most charged service first."""
        return sorted(self.sets.items(), key=lambda item: (-sum(item[1].charged.values()), item[0]))

    # Book
    def restored(self, head: Head) -> None:
        for name in list(self._present):
            self._move(name, False)
        self._served.clear()

    def joined(self, tenant: Tenant) -> None:
        self._watched.count(tenant.id, 0)
        if tenant.id in self._watched.named:
            self._move(tenant.id, True)

    def left(self, tenant: Tenant) -> None:
        self._move(tenant.id, False)

    def reweighted(self, tenant: Tenant) -> None:
        if tenant.id in self._present:
            self._move(tenant.id, False)
            self._move(tenant.id, True)

    def served(self, living: Living) -> None:
        tenant = living.tenant
        self._watched.count(tenant.id, living.charge)
        if tenant.backlogged and tenant.id in self._watched.named:
            if tenant.id not in self._present:  # it has just become one of the heaviest
                self._move(tenant.id, True)
            self._intervals.charge(tenant.id, fixed(living.charge, tenant.above, tenant.below))
            if len(self._present) > 1:
                self._served[living.request.id] = (self._together(), tenant.above, tenant.below)

    def ended(self, living: Living, record: Ended) -> None:
        served = self._served.pop(living.request.id, None)
        if served is not None:
            together, above, below = served
            together.actual[record.tenant] += fixed(record.actual, above, below)

    def _move(self, name: str, enters: bool) -> None:
        if enters:
            self._present.add(name)
            self._intervals.enter(name, self._clock())
        else:
            self._present.discard(name)
            self._intervals.leave(name, self._clock())
        self._now = None
        self.close()

    def close(self) -> None:
        """Add up what intervals have ended since."""
        for interval in self._intervals.intervals:
            if len(interval.service) > 1:
                together = self._set(tuple(interval.service))
                together.duration += int(interval.end - interval.start)
                for name, service in interval.service.items():
                    together.charged[name] += int(service)
        self._intervals.intervals.clear()

    def cut(self) -> None:
        """Count the interval that is still open up to now."""
        self._intervals.close(self._clock())
        self.close()

    def _together(self) -> Together:
        if self._now is None:
            self._now = self._set(tuple(sorted(self._present)))
        return self._now

    def _set(self, key: tuple[str, ...]) -> Together:
        found = self.sets.get(key)
        if found is None:
            if len(self.sets) >= 2 * SETS:
                self.sets = dict(self.heaviest()[:SETS])
            found = self.sets[key] = Together(key)
        return found
