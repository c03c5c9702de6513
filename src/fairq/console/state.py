"""The live state in the API's types."""

import time
from fractions import Fraction

from fairq import __version__
from fairq.console.heaviest import OTHER
from fairq.console.joint import Joint, Together
from fairq.console.live import Live
from fairq.console.pool import LivePool
from fairq.console.standing import Seen, Standing, standing
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
from fairq.ledger.world import World
from fairq.measure.fairness import jain

SUMMARY_TENANTS = 20
PROMISES = frozenset({*BOUNDS, "work conservation"})
MINUTE, MOMENT = 60, 10  # seconds
URGENT = {standing: rank for rank, standing in enumerate((Standing.STARVED, Standing.FLOODING, Standing.CAPPED))}


def state_of(live: Live, most: int) -> State:
    """`most`: tenants shown of each pool, those with most charged cost first."""
    return State(
        fairq=__version__,
        time=time.time(),
        connected=live.connected,
        since=live.since,
        complaint=live.complaint,
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
    minute = _seen(pool, MINUTE, now)
    tenants = tenant_views(name, pool, now)
    window = minute.window
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
        fairness=fairness_of(pool.joint, minute),
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


def _seen(pool: LivePool, seconds: int, now: int) -> Seen:
    """Those that are counted on their own, and were served or wait."""
    window = pool.recent.window(seconds, now)
    names = {*window.charged, *window.backlogged} - {OTHER}
    return Seen(window, {name: _weight(pool.world, name) for name in names})


def tenant_views(pool_name: str, pool: LivePool, now: int, only: str | None = None) -> list[TenantView]:
    """Everybody who is configured, has living requests, is paused, or is counted alone. First who needs a look, then
    the heaviest; `other` last.

    O(tenants + living requests).
    """
    world = pool.world
    minute, moment = _seen(pool, MINUTE, now), _seen(pool, MOMENT, now)
    recent, charged = minute.window.charged, minute.window.charged.total()
    weights = {name: float(_weight(world, name)) for name in {*recent, *world.backlogged} - {OTHER}}
    entitled = sum(weights.values())
    slots = sum(upstream.slots for upstream in world.upstreams.values())
    inflight, waiting = pool.inflight_by_label(), pool.waiting_by_label()
    running = dict[str, int]()
    for (label, _), count in inflight.items():
        running[label] = running.get(label, 0) + count
    behind = 2 * units(pool.tags.reach)

    def view(name: str, totals: Totals) -> TenantView:
        tenant = world.tenants.get(name)
        flow = world.flows.get(name) or world.default
        real = name != OTHER
        lead = units(pool.tags.lead(tenant)) if tenant is not None and tenant.backlogged else None
        bound = behind * weights.get(name, 0.0)
        starved = any(seen.short(name, bound) for seen in (minute, moment))
        oldest, oldest_id = _oldest(tenant, now)
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
            standing=standing(name, tenant, minute, starved=starved, waiting=world.waiting, slots=slots),
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


def _oldest(tenant: Tenant | None, now: int) -> tuple[float | None, str]:
    """(seconds, id) of the request that has waited longest."""
    if tenant is None or not tenant.queue:
        return None, ""
    first = next(iter(tenant.queue.values())).request
    return max(now - first.arrival, 0) / 1e9, first.id


def _weight(world: World, name: str) -> Fraction:
    tenant = world.tenants.get(name)
    return tenant.weight if tenant else (world.flows.get(name) or world.default).weight


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
    return [view for name, pool in live.pools.items() for view in tenant_views(name, pool, now_of(live, pool), only)]
