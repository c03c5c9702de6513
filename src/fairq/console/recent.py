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
    """One second. `backlogged`: ns by label, without those that still are."""

    __slots__ = ("backlogged", "charged", "completion", "prompt")

    def __init__(self) -> None:
        self.charged: Counter[str] = Counter()
        self.backlogged: Counter[str] = Counter()
        self.prompt = self.completion = 0


class Window(Struct):
    """The last seconds together.

    seconds     how long it is: shorter than asked for where recording began later
    charged     cost units by label
    backlogged  part of the time, 0 to 1, in which each label's tenant had work waiting that might have gone
    """

    seconds: float
    charged: Counter[str]
    backlogged: dict[str, float]
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
        charged, waited = Counter[str](), Counter[str]()
        prompt = completion = 0
        for number, one in self._slices.items():
            if last - seconds < number <= last:
                charged.update(one.charged)
                waited.update(one.backlogged)
                prompt, completion = prompt + one.prompt, completion + one.completion
        for name, since in self._since.items():
            waited[name] += max(now - max(since, start), 0)
        parts = {name: min(ns / span, 1.0) for name, ns in waited.items()}
        return Window(span / SECOND, charged, parts, prompt, completion)

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
        self._slice(self._clock()).charged[self._label(living.tenant.id)] += living.charge

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
