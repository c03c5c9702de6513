"""/metrics: Prometheus families made from the folded state.

In two steps, so that a scrape never stops the folding for long: `snapshot` copies numbers on the event loop, O(labels +
living requests), and `Snapshot.collect` makes families of them in another thread.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from fairq.console.heaviest import OTHER
from fairq.console.live import Live
from fairq.console.pool import LivePool
from fairq.ledger.checks import BOUNDS
from fairq.ledger.fold import Totals
from fairq.ledger.histogram import Histogram
from fairq.ledger.tags import units

NS = 1e9
BESIDE = "Tenants with most traffic have a label of their own; the others are `other`."


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
    """The rest of a pool. `by_label` gauges are keyed by label."""

    waiting: dict[str, tuple[int, int]]
    inflight: Counter[tuple[str, str]]
    meters: dict[str, float]
    upstreams: list[tuple[str, int, bool]]
    virtual_time: float
    margins: dict[str, float]
    violations: dict[str, int]
    idle_slots: int
    ratios: Histogram
    counters: dict[str, int]


@dataclass(eq=False)  # a registry hashes its collectors
class Snapshot(Collector):
    connected: bool
    lag: float
    unreadable: int
    rows: list[Row] = field(default_factory=list)
    pools: dict[str, PoolCopy] = field(default_factory=dict)
    engines: dict[tuple[str, str], float] = field(default_factory=dict)

    def collect(self) -> Iterator[Metric]:
        yield from self._requests()
        yield from self._service()
        yield from self._times()
        yield from self._fairness()
        yield from self._upstreams()
        yield from self._ledger()

    def _requests(self) -> Iterator[Metric]:
        yield _counter(
            "fairq_requests",
            f"Requests that ended, each with exactly one outcome. {BESIDE}",
            ("tenant", "pool", "outcome"),
            (((row.label, row.pool, name), n) for row in self.rows for name, n in row.outcomes.items()),
        )
        for place, (name, text) in enumerate(
            (
                ("fairq_queue_requests", "Requests that wait."),
                ("fairq_queue_bytes", "Bytes of prompt text of the requests that wait."),
            )
        ):
            yield _gauge(
                name,
                text,
                ("tenant", "pool"),
                (
                    ((row.label, row.pool), self.pools[row.pool].waiting.get(row.label, (0, 0))[place])
                    for row in self.rows
                ),
            )
        yield _gauge(
            "fairq_inflight",
            "Requests that hold a slot of the upstream. Returns to 0 when nothing runs.",
            ("tenant", "pool", "upstream"),
            (((label, name, up), n) for name, pool in self.pools.items() for (label, up), n in pool.inflight.items()),
        )
        yield _counter(
            "fairq_retries",
            "Requests that were sent to a second upstream because the first one failed before its first byte.",
            ("pool",),
            self._of_pools("retries"),
        )

    def _service(self) -> Iterator[Metric]:
        kinds = ("prompt", "cached", "completion")
        yield _counter(
            "fairq_service_tokens",
            "Tokens served, as upstreams reported them; tokens of kind cached are part of those of kind prompt.",
            ("tenant", "pool", "kind"),
            (
                ((row.label, row.pool, kind), n)
                for row in self.rows
                for kind, n in zip(kinds, row.numbers, strict=False)
            ),
        )
        yield _counter(
            "fairq_charged_cost",
            "Cost units charged at dispatch: alpha * input + beta * predicted output tokens, settled.",
            ("tenant", "pool"),
            (((row.label, row.pool), row.numbers[3]) for row in self.rows),
        )
        yield _gauge(
            "fairq_normalized_service",
            "Charged cost units / weight, each charge at the weight of its time. It rises equally for all tenants "
            "that are backlogged together.",
            ("tenant", "pool"),
            (((row.label, row.pool), row.numbers[4]) for row in self.rows if row.label != OTHER),
        )
        yield _histogram(
            "fairq_cost_estimate_ratio",
            "Actual cost / estimated cost of requests that reached an engine, without unit; 1 is exact.",
            ("pool",),
            (((name,), pool.ratios) for name, pool in self.pools.items()),
        )

    def _times(self) -> Iterator[Metric]:
        yield _histogram(
            "fairq_queue_wait_seconds",
            "Seconds from arrival to dispatch, or to the end of requests that were never dispatched.",
            ("tenant", "pool"),
            (((row.label, row.pool), row.wait) for row in self.rows),
            NS,
        )
        both = ("tenant", "pool", "wait")
        yield _histogram(
            "fairq_time_to_first_token_seconds",
            "Seconds to the first body byte of a response: wait=included from arrival, so with the time in the queue; "
            "wait=excluded from dispatch.",
            both,
            (
                ((row.label, row.pool, wait), times)
                for row in self.rows
                for wait, times in (("included", row.ttft), ("excluded", row.first_byte))
            ),
            NS,
        )
        yield _histogram(
            "fairq_time_per_output_token_seconds",
            "Seconds per output token: wait=excluded between the first and the last token, over all but the first; "
            "wait=included from arrival to end, so with the time in the queue, over all tokens.",
            both,
            (
                ((row.label, row.pool, wait), times)
                for row in self.rows
                for wait, times in (("included", row.latency), ("excluded", row.tpot))
                if times is not None
            ),
            NS,
        )

    def _fairness(self) -> Iterator[Metric]:
        pools = self.pools.items()
        yield _gauge(
            "fairq_virtual_time",
            "V, normalized cost units: the start tag of the request dispatched last. Not rebased.",
            ("pool",),
            (((name,), pool.virtual_time) for name, pool in pools),
        )
        yield _gauge(
            "fairq_meter",
            "M of each backlogged tenant, normalized cost units: the start tag of its next request. V <= M <= V + q.",
            ("tenant", "pool"),
            (((label, name), meter) for name, pool in pools for label, meter in pool.meters.items()),
        )
        yield _gauge(
            "fairq_bound_margin",
            "Least distance to a bound so far, normalized cost units; below 0 it was broken. band: V <= M <= V + q of "
            "every backlogged tenant; pairs: |Wi/wi - Wj/wj| <= 2q of two tenants while both are backlogged.",
            ("pool", "bound"),
            (((name, bound), margin) for name, pool in pools for bound, margin in pool.margins.items()),
        )
        yield _counter(
            "fairq_bound_violations",
            "How often a bound was broken that the pool's policy promises.",
            ("pool", "bound"),
            (((name, bound), n) for name, pool in pools for bound, n in pool.violations.items()),
        )
        yield _counter(
            "fairq_work_conservation_violations",
            "How often a slot was free after an event while a request waited that might have been dispatched.",
            ("pool",),
            (((name,), pool.idle_slots) for name, pool in pools),
        )

    def _upstreams(self) -> Iterator[Metric]:
        listed = [(name, *upstream) for name, pool in self.pools.items() for upstream in pool.upstreams]
        labels = ("pool", "upstream")
        yield _gauge(
            "fairq_slots",
            "Requests that the upstream may run at once.",
            labels,
            (((pool, name), slots) for pool, name, slots, _ in listed),
        )
        yield _gauge(
            "fairq_upstream_up",
            "1 while the upstream is healthy.",
            labels,
            (((pool, name), int(up)) for pool, name, _, up in listed),
        )
        yield _gauge(
            "fairq_upstream_queue",
            "Requests that wait inside the engine, by its own metrics. Should stay near 0: they cannot be ordered any "
            "more. Absent for an engine that does not tell.",
            labels,
            self.engines.items(),
        )

    def _ledger(self) -> Iterator[Metric]:
        for name, text in (
            ("events", "Events folded."),
            ("decisions", "Dispatch decisions folded."),
            ("bytes", "Bytes of ledger lines folded."),
            ("lost_lines", "Lines that the disk refused, as the data plane reported."),
            ("gaps", "Times at which recording was interrupted."),
            ("missed_events", "Events that never came here, because the console was not connected."),
        ):
            yield _counter(f"fairq_ledger_{name}", text, ("pool",), self._of_pools(name))
        yield _counter("fairq_ledger_unreadable_lines", "Lines that could not be folded.", (), [((), self.unreadable)])
        yield _gauge("fairq_ledger_connected", "1 while the data plane is connected.", (), [((), int(self.connected))])
        yield _gauge("fairq_ledger_lag_seconds", "Seconds between the last line and its folding.", (), [((), self.lag)])

    def _of_pools(self, counter: str) -> Iterator[tuple[tuple[str], int]]:
        return (((name,), pool.counters[counter]) for name, pool in self.pools.items())


def snapshot(live: Live) -> Snapshot:
    """A copy that no further line changes."""
    made = Snapshot(live.connected, live.lag / NS, live.unreadable, engines=dict(live.engines))
    for name, pool in live.pools.items():
        labels = dict(pool.tenants)
        if pool.other.outcomes or pool.other.charged or len(live.labels.named) < len(pool.world.tenants):
            labels[OTHER] = pool.other
        made.rows += [Row(label, name, totals, pool.latency.get(label)) for label, totals in labels.items()]
        made.pools[name] = _pool_copy(live, pool)
    return made


def _pool_copy(live: Live, pool: LivePool) -> PoolCopy:
    world, tags, checks, audit = pool.world, pool.tags, pool.audit.checks, pool.audit
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
        ratios=ratios,
        counters={
            "retries": pool.retries,
            "events": audit.events,
            "decisions": audit.decisions,
            "bytes": pool.bytes,
            "lost_lines": pool.lost,
            "gaps": pool.recording_gaps,
            "missed_events": pool.missed,
        },
    )


def _copy(histogram: Histogram) -> Histogram:
    copy = Histogram(histogram.bounds)
    copy.counts, copy.total = list(histogram.counts), histogram.total
    return copy


Samples = Iterable[tuple[tuple[str, ...], float]]


def _counter(name: str, text: str, labels: tuple[str, ...], samples: Samples) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _gauge(name: str, text: str, labels: tuple[str, ...], samples: Samples) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _histogram(
    name: str,
    text: str,
    labels: tuple[str, ...],
    samples: Iterable[tuple[tuple[str, ...], Histogram]],
    scale: float = 1,
) -> Metric:
    family = HistogramMetricFamily(name, text, labels=labels)
    for values, histogram in samples:
        seen, buckets = 0, []
        for bound, inside in zip(histogram.bounds, histogram.counts, strict=False):
            seen += inside
            buckets.append((f"{bound / scale:g}", float(seen)))
        buckets.append(("+Inf", float(seen + histogram.counts[-1])))
        family.add_metric(values, buckets, histogram.total / scale)
    return family
