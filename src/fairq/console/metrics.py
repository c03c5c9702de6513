"""/metrics: Prometheus families made from a snapshot of the folded state."""

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from fairq.console.heaviest import OTHER
from fairq.console.snapshot import Snapshot
from fairq.ledger.histogram import Histogram

NS = 1e9
BESIDE = "Tenants with most traffic have a label of their own; the others are `other`."


class Families(Collector):
    """The families of one scrape."""

    def __init__(self, taken: Snapshot) -> None:
        self.taken = taken

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
            (((row.label, row.pool, name), n) for row in self.taken.rows for name, n in row.outcomes.items()),
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
                    ((row.label, row.pool), self.taken.pools[row.pool].waiting.get(row.label, (0, 0))[place])
                    for row in self.taken.rows
                ),
            )
        yield _gauge(
            "fairq_queue_oldest_seconds",
            "Seconds that the first waiting request has waited; 0 when none waits.",
            ("tenant", "pool"),
            (((label, name), age) for name, pool in self.taken.pools.items() for label, age in pool.oldest.items()),
        )
        yield _gauge(
            "fairq_inflight",
            "Requests that hold a slot of the upstream. Returns to 0 when nothing runs.",
            ("tenant", "pool", "upstream"),
            (
                ((label, name, up), n)
                for name, pool in self.taken.pools.items()
                for (label, up), n in pool.inflight.items()
            ),
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
                for row in self.taken.rows
                for kind, n in zip(kinds, row.numbers, strict=False)
            ),
        )
        yield _counter(
            "fairq_charged_cost",
            "Cost units charged at dispatch: alpha * input + beta * predicted output tokens, settled.",
            ("tenant", "pool"),
            (((row.label, row.pool), row.numbers[3]) for row in self.taken.rows),
        )
        yield _gauge(
            "fairq_normalized_service",
            "Charged cost units / weight, each charge at the weight of its time. It rises equally for all tenants "
            "that are backlogged together.",
            ("tenant", "pool"),
            (((row.label, row.pool), row.numbers[4]) for row in self.taken.rows if row.label != OTHER),
        )
        yield _histogram(
            "fairq_cost_estimate_ratio",
            "Actual cost / estimated cost of requests that reached an engine, without unit; 1 is exact.",
            ("pool",),
            (((name,), pool.ratios) for name, pool in self.taken.pools.items()),
        )

    def _times(self) -> Iterator[Metric]:
        yield _histogram(
            "fairq_queue_wait_seconds",
            "Seconds from arrival to dispatch, or to the end of requests that were never dispatched.",
            ("tenant", "pool"),
            (((row.label, row.pool), row.wait) for row in self.taken.rows),
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
                for row in self.taken.rows
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
                for row in self.taken.rows
                for wait, times in (("included", row.latency), ("excluded", row.tpot))
                if times is not None
            ),
            NS,
        )

    def _fairness(self) -> Iterator[Metric]:
        pools = self.taken.pools.items()
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
            "fairq_meter_bound",
            "q, normalized cost units: no backlogged tenant's meter may be farther ahead of V now, where the pool's "
            "policy promises it.",
            ("pool",),
            (((name,), pool.reach) for name, pool in pools),
        )
        yield _gauge(
            "fairq_share",
            "Part of the cost charged in the last minute, 0 to 1.",
            ("tenant", "pool"),
            (((label, name), got) for name, pool in pools for label, (got, _) in pool.shares.items()),
        )
        yield _gauge(
            "fairq_fair_share",
            "What part of it would be fair, by max-min: what the tenant's weight gives it, where nobody is due more "
            "than it asked for, and what that leaves goes to those that wanted more.",
            ("tenant", "pool"),
            (
                ((label, name), due)
                for name, pool in pools
                for label, (_, due) in pool.shares.items()
                if due is not None
            ),
        )
        yield _gauge(
            "fairq_starved",
            "1 while the tenant wants more and gets less than its fair share, by more than a fair order allows.",
            ("tenant", "pool"),
            (((label, name), int(is_)) for name, pool in pools for label, is_ in pool.starved.items()),
        )
        yield _gauge(
            "fairq_fairness_index",
            "Jain's index of share / fair share over the last minute, without unit; 1 is fair. Absent while nothing "
            "is served.",
            ("pool",),
            (((name,), pool.index) for name, pool in pools if pool.index is not None),
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
        listed = [(name, *upstream) for name, pool in self.taken.pools.items() for upstream in pool.upstreams]
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
            self.taken.engines.items(),
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
        yield _gauge(
            "fairq_ledger_recording",
            "0 while the disk refuses the ledger; what it refused is counted when it takes lines again.",
            ("pool",),
            self._of_pools("recording"),
        )
        taken = self.taken
        yield _counter("fairq_ledger_unreadable_lines", "Lines that could not be folded.", (), [((), taken.unreadable)])
        yield _gauge("fairq_ledger_connected", "1 while the data plane is connected.", (), [((), int(taken.connected))])
        yield _gauge(
            "fairq_ledger_lag_seconds", "Seconds between the last line and its folding.", (), [((), taken.lag)]
        )

    def _of_pools(self, counter: str) -> Iterator[tuple[tuple[str], int]]:
        return (((name,), pool.counters[counter]) for name, pool in self.taken.pools.items())


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
