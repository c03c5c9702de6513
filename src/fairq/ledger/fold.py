"""The live state of a pool, folded from its lines: what metrics, dashboard and the console's API show.

    fold = Fold()
    fold.feed(line)            a head first, then every event and command in order; O(log tenants) each
    fold.world                 who waits, runs, is backlogged; tenants, upstreams, slots
    fold.audit                 the live check; `fold.audit.report()`
    fold.tenants, fold.other   what was served, by tenant

Memory: the living requests, two rings of fixed length, and totals of at most `tenants` tenants. Beyond that the tenant
that was quiet for longest is added to `other`, so that made-up ids cost nothing.
"""

from collections import Counter, OrderedDict, deque

from fairq.core import commands as cmd
from fairq.core import events as ev
from fairq.core.lifecycle import State
from fairq.core.number import fixed
from fairq.ledger.audit import Audit
from fairq.ledger.book import Book, Living
from fairq.ledger.histogram import RATIOS, TIMES, Histogram
from fairq.ledger.segment import AnyLine, Head
from fairq.ledger.tags import units

TENANTS = 1000
DECISIONS = 256
ENDED = 1024
PATIENCE = 8  # quiet tenants looked at to find one without living requests


class Totals:
    """What one tenant was given since the fold began. Counters only rise; `inflight` is by upstream.

    charged, actual   cost units; `actual` of requests that ended
    normalized        charged / weight, each charge at the weight of its time, cost units
    prompt, cached, completion   tokens
    wait, ttft, tpot  ns; `ttft` from arrival, `first_byte` from dispatch
    ratio             actual / estimate of requests that reached an engine
    """

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.inflight: Counter[str] = Counter()
        self.charged = self.actual = self.prompt = self.cached = self.completion = self.retries = self.queued_bytes = 0
        self._normalized = 0
        self.wait, self.ttft, self.first_byte, self.tpot = (Histogram(TIMES) for _ in range(4))
        self.ratio = Histogram(RATIOS)

    @property
    def normalized(self) -> float:
        return units(self._normalized)

    def charge(self, living: Living) -> None:
        self.charged += living.charge
        self._normalized += fixed(living.charge, living.tenant.above, living.tenant.below)

    def end(self, record: cmd.Ended) -> None:
        usage = record.usage
        self.outcomes[record.outcome] += 1
        self.wait.add(record.wait)
        if record.ttft:
            self.ttft.add(record.ttft)
            self.first_byte.add(max(record.ttft - record.wait, 0))
        if record.tpot:
            self.tpot.add(record.tpot)
        if record.actual:
            self.actual += record.actual
            self.ratio.add(record.actual / record.estimate)
        self.prompt += usage.prompt
        self.cached += usage.cached
        self.completion += usage.completion

    def merge(self, other: "Totals") -> None:
        self.outcomes.update(other.outcomes)
        self.inflight.update(other.inflight)
        self.queued_bytes += other.queued_bytes
        self.charged += other.charged
        self.actual += other.actual
        self._normalized += other._normalized
        self.prompt += other.prompt
        self.cached += other.cached
        self.completion += other.completion
        self.retries += other.retries
        for name in ("wait", "ttft", "first_byte", "tpot", "ratio"):
            getattr(self, name).merge(getattr(other, name))


class Fold(Book):
    """
    decisions, ended   the last ones, oldest first
    pairs              tenants that the audit compares two by two; costs that many steps per decision
    """

    def __init__(self, tenants: int = TENANTS, pairs: int = 0) -> None:
        self.audit = Audit(pairs)
        self.world, self.tags = self.audit.world, self.audit.tags
        self.world.books.append(self)
        self.tenants: OrderedDict[str, Totals] = OrderedDict()
        self.other = Totals()
        self.decisions: deque[cmd.Dispatch] = deque(maxlen=DECISIONS)
        self.ended_requests: deque[cmd.Ended] = deque(maxlen=ENDED)
        self.lines = 0
        self._most = tenants

    @property
    def head(self) -> Head | None:
        return self.audit.head

    @property
    def virtual_time(self) -> float:
        """Normalized cost units since the fold began; it never goes back within a busy period."""
        return units(self.tags.virtual_time)

    def meters(self) -> dict[str, float]:
        """Of each backlogged tenant: how far it is ahead of virtual time, normalized cost units. O(backlogged)."""
        return {name: units(self.tags.lead(tenant)) for name, tenant in self.world.backlogged.items()}

    def total(self) -> Totals:
        """Of everybody. O(tenants kept)."""
        total = Totals()
        for totals in (*self.tenants.values(), self.other):
            total.merge(totals)
        return total

    def feed(self, line: AnyLine) -> None:
        self.lines += 1
        self.audit.feed(line)
        if type(line) is cmd.Dispatch:
            self.decisions.append(line)
            if line.attempt > 1:
                self.totals_of(line.tenant).retries += 1
        elif type(line) is ev.Admitted:
            self.totals_of(line.request.flow).queued_bytes += line.request.input_bytes
        elif type(line) is ev.Refused:
            self.totals_of(line.tenant).outcomes[line.outcome] += 1

    # Book
    def restored(self, head: Head) -> None:
        for totals in (*self.tenants.values(), self.other):
            totals.inflight.clear()
            totals.queued_bytes = 0
        for living in self.world.living.values():
            totals = self.totals_of(living.request.flow)
            if living.state is State.RUNNING:
                totals.inflight[living.upstream] += 1
            elif living.state is State.WAITING:
                totals.queued_bytes += living.request.input_bytes

    def served(self, living: Living) -> None:
        totals = self.totals_of(living.tenant.id)
        totals.charge(living)
        totals.queued_bytes -= living.request.input_bytes

    def placed(self, living: Living) -> None:
        self.totals_of(living.tenant.id).inflight[living.upstream] += 1

    def released(self, living: Living) -> None:
        self.totals_of(living.tenant.id).inflight[living.upstream] -= 1

    def ended(self, living: Living, record: cmd.Ended) -> None:
        totals = self.totals_of(record.tenant)
        totals.end(record)
        if not living.attempts:
            totals.queued_bytes -= living.request.input_bytes
        self.ended_requests.append(record)

    def totals_of(self, name: str) -> Totals:
        """Where this tenant is counted. A subclass may count several together, in `other`."""
        tenants = self.tenants
        totals = tenants.get(name)
        if totals is None:
            totals = tenants[name] = Totals()
            if len(tenants) > self._most:
                self._forget()
        else:
            tenants.move_to_end(name)
        return totals

    def _forget(self) -> None:
        """Add a tenant that has been quiet for long, and has nothing alive, to the others."""
        for _ in range(PATIENCE):
            name, totals = next(iter(self.tenants.items()))
            if totals.queued_bytes or any(totals.inflight.values()):
                self.tenants.move_to_end(name)
            else:
                del self.tenants[name]
                self.other.merge(totals)
                return
