"""What an event does that is about a pool, and not about one of its jobs: its upstreams, tenants and rates."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairq.core import events as ev
from fairq.core.commands import AnyCommand
from fairq.core.lifecycle import Outcome, State

if TYPE_CHECKING:
    from fairq.core.scheduler import Scheduler

Commands = list[AnyCommand]


def upstream_changed(scheduler: "Scheduler", event: ev.UpstreamChanged, out: Commands) -> None:
    running = (entry.upstream for entry in scheduler.jobs.values() if entry.state is State.RUNNING)
    scheduler.slots.change(event.upstream, event.slots, event.healthy, event.draining, running)
    scheduler.judge_patience()


def upstream_removed(scheduler: "Scheduler", event: ev.UpstreamRemoved, out: Commands) -> None:
    scheduler.slots.remove(event.upstream)
    scheduler.judge_patience()


def draining(scheduler: "Scheduler", event: ev.Draining, out: Commands) -> None:
    for entry in list(scheduler.jobs.values()):
        if entry.state is State.WAITING or entry.state is State.RETRYING:
            scheduler.reject(entry, Outcome.REFUSED_SHUTTING_DOWN, out)


def paused(scheduler: "Scheduler", event: ev.Paused, out: Commands) -> None:
    scheduler.tenants.pause(event.tenant, True, scheduler.now)


def resumed(scheduler: "Scheduler", event: ev.Resumed, out: Commands) -> None:
    scheduler.tenants.pause(event.tenant, False, scheduler.now)


def reconfigured(scheduler: "Scheduler", event: ev.Reconfigured, out: Commands) -> None:
    scheduler.setup = replace(
        scheduler.setup,
        flows=event.flows,
        default_flow=event.default_flow,
        wait_for_upstream=event.wait_for_upstream,
        cost=event.cost,
    )
    scheduler.estimator.adopt(event.cost)
    scheduler.tenants.reconfigure(scheduler.setup, scheduler.now)
    scheduler.patience.limit = event.wait_for_upstream
    scheduler.judge_patience()


def calibrated(scheduler: "Scheduler", event: ev.CalibrationChanged, out: Commands) -> None:
    estimator = scheduler.estimator
    estimator.adopt(replace(estimator.model, alpha=event.alpha, beta=event.beta))


def nothing(scheduler: "Scheduler", event: ev.AnyEvent, out: Commands) -> None:
    """A `Tick` only lets time pass; the others are recorded so that the ledger is complete."""
