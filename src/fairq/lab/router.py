"""Router steps as the lab shows them: an initial state, what was compared at each decision, and fairness so far."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from msgspec.structs import replace

from fairq.core.job import Flow
from fairq.core.policy import Decision, Layer, Pick, Policy, Time
from fairq.measure.fairness import jain
from fairq.policies import make
from fairq.sim.draw import draws
from fairq.sim.router.run import PROVIDES, RouterRun
from fairq.sim.trace import Step, Tape


class Watch(Tape):
    """Plays a recording, and keeps what the policy showed just before each decision was carried out."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.before: list[dict[str, Any]] = []

    def commit(self, decision: Decision, now: Time) -> None:
        if isinstance(decision, Pick):
            self.before.append(dict(self.policy.show()))
        self.policy.commit(decision, now)


def router_steps(run: Any, steps: list[Step]) -> list[Step]:
    """`what` gains virtual_time and reset (as in the run's JSON), before, and fairness: who is compared since when."""
    assert isinstance(run, RouterRun)
    assert run.tape is not None
    watches: list[Watch] = []

    def watch() -> Policy:
        watches.append(Watch(_bound(run)))
        return watches[0]

    for _ in run.tape.play(watch):
        pass
    before = iter(watches[0].before)
    so_far = _SoFar(run)
    found = [_initial(run)]
    for step, told in zip(steps, run.as_json()["steps"], strict=True):
        more: dict[str, Any] = {key: told[key] for key in ("virtual_time", "reset")}
        if len(found) == 1 and step.kind == "dispatch":
            more["joined"] = []  # they are in the initial state
        if step.kind == "dispatch":
            more["before"] = next(before)
            more["fairness"] = so_far.after(step)
        found.append(replace(step, what=step.what | more))
    return found


def _bound(run: RouterRun) -> Policy:
    policy = make(run.spec)
    policy.bind(Layer(name="router", provides=PROVIDES, random=draws(run.scenario.seed)))
    return policy


def _initial(run: RouterRun) -> Step:
    """Who is there at the start, before anything was decided."""
    policy = _bound(run)
    for tenant in run.scenario.tenants:
        policy.flow_changed(Flow(id=tenant.id, weight=Fraction(tenant.weight)), 0)
    queues: dict[str, list[str]] = {}
    remaining: dict[str, int] = {}
    for time, jobs in run.scenario.arrivals():
        for job in jobs if time == 0 else ():
            policy.arrive(job, 0)
            queues.setdefault(job.flow, []).append(job.id)
            remaining[job.id] = job.size or 0
    show: Mapping[str, Any] = policy.show()
    time_ = show.get("virtual_time")
    what = {"joined": list(queues), "virtual_time": None if time_ is None else str(time_), "reset": None}
    return Step(time=0, kind="initial", what=what, queues=queues, remaining=remaining, show=dict(show))


class _SoFar:
    """Normalized service since the set of backlogged tenants last changed; a new set starts from nothing."""

    def __init__(self, run: RouterRun) -> None:
        self.intervals = list(run.intervals)
        self.weights = run.weights()
        self.service: dict[str, Fraction] = {}
        self.place = -1

    def after(self, step: Step) -> dict[str, Any]:
        time = int(step.time)
        place = next(n for n, one in enumerate(self.intervals) if one.start <= time < one.end)
        interval = self.intervals[place]
        if place != self.place:
            self.place, self.service = place, dict.fromkeys(interval.service, Fraction(0))
        tenant = step.what["tenant"]
        self.service[tenant] += step.what["cost"] / self.weights[tenant]
        index = jain(self.service.values())
        return {
            "since": int(interval.start),
            "service": {name: str(amount) for name, amount in self.service.items()},
            "jain": None if index is None else float(index),
        }
