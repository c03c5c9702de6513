"""One policy on one router scenario: decisions in logical time, as the article's lab shows them.

The order at a boundary of logical time:

* something waits: who joins now joins first, then the dispatch of this time is chosen;
* the last dispatch emptied every queue: its idle reset has happened, then joins, also those of the same instant;
* everything is empty and somebody is still to come: time jumps there. Reset and joins are a step of their own;
* nobody is to come: the reset is noted in the last dispatch.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any

from msgspec import to_builtins

from fairq.core.errors import ConfigError
from fairq.core.job import Flow
from fairq.core.number import exact
from fairq.core.policy import ROOMY, Layer, Need, Pick, Policy, Stop
from fairq.measure.fairness import BackloggedIntervals, Interval
from fairq.measure.latency import flat
from fairq.measure.served import Measures, Served, measure
from fairq.policies import make
from fairq.sim.draw import draws
from fairq.sim.router.scenario import RouterScenario
from fairq.sim.scenario import Run, interval_json
from fairq.sim.trace import Tape, Trace

PROVIDES = frozenset({Need.SIZE, Need.RANDOM})


class RouterRun(Run):
    """record  None, or "events": a trace with one step per decision

    order      tenants in the order of their dispatches
    intervals  of joint backlog, with normalized service (cost / weight)
    """

    def __init__(self, scenario: RouterScenario, policy: str, record: str | None = None) -> None:
        if record not in (None, "events"):
            raise ValueError(f"record = {record!r}: must be None or 'events'")
        self.scenario, self.spec = scenario, policy
        bound = self._bound()
        self.policy, self.params = bound.name, bound.parameters()
        self.tape = Tape(bound) if record else None
        self.order: list[str] = []
        self.intervals: list[Interval] = []
        self.served: list[Served] = []
        for step in self._steps(self.tape or bound, served=self.served):
            if step["kind"] == "dispatch":
                self.order.append(step["tenant"])

    def _bound(self) -> Policy:
        policy = make(self.spec)
        policy.bind(Layer(name="router", provides=PROVIDES, random=draws(self.scenario.seed)))
        return policy

    def _steps(
        self, policy: Policy, detailed: bool = False, served: list[Served] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Drives `policy` through the scenario. `detailed`: with what the policy shows, which takes O(tenants)."""
        intervals = BackloggedIntervals()
        weights = {tenant.id: tenant.weight.as_integer_ratio() for tenant in self.scenario.tenants}
        for tenant in self.scenario.tenants:
            policy.flow_changed(Flow(id=tenant.id, weight=Fraction(tenant.weight)), 0)
        coming = self.scenario.arrivals()[::-1]
        now = 0

        def join() -> list[str]:
            joined: dict[str, None] = {}
            while coming and coming[-1][0] <= now:
                for job in coming.pop()[1]:
                    policy.arrive(job, now)
                    joined[job.flow] = None
                    intervals.enter(job.flow, now)
            return list(joined)

        joined = join()
        while policy.waiting() or coming:
            if not policy.waiting():
                now = max(now, coming[-1][0])
                reset = tags(policy)["virtual_time"] if detailed else None
                step: dict[str, Any] = {"kind": "idle", "time": now, "reset": reset, "joined": join()}
                self._note(policy, step)
                yield step | (tags(policy) if detailed else {})
                joined = []
            decision = policy.select(now, ROOMY)
            if not isinstance(decision, Pick):
                raise ConfigError("policy", self.spec, f"lets requests wait ({decision.why.code}); a router cannot")
            job = decision.job
            cost = job.size or 0
            policy.commit(decision, now)
            clock = tags(policy)["virtual_time"] if detailed else None
            policy.charge(job, cost, now)
            policy.stop(job, now, Stop.FINISHED)  # what becomes of it is not the router's to see
            intervals.charge(job.flow, exact(cost, *weights[job.flow]))
            if not policy.is_backlogged(job.flow):
                intervals.leave(job.flow, now + 1)
            step = {"kind": "dispatch", "time": now, "joined": joined, "tenant": job.flow, "cost": cost, "reset": None}
            after = {}
            if detailed:
                why = {"code": decision.why.code, "values": decision.why.values}
                after = {"why": why} | tags(policy)
                if not policy.waiting() and not coming:
                    step["reset"] = after["virtual_time"]
                after["virtual_time"] = clock
            self._note(policy, step, decision)
            yield step | after
            if served is not None:
                served.append(
                    Served(flow=job.flow, arrival=job.arrival, start=now, finish=now + 1, time=1, amount=cost)
                )
            now += 1
            joined = join() if policy.waiting() else []
        self.intervals = intervals.close(now)

    def _note(self, policy: Policy, step: dict[str, Any], decision: Pick | None = None) -> None:
        if policy is self.tape:
            what = {key: value for key, value in step.items() if key not in ("kind", "time", "reset")}
            self.tape.step(step["time"], step["kind"], decision.why if decision else None, **what)

    @cached_property
    def measures(self) -> Measures:
        """In logical time: a dispatch takes 1."""
        return measure(self.served)

    def measured(self) -> dict[str, Any]:
        return flat(self.measures)

    def fairness(self) -> list[Interval]:
        """Normalized service (cost / weight) over the intervals in which the same tenants have requests waiting."""
        return self.intervals

    def weights(self) -> dict[str, Fraction]:
        return {tenant.id: Fraction(tenant.weight) for tenant in self.scenario.tenants}

    def jobs(self) -> list[dict[str, Any]]:
        return [
            {"tenant": one.flow, "cost": one.amount, "joined": one.arrival, "dispatched": one.start}
            | {"waiting": one.waiting}
            for one in self.served
        ]

    def as_json(self) -> dict[str, Any]:
        """Tags are exact rationals as strings, never rebased; null and no meters from a policy without virtual time."""
        policy = self._bound()
        steps = list(self._steps(policy, detailed=True))
        return {
            "policy": self.policy,
            "params": {name: str(v) if isinstance(v, Fraction) else v for name, v in self.params.items()},
            "order": self.order,
            "steps": steps,
            "final_virtual_time": tags(policy)["virtual_time"],
            "fairness": [interval_json(interval, "tenants", self.max_min(interval)) for interval in self.intervals],
            "measures": to_builtins(self.measures),
        }

    def trace(self) -> Trace:
        if self.tape is None:
            raise ValueError("this run was not recorded")
        return Trace.of(self, self.tape.play(self._bound))


def tags(policy: Policy) -> dict[str, Any]:
    """Virtual time and meters of a policy that has them; what else it shows, under `show`."""
    show = dict(policy.show())
    virtual_time, meters = show.pop("virtual_time", None), show.pop("meters", {})
    found: dict[str, Any] = {
        "virtual_time": None if virtual_time is None else str(virtual_time),
        "meters": {flow: str(meter) for flow, meter in meters.items()},
    }
    return found | ({"show": show} if show else {})
