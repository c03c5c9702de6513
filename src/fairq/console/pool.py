"""The live state of one pool: the ledger's fold, with tenants beyond the heaviest counted together."""

from collections import Counter, deque

from fairq.console.heaviest import OTHER, Heaviest
from fairq.console.joint import Joint
from fairq.core import commands as cmd
from fairq.core import events as ev
from fairq.core.lifecycle import State
from fairq.ledger.book import Living
from fairq.ledger.fold import Fold, Totals
from fairq.ledger.histogram import TIMES, Histogram
from fairq.ledger.segment import AnyLine, Head
from fairq.ledger.world import EVENTS

PAIRS = 16  # tenants that the live audit compares two by two
NOTES = 20
SLICE = 5_000_000_000  # ns
SLICES = 12  # of the window over which shares are shown: one minute


class Recent:
    """Charged cost of the last minute by tenant. Memory: SLICES times the tenants with a label."""

    def __init__(self) -> None:
        self._slices: deque[tuple[int, Counter[str]]] = deque(maxlen=SLICES)

    def add(self, name: str, charge: int, now: int) -> None:
        number = now // SLICE
        if not self._slices or self._slices[-1][0] != number:
            self._slices.append((number, Counter()))
        self._slices[-1][1][name] += charge

    def total(self, now: int) -> Counter[str]:
        total: Counter[str] = Counter()
        for number, charges in self._slices:
            if number > now // SLICE - SLICES:
                total.update(charges)
        return total


class LivePool(Fold):
    """
    labels    the tenants, of all pools, that are counted on their own
    latency   by label: ns per output token from arrival to end, queue included
    missed    events that never came here, because the console was not connected
    bytes     of ledger lines folded
    """

    def __init__(self, labels: Heaviest) -> None:
        super().__init__(tenants=labels.places + 1, pairs=PAIRS)
        self.labels = labels
        self.joint = Joint(lambda: self.world.now)
        self.world.books.append(self.joint)
        self.recent = Recent()
        self.latency: dict[str, Histogram] = {}
        self.retries = self.lost = self.recording_gaps = self.missed = self.bytes = 0
        self._connected_at = 0

    @property
    def wall(self) -> float:
        """Wall time of the last event, seconds."""
        head = self.head
        return (head.wall - head.monotonic + self.world.now) / 1e9 if head else 0.0

    def take(self, line: AnyLine, size: int) -> bool:
        """One line. False if it was known already: a head shows the state after lines that are still on their way."""
        self.bytes += size
        if isinstance(line, Head):
            seq = line.state["seq"]
            if self.head is not None and seq > self.world.seq:
                self.missed += seq - self.world.seq
            self._connected_at = seq
            self.feed(line)
            return True
        if line.seq <= self._connected_at:
            return False
        self.feed(line)
        kind = type(line)
        if kind is ev.Admitted:
            self.labels.count(line.request.flow)  # type: ignore[union-attr]
        elif kind is ev.Refused:
            self.labels.count(line.tenant)  # type: ignore[union-attr]
        elif kind is cmd.Dispatch:
            self.retries += line.attempt > 1  # type: ignore[union-attr]
        elif kind is ev.RecordingGap:
            self.recording_gaps += 1
            self.lost += line.lost  # type: ignore[union-attr]
        if kind in EVENTS and len(self.audit.notes) > NOTES:
            del self.audit.notes[:-NOTES]
        return True

    def label(self, tenant: str) -> str:
        return tenant if tenant in self.labels.named else OTHER

    def unlabel(self, tenant: str) -> None:
        """It is counted with the others from now on. What was counted goes: moved there, it would look like new."""
        self.tenants.pop(tenant, None)
        self.latency.pop(tenant, None)

    def waiting_by_label(self) -> dict[str, tuple[int, int]]:
        """(requests, bytes of text) in the queues. O(waiting)."""
        found: dict[str, tuple[int, int]] = {}
        for living in self.world.living.values():
            if living.state is State.WAITING:
                label = self.label(living.request.flow)
                requests, size = found.get(label, (0, 0))
                found[label] = requests + 1, size + living.request.input_bytes
        return found

    def inflight_by_label(self) -> Counter[tuple[str, str]]:
        """Requests that hold a slot, by (label, upstream); pairs that were seen before are there with 0. O(living)."""
        found: Counter[tuple[str, str]] = Counter()
        for label, totals in (*self.tenants.items(), (OTHER, self.other)):
            for upstream in totals.inflight:
                if upstream in self.world.upstreams:
                    found[label, upstream] = 0
        for living in self.world.living.values():
            if living.state is State.RUNNING:
                found[self.label(living.request.flow), living.upstream] += 1
        return found

    # Fold
    def served(self, living: Living) -> None:
        super().served(living)
        self.recent.add(self.label(living.tenant.id), living.charge, self.world.now)

    def ended(self, living: Living, record: cmd.Ended) -> None:
        super().ended(living, record)
        if record.usage.completion and record.ttft:
            label = self.label(record.tenant)
            latency = self.latency.get(label)
            if latency is None:
                latency = self.latency[label] = Histogram(TIMES)
            latency.add(record.total / record.usage.completion)

    def _of(self, name: str) -> Totals:
        """Made-up ids share one place, and get no label of their own in a time series either."""
        return super()._of(name) if name in self.labels.named else self.other
