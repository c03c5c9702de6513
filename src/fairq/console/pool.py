"""The live state of one pool: the ledger's fold, with tenants beyond the heaviest counted together."""

from collections import Counter
from fractions import Fraction

from fairq.console.events import Ring
from fairq.console.heaviest import OTHER, Heaviest
from fairq.console.joint import Joint
from fairq.console.recent import Recent
from fairq.core import commands as cmd
from fairq.core import events as ev
from fairq.core.lifecycle import State
from fairq.ledger.book import Living
from fairq.ledger.fold import Fold, Totals
from fairq.ledger.histogram import TIMES, Histogram
from fairq.ledger.segment import AnyLine, Head

PAIRS = 16  # tenants that the live audit compares two by two
NOTES = 20
ALL = 1 << 30  # lines of one event: more than any has


class LivePool(Fold):
    """
    labels    the tenants, of all pools, that are counted on their own
    latency   by label: ns per output token from arrival to end, queue included
    at        the last event that was folded
    started   identity of the data plane's run: the wall clock at its start, None if unknown
    since     wall time (s) from which on there are totals
    missed    events that never came here, because the console was not connected
    bytes     of ledger lines folded
    """

    def __init__(self, name: str, labels: Heaviest, ring: Ring) -> None:
        super().__init__(tenants=labels.places + 1, pairs=PAIRS)
        self.name, self.labels, self.ring = name, labels, ring
        self.joint = Joint(lambda: self.world.now)
        self.recent = Recent(self.label, lambda: self.world.now)
        self.world.books += (self.joint, self.recent)
        self.latency: dict[str, Histogram] = {}
        self.retries = self.lost = self.recording_gaps = self.missed = self.bytes = self.at = 0
        self.started: int | None = None
        self.since = 0.0
        self._known = self._repeated = 0  # lines of event `at`: folded, and seen again on this connection
        self._announced: Head | None = None

    def wall(self, time: int) -> float:
        """An event's time on the wall clock, seconds."""
        head = self.head
        return (head.wall - head.monotonic + time) / 1e9 if head else 0.0

    def announce(self, head: Head) -> None:
        """A connection begins. Before its first line there is time for `history`; then call `follow`."""
        self._announced, self._repeated = head, 0

    @property
    def ahead(self) -> int:
        """Events between the last one folded and the head that was announced."""
        return self._announced.state["seq"] - self.at if self._announced is not None else 0

    def follow(self) -> None:
        """The lines of the connection come now. They may be known, or go on where the last one ended, or leave a gap
        that only the announced head can bridge."""
        self._repeated = 0
        if self.head is None:
            self._bridge()

    def resume(self, head: Head, size: int) -> None:
        """Go on from the state in `head`."""
        for flow in head.setup.flows:
            self.labels.count(flow.id, 0)
        for job in head.state["jobs"]:
            self.labels.count(job["request"].get("flow", ""))
        self.bytes += size
        self.since = self.since or head.wall / 1e9
        self.at, self._known = head.state["seq"], ALL
        self.feed(head)

    def _bridge(self) -> None:
        """There is nothing better than the announced head."""
        head, missed = self._announced, max(self.ahead, 0)
        self._announced = None
        if head is not None:
            self.missed += missed if self.head is not None else 0
            self.resume(head, 0)

    def take(self, line: AnyLine, raw: bytes) -> None:
        """One event or command, in order. What is known already is passed over."""
        assert not isinstance(line, Head)
        seq = line.seq
        if seq > self.at + 1 and self._announced is not None:
            self._bridge()
        if seq < self.at:
            return
        if seq > self.at:
            self.at, self._known, self._repeated = seq, 0, 0
            self._announced = None
        if self._repeated < self._known:
            self._repeated += 1
            return
        self._known += 1
        self._repeated += 1
        self.bytes += len(raw) + 1
        self._count(line)  # first, so that a tenant has its label when its first line is fed
        self.feed(line)
        self.ring.add(self.name, line, raw, self.wall)

    def _count(self, line: AnyLine) -> None:
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
            del self.audit.notes[:-NOTES]

    def weight(self, tenant: str) -> Fraction:
        found = self.world.tenants.get(tenant)
        return found.weight if found else (self.world.flows.get(tenant) or self.world.default).weight

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
    def ended(self, living: Living, record: cmd.Ended) -> None:
        super().ended(living, record)
        if record.usage.completion and record.ttft:
            label = self.label(record.tenant)
            latency = self.latency.get(label)
            if latency is None:
                latency = self.latency[label] = Histogram(TIMES)
            latency.add(record.total / record.usage.completion)

    def totals_of(self, name: str) -> Totals:
        """Made-up ids share one place, and get no label of their own in a time series either."""
        return super().totals_of(name) if name in self.labels.named else self.other
