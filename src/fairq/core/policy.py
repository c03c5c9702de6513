"""The policy contract: a policy decides who is next. It owns queues and tags, and nothing else.

The same object runs in every layer (CPU, link, cluster, router, engine, gateway). A layer drives it so:

    bind(layer)                        once
    flow_changed(flow, now)            before a flow's first job, and at every change of weight, pause, cap
    arrive(job, now, cause)            the job waits
    select(now, view) -> Pick | Wait   who is next, and why; pure
    commit(decision, now)              the decision is taken: the job leaves its queue
    charge(job, amount, now)           service given: at once for a router, by the tick, token or byte elsewhere
    stop(job, now, reason, on)         it no longer runs
    cancel(job, now)                   it leaves the queue unserved
    timer(now)                         the moment that `next_change` named has come

Order at one instant, in every layer: charges, finishes, arrivals and wakes, slice expiry, timers, select.

What sketching DRR, lottery with ticket transfer, MLFQ with boost, EDF, stride with leave and join, WFQ, EEVDF with
sleep, DLPM, VTC under event jumping and capped SFQ on it settled (tests/core/sketches keeps them):

* `commit` and `charge` are two calls. SFQ, stride and VTC choose first and learn the amount afterwards, so the
  rule of a router reads select / clock / dispatch / charge. A policy that must know the amount to choose (DRR,
  shortest, WFQ) asks `layer.cost(job)`, which is what `charge` will be given if the job is dispatched now.
* What `select` found out on the way (DRR's visits, DLPM's refills) travels in the decision's private `plan`, so that
  `select` stays pure and nothing is computed twice. A `Wait` with a plan is committed too: the state moves on although
  nobody was picked.
* Randomness is a function of a counter, `layer.random(n, stop)`, not a generator. Then `select` may look at its draw
  as often as it likes, `commit` consumes it by counting, and the counter is all there is to save.
* `stop` and `arrive` are separate. A preempted job is stopped, then arrives again with the cause, so that arrivals of
  the same instant can be queued before it (round robin) or after it (its `expired-first` option). A blocked one says
  `on` whom: lottery lends that flow its tickets until the job arrives again.
* `timer` is a call of its own. Had `select` to pretend that a boost or an aging step had happened already, so had
  `preempts`, `slice` and `show`. It comes once, even if several such moments have passed unnoticed.
* A flow that may not be dispatched from (paused, at its cap) is told by `flow_open`, not by moving its jobs: the
  queue stays, the flow is not backlogged, and it joins again like a flow that was idle.
* Service that is continuous (decode iterations) is announced by `started` and `stop` and read lazily from
  `layer.clock()`, which counts it; `charge` is then not called for it. Touching each running flow at each event costs
  an engine simulation a factor of six. The clock belongs to the layer because arrivals need it as well: VTC lifts a
  returning flow to counters that are moving.
* `next_change` and `next_overtaking` let a layer jump: the earliest time, or reading of the service clock, at which
  `select` could answer otherwise without an event (boost, aging; a counter passing another). Two calls, since a policy
  cannot know how long an iteration will take. They may be early, never late.
* What a job asks for besides its size is in the job (`priority`, `deadline`, `slice`), what a flow is due in the flow.
* `state` names jobs by id and `restore` is given them: a layer saves each job once, whatever its type.
* Numbers are whatever `layer.normalize` returns: exact rationals in a simulator, integers on a 2**-20 grid at the
  gateway. Policies only add and compare them.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar

from fairq.core.decision import NOTHING_WAITS as NOTHING_WAITS
from fairq.core.decision import Decision as Decision
from fairq.core.decision import Pick as Pick
from fairq.core.decision import Wait as Wait
from fairq.core.decision import Why as Why
from fairq.core.errors import ConfigError, UnknownName
from fairq.core.job import Flow, Job
from fairq.core.layer import Draw as Draw
from fairq.core.layer import Layer as Layer
from fairq.core.layer import Need as Need
from fairq.core.layer import View as View
from fairq.core.layer_defaults import ROOMY as ROOMY
from fairq.core.number import Number
from fairq.core.param import Param as Param

Time = Any
"""Whole in every layer but a fluid, where times are rationals. Policies only compare, add and subtract them."""


class Unit(StrEnum):
    """What a policy is fair in."""

    ORDER = "order of arrival"
    JOBS = "jobs"
    SERVICE = "service"
    NORMALIZED = "normalized service"
    COMPLETION = "completion time"
    DEADLINE = "deadline"
    PRIORITY = "priority"
    DOMINANT_SHARE = "dominant share"


class Cause(StrEnum):
    NEW = "new"
    WOKEN = "woken"
    PREEMPTED = "preempted"
    RETRIED = "retried"


class Stop(StrEnum):
    FINISHED = "finished"
    PREEMPTED = "preempted"
    SLICE_USED = "slice-used"
    BLOCKED = "blocked"


def says_itself(kind: type, way: str) -> bool:
    """Does `kind` have a short way that still does what its `select` and `commit` do? Not where a subclass has changed
    these, and not the way."""
    for one in kind.__mro__:
        if way in one.__dict__:
            return True
        if "select" in one.__dict__ or "commit" in one.__dict__:
            return False
    return False


class Policy:
    """The contract. Shared queues are in `core.queues`; most policies override two or three methods of those."""

    name: ClassVar[str]
    unit: ClassVar[Unit]
    needs: ClassVar[frozenset[Need]] = frozenset()
    params: ClassVar[tuple[Param, ...]] = ()
    keeps_order: ClassVar[bool] = False  # are the jobs of a flow served in order of arrival?
    version: ClassVar[int] = 1  # goes up when the same events would give other decisions

    layer: Layer

    def __init__(self, **given: object) -> None:
        for name in given.keys() - {param.name for param in self.params}:
            raise UnknownName(f"{self.name} parameter", name, [p.name for p in self.params] or ["(it has none)"])
        for param in self.params:
            value = given.get(param.name, param.default)
            setattr(self, param.name, param.parse(self.name, value))
        kind = type(self)
        self.short_take, self.short_peek = says_itself(kind, "take"), says_itself(kind, "peek")
        self.short_admit, self.short_fitting = says_itself(kind, "admit"), says_itself(kind, "fitting")

    def parameters(self) -> dict[str, Any]:
        return {param.name: getattr(self, param.name) for param in self.params}

    def bind(self, layer: Layer) -> None:
        missing = self.needs - layer.provides
        if missing:
            raise ConfigError(
                "policy", self.name, f"needs {', '.join(sorted(missing))}, which layer {layer.name} lacks"
            )
        self.layer = layer

    # Events
    def flow_changed(self, flow: Flow, now: Time) -> None: ...
    def flow_open(self, flow: str, open_: bool, now: Time) -> None: ...
    def forget(self, flow: str) -> None: ...
    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        raise NotImplementedError

    def cancel(self, job: Job, now: Time) -> None:
        raise NotImplementedError

    def priority_changed(self, job: Job, now: Time) -> None: ...

    # Decisions
    def select(self, now: Time, view: View) -> Decision:
        raise NotImplementedError

    def commit(self, decision: Decision, now: Time) -> None:
        raise NotImplementedError

    def take(self, now: Time, view: View) -> Job | None:
        """`select` and `commit` in one, for a layer that asks for no reason: the job, None for a Wait."""
        decision = self.select(now, view)
        self.commit(decision, now)
        return decision.job if isinstance(decision, Pick) else None

    def peek(self, now: Time, view: View) -> Job | None:
        """The job that `take` would take, None for a Wait. Pure, like `select`, and gives no reason."""
        decision = self.select(now, view)
        return decision.job if isinstance(decision, Pick) else None

    def admit(self, now: Time, view: View) -> Job | None:
        """`take`, if the job fits: for a layer in which the first in turn may have to wait for room. None if it does,
        and for a Wait, whose plan is carried out."""
        decision = self.select(now, view)
        if isinstance(decision, Pick):
            if not view.fits(decision.job):
                return None
            self.commit(decision, now)
            return decision.job
        if decision.plan is not None:
            self.commit(decision, now)
        return None

    def fitting(self, now: Time, view: View) -> Pick | None:
        """The first in turn that fits, for a layer in which a head that does not fit is passed over. A policy without
        an order of all that wait passes nobody over."""
        decision = self.select(now, view)
        return decision if isinstance(decision, Pick) and view.fits(decision.job) else None

    def refuses(self, job: Job, now: Time) -> bool:
        """Asked once before a job arrives, by layers that can turn it away; a refused job counts nowhere."""
        return False

    def next_change(self, now: Time, view: View) -> Time | None:
        """The earliest time at which `select` could answer otherwise without an event; may be early, never late."""
        return None

    def next_overtaking(self, view: View, before: int) -> int | None:
        """The same on the service clock, asked when the first in turn does not fit: the earliest reading at which
        another one that fits may be the first. `before`: no need to look as far; what fits can only become less."""
        return None

    def cached(self, blocks: Sequence[int]) -> None:
        """Told where PREFIX is provided: these blocks of prompts are in the cache from now on."""

    def timer(self, now: Time) -> None:
        """The moment of `next_change` has come, or is past."""

    # Service
    def charge(self, job: Job, amount: int, now: Time) -> None: ...
    def started(self, job: Job, now: Time, given: int = 0) -> None:
        """From now on it is given one unit with every tick of `layer.clock`, until it stops.

        `given`: units that starting itself has given it (a prompt's last chunk makes the first token).
        """

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        """`on`: the flow it waits for, when BLOCKED by one."""

    # Preemptive and fluid layers
    def slice(self, job: Job) -> int | None:
        """How long `job`, just committed, may run before the layer must select again; None: to completion."""
        return None

    def preempts(self, running: Job, now: Time) -> bool:
        """Does a waiting job take the place of `running` now?"""
        return False

    def rates(self, now: Time) -> Mapping[str, Number]:
        """Fluid policies: the share of the rate of each backlogged flow."""
        raise NotImplementedError

    # What shells read
    def waiting(self) -> int:
        """Jobs in queues."""
        raise NotImplementedError

    def backlogged(self) -> Sequence[str]:
        """Flows with work that may be dispatched."""
        raise NotImplementedError

    def is_backlogged(self, flow: str) -> bool:
        return flow in self.backlogged()

    def contended(self, flow: str) -> bool:
        """Is any flow but this one backlogged?"""
        return any(other != flow for other in self.backlogged())

    def lead(self, flow: str) -> int:
        """Cost units by which a flow is ahead of virtual time, rounded down; 0 where a policy has no tags."""
        return 0

    def show(self) -> Mapping[str, Any]:
        """What the lab and the metrics draw: tags, deficits, counters."""
        return {}

    def state(self) -> dict[str, Any]:
        """Everything, exactly, as JSON-able values; jobs by their ids."""
        raise NotImplementedError

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        """The inverse of `state`, on a fresh and bound policy. `jobs`: all that live, by id."""
        raise NotImplementedError

    def validate(self) -> None:
        """Assert every cross-index; for tests. Raises ValidationFailed."""
