"""One policy in every engine of a fleet."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

import msgspec

from fairq.core.job import Flow
from fairq.core.placement import Placement
from fairq.core.policy import Layer, Policy
from fairq.placements import make as make_placement
from fairq.placements.d2lpm import D2LPM
from fairq.policies import make
from fairq.policies.dlpm import DLPM
from fairq.sim.collector import collector_paused
from fairq.sim.draw import draws
from fairq.sim.engine.bounds import Bound
from fairq.sim.engine.closed import without
from fairq.sim.engine.run import EngineRun, bind
from fairq.sim.engine.scenario import SECOND
from fairq.sim.fleet.bounds import d2lpm_bound
from fairq.sim.fleet.fleet import Fleet, Member
from fairq.sim.fleet.prediction import Prediction
from fairq.sim.fleet.scenario import ROUTER, FleetScenario


class FleetRun(EngineRun):
    """What an engine's run tells, of all engines together.

    fleet  as it stands at the end
    """

    scenario: FleetScenario

    def __init__(self, scenario: FleetScenario, policy: str, record: str | None = None) -> None:
        if record is not None:
            raise ValueError(f"record = {record!r}: a fleet's run has no trace of steps")
        self.scenario, self.spec = scenario, policy
        with collector_paused():
            self.calls, followers = scenario.calls()
            given = scenario.weights()
            self._weights = {call.job.flow: given.get(call.job.flow, Fraction(1)) for call in self.calls}
            members = []
            for number in range(scenario.engines):
                made = make(policy)
                member = Member(made, scenario.limits(), scenario.cost_model())
                bind(made, member, self._weights, scenario.seed + number)
                members.append(member)
            self.policy, self.params = made.name, made.parameters()
            prediction = Prediction(scenario.predict)
            router = make(scenario.router)
            router.bind(Layer(name="router", provides=ROUTER, cost=prediction.cost, random=draws(scenario.seed)))
            for flow, weight in self._weights.items():
                router.flow_changed(Flow(id=flow, weight=weight), 0)
            placement = make_placement(scenario.placement, prefix=True)
            self.fleet = Fleet(members, router, placement, scenario.slots, prediction)
            self.fleet.run(without(self.calls, followers), followers)
        self.engine = members[0]
        self.occupancy = None
        self.bounds = self._bounds(made, placement)
        self.counters = {}

    @property
    def digest(self) -> str:
        """A hash of every first-token and finish time, how each request ended, and the engines' iterations."""
        times = [(call.first, call.finish, call.produced, call.reason) for call in self.calls]
        told = (times, [(one.iterations, one.clock) for one in self.fleet.members])
        return hashlib.blake2b(msgspec.json.encode(told), digest_size=16).hexdigest()

    def _bounds(self, policy: Policy, placement: Placement) -> list[Bound]:
        """Of D²LPM: its placement, DLPM in every engine, a router that holds nobody back."""
        scenario = self.scenario
        if not isinstance(placement, D2LPM) or not isinstance(policy, DLPM) or scenario.slots or not placement.quantum:
            return []
        quantum, preempted = max(placement.quantum, policy.quantum), self._total("preemptions")
        return [d2lpm_bound(self.calls, scenario.engines, scenario.limits().pool_tokens, quantum, preempted)]

    def measured(self) -> dict[str, Any]:
        return super().measured() | {name: self._total(name) for name in ("iterations", "preemptions")}

    def as_json(self) -> dict[str, Any]:
        told = super().as_json() | {name: self._total(name) for name in ("iterations", "preemptions")}
        del told["counters"], told["engine"], told["occupancy"]
        scenario = self.scenario
        before = {"router": scenario.router, "placement": scenario.placement, "slots": scenario.slots}
        return told | before | {"engines": self.engines()}

    def engines(self) -> list[dict[str, Any]]:
        """dispatched: requests that the router sent there; until: when it did its last iteration (s)."""
        return [
            {
                "name": one.upstream.name,
                "dispatched": self.fleet.sent[one.upstream.name],
                "iterations": one.iterations,
                "preemptions": one.preemptions,
                "prefilled_tokens": one.prefilled_tokens,
                "until": one.now / SECOND,
            }
            for one in self.fleet.members
        ]

    def _total(self, name: str) -> int:
        return sum(getattr(one, name) for one in self.fleet.members)
