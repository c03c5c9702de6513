"""A fleet's steps as the lab shows them: those of its engines, in order of time, and where each request was placed."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from fairq.core.job import Flow, Generation, Job
from fairq.core.number import to_json
from fairq.core.placement import Placement, Upstream
from fairq.core.policy import Layer
from fairq.lab.engine import Ear, Noted, Notes
from fairq.placements import make as make_placement
from fairq.placements.d2lpm import D2LPM
from fairq.placements.holdings import Holdings, prefix_of
from fairq.policies import make
from fairq.sim.draw import draws
from fairq.sim.engine.call import Call
from fairq.sim.engine.closed import without
from fairq.sim.engine.run import bind
from fairq.sim.engine.scenario import SECOND
from fairq.sim.fleet.fleet import Fleet, Member
from fairq.sim.fleet.prediction import Prediction
from fairq.sim.fleet.run import FleetRun
from fairq.sim.fleet.scenario import ROUTER, FleetScenario
from fairq.sim.trace import Step


class WatchedMember(Noted, Member):
    def _iterate(self) -> None:
        prefilled = self.prefilled_tokens
        batch = self.batch
        super()._iterate()
        self.notes.iteration(self, self.prefilled_tokens - prefilled, batch)

    def _jump(self, until: int | None) -> None:
        batch = self.batch
        super()._jump(until)
        self.notes.iteration(self, 0, batch)

    def produced(self, call: Call) -> int:
        return call.produced if call.prefilled < call.target else self.clock - call.base


class Asked(Placement):
    """A placement that remembers what it saw when it chose last."""

    def __init__(self, inner: Placement) -> None:
        super().__init__()
        self.inner = inner
        self.saw: dict[str, dict[str, int]] = {}

    def choose(self, job: Job, upstreams: Sequence[Upstream]) -> Upstream:
        names = [one.name for one in upstreams]
        self.saw = {"inflight": {one.name: one.inflight for one in upstreams}}
        holdings = getattr(self.inner, "holdings", None)
        if isinstance(holdings, Holdings):
            prefix = prefix_of(job)
            self.saw["held_blocks"] = {name: holdings.longest(prefix, [name])[0] for name in names}
        if isinstance(self.inner, D2LPM) and self.inner.quantum:
            given = self.inner.refills(job.flow, names) * self.inner.quantum
            self.saw["budget"] = {name: self.inner.budget(job.flow, name) + given for name in names}
        return self.inner.choose(job, upstreams)

    def dispatched(self, job: Job, upstream: Upstream) -> None:
        self.inner.dispatched(job, upstream)

    def finished(self, job: Job, upstream: Upstream) -> None:
        self.inner.finished(job, upstream)


class WatchedFleet(Fleet):
    """placed  (ns, what) of each request; engine_of: where it went"""

    placement: Asked

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.placed: list[tuple[int, dict[str, Any]]] = []
        self.engine_of: dict[str, str] = {}

    def _send(self, call: Call, upstream: Upstream, now: int) -> None:
        job = call.job
        assert isinstance(job, Generation)
        self.engine_of[job.id] = upstream.name
        what = {"id": job.id, "client": job.flow, "engine": upstream.name, "prompt": job.prompt}
        at_router: dict[str, int] = {}
        for other in self.waiting.values():
            at_router[other.job.flow] = at_router.get(other.job.flow, 0) + 1
        self.placed.append(
            (now, what | {"blocks": len(prefix_of(job)), "saw": self.placement.saw, "router": at_router})
        )
        super()._send(call, upstream, now)


def fleet_steps(scenario: FleetScenario, run: Any) -> tuple[list[Step], dict[str, str]]:
    """The steps; and where each request went, by id."""
    assert isinstance(run, FleetRun)
    calls, followers = scenario.calls()
    members = []
    for number in range(scenario.engines):
        ear = Ear()
        policy = ear.policy(run.spec)
        member = WatchedMember(policy, scenario.limits(), scenario.cost_model())
        member.notes = Notes(ear, member.produced)
        bind(policy, member, run.weights(), scenario.seed + number)
        members.append(member)
    prediction = Prediction(scenario.predict)
    router = make(scenario.router)
    router.bind(Layer(name="router", provides=ROUTER, cost=prediction.cost, random=draws(scenario.seed)))
    for flow, weight in run.weights().items():
        router.flow_changed(Flow(id=flow, weight=weight), 0)
    placement = Asked(make_placement(scenario.placement, prefix=True))
    fleet = WatchedFleet(members, router, placement, scenario.slots, prediction)
    fleet.run(without(calls, followers), followers)
    return _together(fleet, scenario), fleet.engine_of


def _together(fleet: WatchedFleet, scenario: FleetScenario) -> list[Step]:
    """One list in order of time. Each step shows all engines, and what the policy of the one that it is about keeps."""
    names = [member.upstream.name for member in fleet.members]
    happened: list[tuple[int, int, str, Any]] = [(now, 0, what["engine"], what) for now, what in fleet.placed]
    for member in fleet.members:
        assert isinstance(member, WatchedMember)
        happened += [(now, 1, member.upstream.name, step) for now, step in member.notes.steps]
    happened.sort(key=lambda one: one[:3])
    blocks = scenario.limits().blocks
    last = {name: _empty(blocks) for name in names}
    on_way: dict[str, dict[str, str]] = {name: {} for name in names}  # sent, and not yet seen by the engine
    found: list[Step] = []
    for now, _, name, one in happened:
        if isinstance(one, Step):
            last[name] = one
            for id_ in one.what["arrived"]:
                on_way[name].pop(id_, None)
            what, kind, why = dict(one.what), "iteration", one.why
        else:
            on_way[name][one["id"]] = one["client"]
            what, kind, why = {"placed": one, "router": one["router"], "admitted": []}, "place", None
        waiting: dict[str, int] = {}
        for part in last.values():
            for client, count in part.what["waiting"].items():
                waiting[client] = waiting.get(client, 0) + count
        for sent in on_way.values():
            for client in sent.values():
                waiting[client] = waiting.get(client, 0) + 1
        found.append(
            Step(
                time=to_json(Fraction(now, SECOND)),
                kind=kind,
                what=what
                | {
                    "engine": name,
                    "waiting": waiting,
                    "held": {id_: count for part in last.values() for id_, count in part.what["held"].items()},
                    "free": sum(part.what["free"] for part in last.values()),
                    "engines": {
                        each: {
                            "waiting": sum(part.what["waiting"].values()) + len(on_way[each]),
                            "running": len(part.running),
                            "free": part.what["free"],
                            "blocks": blocks,
                        }
                        for each, part in last.items()
                    },
                },
                why=why,
                queues=_queues(last),
                running=[id_ for part in last.values() for id_ in part.running],
                remaining={id_: left for part in last.values() for id_, left in part.remaining.items()},
                show=last[name].show,
            )
        )
    return found


def _empty(blocks: int) -> Step:
    return Step(time=0, kind="iteration", what={"waiting": {}, "held": {}, "free": blocks})


def _queues(last: dict[str, Step]) -> dict[str, list[str]]:
    queues: dict[str, list[str]] = {}
    for part in last.values():
        for client, ids in part.queues.items():
            queues.setdefault(client, []).extend(ids)
    return queues
