"""A scheduler's whole state, as JSON-able values, and the check of its every invariant."""

from collections.abc import Mapping
from typing import Any

from fairq.core.cost import CostModel
from fairq.core.errors import check
from fairq.core.lifecycle import State
from fairq.core.lines import of_plain, to_plain
from fairq.core.placement import Upstream
from fairq.core.roster import Entry, Tenant
from fairq.core.scheduler import Scheduler


def save(scheduler: Scheduler) -> dict[str, Any]:
    """Everything, exactly. O(jobs + tenants)."""
    return {
        "seq": scheduler.seq,
        "now": scheduler.now,
        "dark_since": scheduler.dark_since,
        "busy": scheduler.busy,
        "upstreams": to_plain(list(scheduler.upstreams.values())),
        "tenants": to_plain(scheduler.tenants.all),
        "jobs": to_plain(list(scheduler.jobs.values())),
        "retries": list(scheduler.retries),
        "policy": scheduler.policy.state(),
        "estimator": scheduler.estimator.state(),
        "rates": to_plain(scheduler.estimator.model),
        "settlement": scheduler.settlement.state(),
    }


def load(scheduler: Scheduler, state: Mapping[str, Any]) -> None:
    """Onto a fresh scheduler that was built from the same setup."""
    scheduler.seq, scheduler.now = state["seq"], state["now"]
    scheduler.dark_since, scheduler.busy = state["dark_since"], state["busy"]
    scheduler.upstreams = {u.name: u for u in of_plain(state["upstreams"], list[Upstream])}
    scheduler.tenants.all = of_plain(state["tenants"], dict[str, Tenant])
    scheduler.jobs = {entry.request.id: entry for entry in of_plain(state["jobs"], list[Entry])}
    scheduler.retries = {id_: scheduler.jobs[id_] for id_ in state["retries"]}
    for entry in scheduler.jobs.values():
        if entry.state in (State.WAITING, State.RETRYING):
            scheduler.expiry.put(entry.request.id, entry.request.expires)
    scheduler.estimator.adopt(of_plain(state["rates"], CostModel))
    scheduler.estimator.restore(state["estimator"])
    scheduler.settlement.restore(state["settlement"])
    scheduler.policy.restore(state["policy"])


def validate(scheduler: Scheduler) -> None:
    """Assert every cross-index, and work conservation; for tests. Raises ValidationFailed."""
    policy, jobs = scheduler.policy, scheduler.jobs.values()
    policy.validate()
    waiting = sum(job.state is State.WAITING for job in jobs)
    check(policy.waiting() == waiting, f"the policy holds {policy.waiting()} jobs, {waiting} wait")
    for upstream in scheduler.upstreams.values():
        running = sum(job.upstream == upstream.name and job.state is State.RUNNING for job in jobs)
        check(upstream.inflight == running, f"{upstream.name} counts {upstream.inflight} in flight, {running} run")
    for name, tenant in scheduler.tenants.all.items():
        mine = [job.state for job in jobs if job.request.flow == name]
        inflight = mine.count(State.RUNNING) + mine.count(State.RETRYING)
        check(tenant.inflight == inflight, f"{name} counts {tenant.inflight} in flight, {inflight} are")
        check(tenant.waiting == mine.count(State.WAITING), f"{name} miscounts its queue")
        backlogged = tenant.open and tenant.waiting > 0
        check(policy.is_backlogged(name) == backlogged, f"{name}: the policy thinks backlogged is {not backlogged}")
        check(not (backlogged and scheduler.free_slots()), f"a slot is free while {name} is backlogged")
    living = {job.request.flow for job in jobs if job.state is not State.DELIVERING}
    check(living <= scheduler.tenants.all.keys(), "the tenant of a living job is forgotten")
