"""Copies of the folded state's numbers, so that a scrape can be written in another thread while folding goes on."""

from collections import Counter
from dataclasses import dataclass, field

from fairq.console.heaviest import OTHER
from fairq.console.judgement import Judgement
from fairq.console.live import Live
from fairq.console.pool import LivePool
from fairq.console.standing import Standing
from fairq.console.state import first_wait, now_of
from fairq.ledger.checks import BOUNDS
from fairq.ledger.fold import Totals
from fairq.ledger.histogram import Histogram
from fairq.ledger.tags import units


class Row:
    """A copy of what one label of one pool has counted."""

    __slots__ = ("first_byte", "label", "latency", "numbers", "outcomes", "pool", "tpot", "ttft", "wait")

    def __init__(self, label: str, pool: str, totals: Totals, latency: Histogram | None) -> None:
        self.label, self.pool = label, pool
        self.outcomes = dict(totals.outcomes)
        self.numbers = (totals.prompt, totals.cached, totals.completion, totals.charged, totals.normalized)
        self.wait, self.ttft, self.first_byte, self.tpot = map(
            _copy, (totals.wait, totals.ttft, totals.first_byte, totals.tpot)
        )
        self.latency = None if latency is None else _copy(latency)


@dataclass
class PoolCopy:
    """The rest of a pool.

    shares  of the last minute by label: what it got, and its max-min share
    oldest  seconds that the first waiting request of each has waited
    """

    waiting: dict[str, tuple[int, int]]
    inflight: Counter[tuple[str, str]]
    meters: dict[str, float]
    upstreams: list[tuple[str, int, bool]]
    virtual_time: float
    margins: dict[str, float]
    violations: dict[str, int]
    idle_slots: int
    reach: float
    index: float | None
    shares: dict[str, tuple[float, float | None]]
    starved: dict[str, bool]
    oldest: dict[str, float]
    ratios: Histogram
    counters: dict[str, int]


@dataclass
class Snapshot:
    """`lag`: seconds."""

    connected: bool
    lag: float
    unreadable: int
    rows: list[Row] = field(default_factory=list)
    pools: dict[str, PoolCopy] = field(default_factory=dict)
    engines: dict[tuple[str, str], float] = field(default_factory=dict)


def snapshot(live: Live) -> Snapshot:
    """A copy that no further line changes. O(labels + living requests)."""
    made = Snapshot(live.connected, live.lag / 1e9, live.unreadable, engines=dict(live.engines))
    for name, pool in live.pools.items():
        labels = dict(pool.tenants)
        if pool.other.outcomes or pool.other.charged or len(live.labels.named) < len(pool.world.tenants):
            labels[OTHER] = pool.other
        made.rows += [Row(label, name, totals, pool.latency.get(label)) for label, totals in labels.items()]
        made.pools[name] = _pool_copy(live, pool)
    return made


def _pool_copy(live: Live, pool: LivePool) -> PoolCopy:
    world, tags, checks, audit = pool.world, pool.tags, pool.audit.checks, pool.audit
    now = now_of(live, pool)
    judgement = Judgement(pool, now)
    minute = judgement.minute
    total = minute.window.charged.total()
    named = {name: world.tenants.get(name) for name in pool.tenants}
    ratios = _copy(pool.other.ratio)
    for totals in pool.tenants.values():
        ratios.merge(totals.ratio)
    return PoolCopy(
        waiting=pool.waiting_by_label(),
        inflight=pool.inflight_by_label(),
        meters={
            name: units(tags.virtual_time + tags.lead(tenant))
            for name, tenant in world.backlogged.items()
            if name in live.labels.named
        },
        upstreams=[(upstream.name, upstream.slots, upstream.healthy) for upstream in world.upstreams.values()],
        virtual_time=pool.virtual_time,
        margins={
            bound: units(checks[bound].limit - checks[bound].worst) for bound in BOUNDS if checks[bound].worst >= 0
        },
        violations={bound: checks[bound].violations * checks[bound].promised for bound in BOUNDS},
        idle_slots=checks["work conservation"].violations,
        reach=units(tags.reach),
        index=minute.index(),
        shares={name: (charge / total, minute.share(name)) for name, charge in minute.window.charged.items() if total},
        starved={name: judgement.of(name, tenant) is Standing.STARVED for name, tenant in named.items()},
        oldest={name: first_wait(tenant, now)[0] or 0.0 for name, tenant in named.items()},
        ratios=ratios,
        counters={
            "retries": pool.retries,
            "events": audit.events,
            "decisions": audit.decisions,
            "bytes": pool.bytes,
            "lost_lines": pool.lost,
            "gaps": pool.recording_gaps,
            "missed_events": pool.missed,
            "recording": pool.name not in live.unrecorded,
        },
    )


def _copy(histogram: Histogram) -> Histogram:
    copy = Histogram(histogram.bounds)
    copy.counts, copy.total = list(histogram.counts), histogram.total
    return copy
