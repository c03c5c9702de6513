"""One policy in every engine of a fleet."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

import msgspec

from fairq.core.job import Flow
from fairq.core.policy import Layer
from fairq.placements import make as make_placement
from fairq.policies import make
from fairq.sim.collector import collector_paused
from fairq.sim.draw import draws
from fairq.sim.engine.closed import without
from fairq.sim.engine.figures import occupied
from fairq.sim.engine.occupancy import Occupancy
from fairq.sim.engine.run import EngineRun, bind
from fairq.sim.engine.scenario import SECOND
from fairq.sim.fleet.bounds import bounds
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
            members: list[Member] = []
            self.occupancies: list[Occupancy] = []
            for number in range(scenario.engines):
                made = make(policy)
                member = Member(made, scenario.limits_for_prefixes(), scenario.cost_model())
                bind(made, member, self._weights, scenario.seed + number)
                members.append(member)
                if scenario.occupancy:
                    self.occupancies.append(watched := Occupancy(member))
                    member.watch = watched
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
        pool, preempted = scenario.limits().pool_tokens, self._total("preemptions")
        self.bounds = bounds(self.calls, made, placement, scenario.engines, pool, scenario.slots, preempted)
        self.counters = {}

    @property
    def digest(self) -> str:
        """A hash of every first-token and finish time, how each request ended, and the engines' iterations."""
        times = [(call.first, call.finish, call.produced, call.reason) for call in self.calls]
        told = (times, [(one.iterations, one.clock) for one in self.fleet.members])
        return hashlib.blake2b(msgspec.json.encode(told), digest_size=16).hexdigest()

    def filled(self) -> list[tuple[str, Occupancy]]:
        names = (one.upstream.name for one in self.fleet.members)
        return list(zip(names, self.occupancies, strict=False))

    def measured(self) -> dict[str, Any]:
        return super().measured() | {name: self._total(name) for name in ("iterations", "preemptions")}

    def as_json(self) -> dict[str, Any]:
        told = super().as_json() | {name: self._total(name) for name in ("iterations", "preemptions")}
        del told["counters"], told["engine"], told["occupancy"]
        scenario = self.scenario
        before = {"router": scenario.router, "placement": scenario.placement, "slots": scenario.slots}
        return told | before | {"engines": self.engines()}

    def engines(self) -> list[dict[str, Any]]:
        """dispatched: requests that the router sent there; until: when it did its last iteration (s);
        occupancy: as of one engine, where it was asked for."""
        filled = dict(self.filled())
        return [
            {
                "name": one.upstream.name,
                "dispatched": self.fleet.sent[one.upstream.name],
                "iterations": one.iterations,
                "preemptions": one.preemptions,
                "prefilled_tokens": one.prefilled_tokens,
                "until": one.now / SECOND,
                "occupancy": occupied(filled[one.upstream.name]) if filled else None,
            }
            for one in self.fleet.members
        ]

    def _total(self, name: str) -> int:
        return sum(getattr(one, name) for one in self.fleet.members)
