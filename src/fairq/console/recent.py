"""The last minute, second by second: who was charged how much, who had work waiting, how many tokens came."""

from collections import Counter
from collections.abc import Callable

from msgspec import Struct

from fairq.console.heaviest import OTHER
from fairq.core.commands import Ended
from fairq.ledger.book import Book, Living, Tenant
from fairq.ledger.segment import Head

SECOND = 1_000_000_000  # ns
KEPT = 60  # seconds


class Slice:
    """One second, by label; see `Window`. `backlogged` and `entitled` are without those that still are backlogged."""

    __slots__ = ("backlogged", "charged", "completion", "entitled", "prompt", "ran", "waited")

    def __init__(self) -> None:
        self.charged: Counter[str] = Counter()
        self.backlogged: Counter[str] = Counter()
        self.entitled: dict[str, float] = {}
        self.waited: Counter[str] = Counter()
        self.ran: Counter[str] = Counter()
        self.prompt = self.completion = 0


class Window(Struct):
    """The last seconds together.

    seconds     how long it is: shorter than asked for where recording began later
    charged     cost units by label
    backlogged  part of the time, 0 to 1, in which each label's tenant had work waiting that might have gone
    entitled    cost units: its weight's part of each charge while it had, among all that had
    waited      ns in the queue, of requests that were dispatched; ran: ns at upstreams, of those that left them
    """

    seconds: float
    charged: Counter[str]
    backlogged: dict[str, float]
    entitled: dict[str, float]
    waited: Counter[str]
    ran: Counter[str]
    prompt: int
    completion: int


class Recent(Book):
    """O(1) per dispatch, O(seconds waited) per end of a backlog, O(backlogged tenants with a label) per second.
    Memory: KEPT seconds times the tenants with a label.

    What a backlogged tenant is entitled to grows by its weight x charge / weights of all that are backlogged, at each
    dispatch: `_level` is the sum of charge / weights.

    label  where a tenant is counted
    clock  the time of the line that is being applied, ns
    """

    def __init__(self, label: Callable[[str], str], clock: Callable[[], int]) -> None:
        self._label, self._clock = label, clock
        self._slices: dict[int, Slice] = {}
        self._since: dict[str, int] = {}  # backlogged tenants with a label
        self._mark: dict[str, float] = {}  # the level up to which each has its entitlement
        self._weights: dict[str, float] = {}  # of all backlogged tenants
        self._weight = self._level = 0.0
        self._latest = 0  # second
        self._began: int | None = None

    def window(self, seconds: int, now: int) -> Window:
        """`now`, ns, on the clock of the lines; at most KEPT seconds."""
        last = now // SECOND
        start = max((last - seconds + 1) * SECOND, self._began or 0)
        span = max(now - start, 1)
        charged, backlogged, waited, ran = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
        entitled: dict[str, float] = {}
        prompt = completion = 0
        for number, one in self._slices.items():
            if last - seconds < number <= last:
                charged.update(one.charged)
                backlogged.update(one.backlogged)
                for name, due in one.entitled.items():
                    entitled[name] = entitled.get(name, 0.0) + due
                waited.update(one.waited)
                ran.update(one.ran)
                prompt, completion = prompt + one.prompt, completion + one.completion
        for name, since in self._since.items():
            backlogged[name] += max(now - max(since, start), 0)
            entitled[name] = entitled.get(name, 0.0) + self._owed(name)
        parts = {name: min(ns / span, 1.0) for name, ns in backlogged.items()}
        return Window(span / SECOND, charged, parts, entitled, waited, ran, prompt, completion)

    # Book
    def restored(self, head: Head) -> None:
        for name in list(self._weights):
            self._leave(name)

    def joined(self, tenant: Tenant) -> None:
        name = tenant.id
        self._weights[name] = float(tenant.weight)
        self._weight += self._weights[name]
        if self._label(name) != OTHER:
            self._slice(self._clock())
            self._since[name], self._mark[name] = self._clock(), self._level

    def left(self, tenant: Tenant) -> None:
        self._leave(tenant.id)

    def reweighted(self, tenant: Tenant) -> None:
        if tenant.id in self._weights:
            self._leave(tenant.id)
            self.joined(tenant)

    def served(self, living: Living) -> None:
        now, label = self._clock(), self._label(living.tenant.id)
        one = self._slice(now)
        one.charged[label] += living.charge
        one.waited[label] += now - living.request.arrival
        if self._weights:
            self._level += living.charge / self._weight

    def released(self, living: Living) -> None:
        now = self._clock()
        self._slice(now).ran[self._label(living.tenant.id)] += now - living.dispatched

    def ended(self, living: Living, record: Ended) -> None:
        one = self._slice(self._clock())
        one.prompt += record.usage.prompt
        one.completion += record.usage.completion

    def _leave(self, name: str) -> None:
        weight = self._weights.get(name, 0.0)
        since = self._since.pop(name, None)
        if since is not None:
            now = self._clock()
            last = now // SECOND
            for number in range(max(since // SECOND, last - KEPT + 1), last + 1):
                begin, end = max(since, number * SECOND), min(now, (number + 1) * SECOND)
                self._slice(number * SECOND).backlogged[name] += end - begin
            self._settle(name, self._slice(now))
            del self._mark[name]
        self._weights.pop(name, None)
        self._weight = self._weight - weight if self._weights else 0.0

    def _owed(self, name: str) -> float:
        """What it is entitled to since its mark."""
        return self._weights[name] * (self._level - self._mark[name])

    def _settle(self, name: str, one: Slice) -> None:
        one.entitled[name] = one.entitled.get(name, 0.0) + self._owed(name)
        self._mark[name] = self._level

    def _slice(self, time: int) -> Slice:
        number = time // SECOND
        found = self._slices.get(number)
        if found is None:
            before = self._slices.get(self._latest)
            if before is not None and number > self._latest:
                for name in self._mark:
                    self._settle(name, before)
            self._latest = max(number, self._latest)
            found = self._slices[number] = Slice()
            if self._began is None:
                self._began = time
            while len(self._slices) > 2 * KEPT:
                del self._slices[min(self._slices)]
        return found
