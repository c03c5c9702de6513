"""The live state in the API's types."""

import time

from fairq import __version__
from fairq.console.heaviest import OTHER
from fairq.console.joint import Joint, Together
from fairq.console.judgement import Judgement
from fairq.console.live import Live
from fairq.console.pool import LivePool
from fairq.console.standing import Seen, Standing
from fairq.console.views import (
    Bounds,
    Fairness,
    Minute,
    PoolView,
    Record,
    State,
    TenantView,
    TogetherView,
    Tokens,
    UpstreamView,
)
from fairq.ledger.book import Tenant
from fairq.ledger.checks import BOUNDS
from fairq.ledger.fold import Totals
from fairq.ledger.tags import units
from fairq.measure.fairness import jain

SUMMARY_TENANTS = 20
PROMISES = frozenset({*BOUNDS, "work conservation"})
URGENT = {standing: rank for rank, standing in enumerate((Standing.STARVED, Standing.FLOODING, Standing.CAPPED))}


def state_of(live: Live, most: int) -> State:
    """`most`: tenants shown of each pool, those with most charged cost first."""
    return State(
        fairq=__version__,
        time=time.time(),
        connected=live.connected,
        since=live.since,
        complaint="; ".join(filter(None, (live.complaint, *live.unrecorded.values()))),
        lag=live.lag / 1e9,
        unreadable=live.unreadable,
        pools=[pool_view(live, name, pool, most) for name, pool in live.pools.items()],
    )


def summary_of(live: Live) -> State:
    """The state without its details, to be sent often."""
    state = state_of(live, SUMMARY_TENANTS)
    for pool in state.pools:
        pool.bounds.checks = [check for check in pool.bounds.checks if check.name in PROMISES]
        pool.bounds.pairs, pool.fairness.sets = [], []
    return state


def pool_view(live: Live, name: str, pool: LivePool, most: int) -> PoolView:
    world, setup, audit = pool.world, pool.head.setup if pool.head else None, pool.audit
    now = now_of(live, pool)
    judgement = Judgement(pool, now)
    tenants = tenant_views(name, pool, now, judgement)
    window = judgement.minute.window
    return PoolView(
        name=name,
        since=pool.since,
        policy=setup.policy if setup else "",
        settlement=setup.settlement if setup else "",
        virtual_time=pool.virtual_time,
        reach=units(pool.tags.reach),
        minute=Minute(
            seconds=window.seconds,
            charged=window.charged.total(),
            prompt=window.prompt / window.seconds,
            completion=window.completion / window.seconds,
        ),
        waiting=world.waiting,
        inflight=sum(upstream.inflight for upstream in world.upstreams.values()),
        slots=sum(upstream.slots for upstream in world.upstreams.values()),
        free=world.free,
        admitted=audit.admitted,
        refused=audit.refused,
        retries=pool.retries,
        outcomes=dict(sorted(audit.outcomes.items())),
        last_event=pool.wall(world.now),
        bounds=bounds_of(pool),
        fairness=fairness_of(pool.joint, judgement.minute),
        record=Record(
            events=audit.events,
            decisions=audit.decisions,
            bytes=pool.bytes,
            missed=pool.missed,
            lost=pool.lost,
            gaps=pool.recording_gaps,
        ),
        tenants=tenants[:most],
        more_tenants=max(len(tenants) - most, 0),
        upstreams=upstream_views(live, name, pool),
    )


def bounds_of(pool: LivePool) -> Bounds:
    report = pool.audit.report()
    band = next(check for check in report.checks if check.name == "band")
    broken = sum(check.violations for check in report.checks if check.promised)
    return Bounds(
        held=not broken,
        decisions=report.decisions,
        violations=broken,
        worst_margin=band.margin,
        checks=report.checks,
        pairs=report.pairs,
    )


def fairness_of(joint: Joint, minute: Seen) -> Fairness:
    joint.cut()
    return Fairness(
        jain_minute=minute.index(),
        jain_charged=joint.index(lambda together: together.charged),
        jain_actual=joint.index(lambda together: together.actual),
        sets=[_together(together) for _, together in joint.heaviest()],
    )


