"""A scheduler's whole state, as JSON-able values, and the check of its every invariant."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec.structs import astuple

from fairq.core.cost import CostModel
from fairq.core.errors import check
from fairq.core.lifecycle import State
from fairq.core.lines import of_plain, to_plain
from fairq.core.placement import Upstream
from fairq.core.roster import Tenant
from fairq.core.saved import SavedEntry, SavedTenant, SavedUpstream, entry_of, plain
from fairq.core.scheduler import Scheduler


def save(scheduler: Scheduler) -> dict[str, Any]:
    """Everything, exactly. O(jobs + tenants)."""
    tenants = scheduler.tenants.all
    return {
        "seq": scheduler.seq,
        "now": scheduler.now,
        "dark_since": scheduler.patience.dark_since,
        "busy": scheduler.busy,
        "upstreams": plain(scheduler.slots.upstreams.values(), SavedUpstream),
        "tenants": dict(zip(tenants, plain(tenants.values(), SavedTenant), strict=True)),
        "jobs": plain(scheduler.jobs.values(), SavedEntry),
        "retries": list(scheduler.retries),
        "policy": scheduler.policy.state(),
        "estimator": scheduler.estimator.state(),
        "rates": to_plain(scheduler.estimator.model),
        "settlement": scheduler.settlement.state(),
    }


def load(scheduler: Scheduler, state: Mapping[str, Any]) -> None:
    """Onto a fresh scheduler that was built from the same setup."""
    scheduler.seq, scheduler.now, scheduler.busy = state["seq"], state["now"], state["busy"]
    upstreams = of_plain(state["upstreams"], list[SavedUpstream])
    scheduler.slots.upstreams = {saved.name: Upstream(*astuple(saved)) for saved in upstreams}
    scheduler.slots.count()
    scheduler.tenants.all = {}
    for name, known in of_plain(state["tenants"], dict[str, SavedTenant]).items():
        scheduler.tenants.all[name] = tenant = Tenant(known.flow)
        tenant.configured, tenant.waiting, tenant.inflight = known.configured, known.waiting, known.inflight
    scheduler.tenants.waiting = sum(tenant.waiting for tenant in scheduler.tenants.all.values())
    scheduler.jobs = {saved.request.id: entry_of(saved) for saved in of_plain(state["jobs"], list[SavedEntry])}
    scheduler.retries = {id_: scheduler.jobs[id_] for id_ in state["retries"]}
    scheduler.patience.dark_since = state["dark_since"]
    for entry in scheduler.jobs.values():
        if entry.state in (State.WAITING, State.RETRYING):
            scheduler.patience.wait(entry.request)
    scheduler.estimator.adopt(of_plain(state["rates"], CostModel))
    scheduler.estimator.restore(state["estimator"])
    scheduler.settlement.restore(state["settlement"])
    scheduler.policy.restore(state["policy"], {id_: entry.request for id_, entry in scheduler.jobs.items()})


def validate(scheduler: Scheduler) -> None:
    """Assert every cross-index, and work conservation; for tests. Raises ValidationFailed. O(jobs + tenants)."""
    policy, slots, jobs = scheduler.policy, scheduler.slots, scheduler.jobs
    policy.validate()
    states = Counter(entry.state for entry in jobs.values())
    check(policy.waiting() == states[State.WAITING], f"the policy holds {policy.waiting()}, {states} live")
    check(scheduler.tenants.waiting == states[State.WAITING], f"{scheduler.tenants.waiting} are counted, {states} live")
    check(set(scheduler.retries) == {i for i, e in jobs.items() if e.state is State.RETRYING}, "retries are miscounted")
    check(scheduler.busy == bool(policy.waiting()), "the busy period is misjudged")
    running = Counter(entry.upstream for entry in jobs.values() if entry.state is State.RUNNING)
    for name, upstream in slots.upstreams.items():
        check(upstream.inflight == running[name], f"{name} counts {upstream.inflight} in flight, {running[name]} run")
    free = sum(max(upstream.free, 0) for upstream in slots.upstreams.values())
    check(slots.free == free, f"{slots.free} slots are counted free, {free} are")
    mine = Counter((entry.request.flow, entry.state) for entry in jobs.values())
    for name, tenant in scheduler.tenants.all.items():
        inflight = mine[name, State.RUNNING] + mine[name, State.RETRYING]
        check(tenant.inflight == inflight, f"{name} counts {tenant.inflight} in flight, {inflight} are")
        check(tenant.waiting == mine[name, State.WAITING], f"{name} miscounts its queue")
        backlogged = tenant.open and tenant.waiting > 0
        check(policy.is_backlogged(name) == backlogged, f"{name}: the policy thinks backlogged is {not backlogged}")
        check(not (backlogged and free), f"a slot is free while {name} is backlogged")
    living = {entry.request.flow for entry in jobs.values() if entry.state is not State.DELIVERING}
    check(living <= scheduler.tenants.all.keys(), "the tenant of a living job is forgotten")
    waits = {id_ for id_, entry in jobs.items() if entry.state in (State.WAITING, State.RETRYING)}
    dark = scheduler.patience.dark_since is not None
    check(dark != scheduler.is_lit(), "light is taken for darkness")
    ends = {id_ for id_ in waits if dark or jobs[id_].request.expires}
    check(scheduler.patience.key.keys() == ends, "whose patience ends is miscounted")
