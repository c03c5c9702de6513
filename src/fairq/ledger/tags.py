"""The tags of Start-time Fair Queueing, kept by the article's rules (section 8) from recorded order and charges alone.

    dispatch of i    V = M_i, then M_i += charge / w_i      (V stays where M_i lies behind it, on credit)
    i joins          M_i = max(M_i, V - credit)
    all queues empty V = max(V, max M)

What a policy really did is compared with these. Tags are integers with 20 fractional bits, charges rounded up; they are
never rebased, so only differences can be compared with recorded tags.
"""

from heapq import heapify, heappop, heappush
from typing import Any

from fairq.core.number import TAG_BITS, fixed
from fairq.ledger.book import Book, Living, Tenant
from fairq.ledger.segment import Head

UNIT = 1 << TAG_BITS
KEEP = 1024  # meters of tenants at rest before a sweep


class Extreme:
    """The least of a changing set of numbers. O(log n) amortised per change; stale entries leave at the top."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []

    def put(self, name: str, value: int) -> None:
        self.values[name] = value
        heappush(self._heap, (value, name))
        if len(self._heap) > 2 * len(self.values) + 64:
            self._heap = [(value, name) for name, value in self.values.items()]
            heapify(self._heap)

    def drop(self, name: str) -> None:
        self.values.pop(name, None)

    def least(self) -> tuple[int, str] | None:
        heap, values = self._heap, self.values
        while heap and values.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0] if heap else None


class Tags(Book):
    """
    virtual_time, meters   in tag units
    largest                largest normalized charge since the busy period began; after a head in the middle of one, at
                           least the largest lead that it shows, which the same argument bounds
    """

    def __init__(self) -> None:
        self.virtual_time = self.origin = self.highest = self.largest = 0
        self.meters: dict[str, int] = {}
        self.right = 0  # the policy's credit, if it gives any
        self._sweep_at = KEEP
        self._low, self._high = Extreme(), Extreme()

    def first(self) -> tuple[int, str] | None:
        """The backlogged tenant that the article's rule takes next: least (meter, id)."""
        return self._low.least()

    def last(self) -> tuple[int, str] | None:
        """The backlogged tenant with the largest meter."""
        found = self._high.least()
        return (-found[0], found[1]) if found else None

    def lead(self, tenant: Tenant) -> int:
        """By how much it is ahead of virtual time, tag units."""
        return self.meters.get(tenant.id, self.origin) - self.virtual_time

    @property
    def reach(self) -> int:
        """No backlogged meter may be farther from another: q, and the credit if there is any."""
        return self.largest + self.right

    # Book
    def restored(self, head: Head) -> None:
        state = head.state["policy"]
        self._low, self._high = Extreme(), Extreme()
        self.right = credit_of(head.setup.policy) * UNIT
        self.meters = {}
        self.virtual_time = self.origin = self.highest = 0
        self.largest = 0
        if isinstance(state.get("meters"), dict):
            self.meters = dict(state["meters"])
            self.virtual_time, self.origin = state["virtual_time"], state["origin"]
            self.highest = state["highest"]
            if state["queues"]:
                self.largest = max(0, self.highest - self.virtual_time)

    def joined(self, tenant: Tenant) -> None:
        self._place(tenant.id, max(self.meters.get(tenant.id, self.origin), self.virtual_time - self.right))

    def left(self, tenant: Tenant) -> None:
        self._low.drop(tenant.id)
        self._high.drop(tenant.id)

    def served(self, living: Living) -> None:
        tenant = living.tenant
        start = self.meters.get(tenant.id, self.origin)
        normalized = fixed(living.charge, tenant.above, tenant.below)
        meter = start + normalized
        self.virtual_time = max(self.virtual_time, start)
        self.largest = max(self.largest, normalized)
        self.highest = max(self.highest, meter)
        if tenant.backlogged:
            self._place(tenant.id, meter)
        else:
            self.meters[tenant.id] = meter
        if len(self.meters) > self._sweep_at:
            self._sweep()

    def idled(self) -> None:
        self.virtual_time = max(self.virtual_time, self.highest)
        self.largest = 0
        if not self.right:
            self.meters.clear()  # all are at or below virtual time now, and join there

    def _sweep(self) -> None:
        """Who rests at or below where it would join is as good as a new tenant."""
        floor, backlogged = self.virtual_time - self.right, self._low.values
        self.meters = {name: meter for name, meter in self.meters.items() if meter > floor or name in backlogged}
        self._sweep_at = 2 * len(self.meters) + KEEP

    def _place(self, name: str, meter: int) -> None:
        self.meters[name] = meter
        self._low.put(name, meter)
        self._high.put(name, -meter)


def policy_of(spec: str) -> str:
    """The name in a specification NAME:key=value."""
    name = spec.partition(":")[0]
    return "fcfs" if name == "fifo" else name


def credit_of(spec: str) -> int:
    """The credit of an `sfq:credit=N` specification, cost units."""
    for item in spec.partition(":")[2].split(","):
        key, _, value = item.partition("=")
        if key == "credit":
            return int(value)
    return 0


def units(tag: Any) -> float:
    """Tag units to normalized cost units, for people."""
    return float(tag) / UNIT