def _together(together: Together) -> TogetherView:
    charged, actual = jain(together.charged.values()), jain(together.actual.values())
    return TogetherView(
        tenants=list(together.charged),
        seconds=together.duration / 1e9,
        charged={name: units(amount) for name, amount in together.charged.items()},
        actual={name: units(amount) for name, amount in together.actual.items()},
        jain_charged=None if charged is None else float(charged),
        jain_actual=None if actual is None else float(actual),
    )


def now_of(live: Live, pool: LivePool) -> int:
    """The clock of the lines; while nothing comes in it stands."""
    return max(time.monotonic_ns(), pool.world.now) if live.connected else pool.world.now


def tenant_views(
    pool_name: str, pool: LivePool, now: int, judgement: Judgement, only: str | None = None
) -> list[TenantView]:
    """Everybody who is configured, has living requests, is paused, or is counted alone. First who needs a look, then
    the heaviest; `other` last.

    O(tenants + living requests).
    """
    world = pool.world
    minute = judgement.minute
    recent, charged = minute.window.charged, minute.window.charged.total()
    weights = {name: float(pool.weight(name)) for name in {*recent, *world.backlogged} - {OTHER}}
    entitled = sum(weights.values())
    inflight, waiting = pool.inflight_by_label(), pool.waiting_by_label()
    running = dict[str, int]()
    for (label, _), count in inflight.items():
        running[label] = running.get(label, 0) + count

    def view(name: str, totals: Totals) -> TenantView:
        tenant = world.tenants.get(name)
        flow = world.flows.get(name) or world.default
        real = name != OTHER
        lead = units(pool.tags.lead(tenant)) if tenant is not None and tenant.backlogged else None
        oldest, oldest_id = first_wait(tenant, now)
        return TenantView(
            id=name,
            pool=pool_name,
            weight=str(tenant.weight if tenant else flow.weight) if real else None,
            max_inflight=tenant.cap if tenant else flow.max_inflight if real else None,
            configured=name in world.flows,
            paused=tenant.paused if tenant else flow.paused and real,
            waiting=len(tenant.queue) if tenant else waiting.get(name, (0, 0))[0],
            inflight=tenant.inflight if tenant else running.get(name, 0),
            backlogged=tenant is not None and tenant.backlogged,
            charged=totals.charged,
            actual=totals.actual,
            normalized=totals.normalized,
            meter=None if lead is None else lead + pool.virtual_time,
            lead=lead,
            standing=judgement.of(name, tenant),
            share=recent[name] / charged if charged else None,
            entitled=weights[name] / entitled if name in weights else None,
            fair=minute.share(name),
            wanting=minute.window.backlogged.get(name, 0.0),
            oldest=oldest,
            oldest_id=oldest_id,
            tokens=Tokens(totals.prompt, totals.cached, totals.completion),
            outcomes=dict(sorted(totals.outcomes.items())),
        )

    nothing = Totals()
    names = {*pool.tenants, *world.tenants, *world.flows} - {OTHER, ""}
    if only is not None:
        names &= {only}
    views = [view(name, pool.tenants.get(name, nothing)) for name in names]
    views.sort(key=lambda each: (URGENT.get(each.standing, len(URGENT)), -each.charged, -each.waiting, each.id))
    if only is None and (pool.other.outcomes or pool.other.charged):
        views.append(view(OTHER, pool.other))
    return views


def first_wait(tenant: Tenant | None, now: int) -> tuple[float | None, str]:
    """(seconds, id) of the request that has waited longest."""
    if tenant is None or not tenant.queue:
        return None, ""
    first = next(iter(tenant.queue.values())).request
    return max(now - first.arrival, 0) / 1e9, first.id


def upstream_views(live: Live, pool_name: str, pool: LivePool) -> list[UpstreamView]:
    return [
        UpstreamView(
            pool=pool_name,
            name=upstream.name,
            slots=upstream.slots,
            inflight=upstream.inflight,
            healthy=upstream.healthy,
            draining=upstream.draining,
            queue=live.engines.get((pool_name, upstream.name)),
        )
        for upstream in pool.world.upstreams.values()
    ]


def everywhere(live: Live, only: str | None = None) -> list[TenantView]:
    """Tenants of all pools."""
    found = []
    for name, pool in live.pools.items():
        now = now_of(live, pool)
        found += tenant_views(name, pool, now, Judgement(pool, now), only)
    return found
