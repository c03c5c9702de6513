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
    """One second, by label. `backlogged`: ns, without those that still are; `waited`: ns in the queue, of requests that
    were dispatched in it; `ran`: ns at an upstream, of requests that gave their slot back in it."""

    __slots__ = ("backlogged", "charged", "completion", "prompt", "ran", "waited")

    def __init__(self) -> None:
        self.charged: Counter[str] = Counter()
        self.backlogged: Counter[str] = Counter()
        self.waited: Counter[str] = Counter()
        self.ran: Counter[str] = Counter()
        self.prompt = self.completion = 0


class Window(Struct):
    """The last seconds together.

    seconds     how long it is: shorter than asked for where recording began later
    charged     cost units by label
    backlogged  part of the time, 0 to 1, in which each label's tenant had work waiting that might have gone
    waited, ran  ns that its requests spent in the queue, and at upstreams
    """

    seconds: float
    charged: Counter[str]
    backlogged: dict[str, float]
    waited: Counter[str]
    ran: Counter[str]
    prompt: int
    completion: int


class Recent(Book):
    """O(1) per dispatch, O(seconds waited) per end of a backlog. Memory: KEPT seconds times the tenants with a label.

    label  where a tenant is counted
    clock  the time of the line that is being applied, ns
    """

    def __init__(self, label: Callable[[str], str], clock: Callable[[], int]) -> None:
        self._label, self._clock = label, clock
        self._slices: dict[int, Slice] = {}
        self._since: dict[str, int] = {}  # backlogged tenants with a label
        self._began: int | None = None

    def window(self, seconds: int, now: int) -> Window:
        """`now`, ns, on the clock of the lines; at most KEPT seconds."""
        last = now // SECOND
        start = max((last - seconds + 1) * SECOND, self._began or 0)
        span = max(now - start, 1)
        charged, backlogged, waited, ran = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
        prompt = completion = 0
        for number, one in self._slices.items():
            if last - seconds < number <= last:
                charged.update(one.charged)
                backlogged.update(one.backlogged)
                waited.update(one.waited)
                ran.update(one.ran)
                prompt, completion = prompt + one.prompt, completion + one.completion
        for name, since in self._since.items():
            backlogged[name] += max(now - max(since, start), 0)
        parts = {name: min(ns / span, 1.0) for name, ns in backlogged.items()}
        return Window(span / SECOND, charged, parts, waited, ran, prompt, completion)

    # Book
    def restored(self, head: Head) -> None:
        for name in list(self._since):
            self._leave(name)

    def joined(self, tenant: Tenant) -> None:
        if self._label(tenant.id) != OTHER:
            self._since[tenant.id] = self._clock()
            self._slice(self._clock())

    def left(self, tenant: Tenant) -> None:
        self._leave(tenant.id)

    def served(self, living: Living) -> None:
        now, label = self._clock(), self._label(living.tenant.id)
        one = self._slice(now)
        one.charged[label] += living.charge
        one.waited[label] += now - living.request.arrival

    def released(self, living: Living) -> None:
        now = self._clock()
        self._slice(now).ran[self._label(living.tenant.id)] += now - living.dispatched

    def ended(self, living: Living, record: Ended) -> None:
        one = self._slice(self._clock())
        one.prompt += record.usage.prompt
        one.completion += record.usage.completion

    def _leave(self, name: str) -> None:
        since = self._since.pop(name, None)
        if since is None:
            return
        now = self._clock()
        last = now // SECOND
        for number in range(max(since // SECOND, last - KEPT + 1), last + 1):
            begin, end = max(since, number * SECOND), min(now, (number + 1) * SECOND)
            self._slice(number * SECOND).backlogged[name] += end - begin

    def _slice(self, time: int) -> Slice:
        number = time // SECOND
        found = self._slices.get(number)
        if found is None:
            found = self._slices[number] = Slice()
            if self._began is None:
                self._began = time
            while len(self._slices) > 2 * KEPT:
                del self._slices[min(self._slices)]
        return found
