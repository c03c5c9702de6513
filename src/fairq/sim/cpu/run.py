"""One policy on one CPU scenario: what came out, for tables, `--json` and traces."""

from fractions import Fraction
from typing import Any

from fairq.core.number import Number
from fairq.core.policy import Layer, Need, Policy
from fairq.policies import make
from fairq.sim.cpu.live import Live
from fairq.sim.cpu.machine import Machine
from fairq.sim.cpu.processor import Slice
from fairq.sim.cpu.scenario import CpuScenario
from fairq.sim.draw import draws
from fairq.sim.scenario import Run
from fairq.sim.trace import Tape, Trace, stored

PROVIDES = frozenset({Need.SIZE, Need.DEADLINE, Need.PREEMPTION, Need.RANDOM})
RECORDS = (None, "events", "ticks")


class CpuRun(Run):
    """record  None: no trace; "events": a step wherever something happened; "ticks": a step for every tick (the lab's)

    lives     every job, in order of release
    deadlock  None, or when and which jobs began to wait for each other; the others run on
    switches  how often a processor began a task that was not its last one
    """

    def __init__(self, scenario: CpuScenario, policy: str, record: str | None = None) -> None:
        if record not in RECORDS:
            raise ValueError(f"record = {record!r}: must be one of {RECORDS}")
        self.scenario, self.spec = scenario, policy
        bound = self._bound()
        self.policy, self.params = bound.name, bound.parameters()
        self.tape = Tape(bound) if record else None
        machine = Machine(scenario, bound, self.tape, ticks=record == "ticks")
        machine.run()
        self.lives, self.deadlock = machine.lives, machine.deadlock
        self.switches, self.moments = machine.switches, machine.moments
        self.end = machine.end or machine.now
        self.timelines = [filled(cpu.slices, self.end) for cpu in machine.cpus]

    def _bound(self) -> Policy:
        policy = make(self.spec)
        policy.bind(Layer(name="cpu", provides=PROVIDES, random=draws(self.scenario.seed)))
        return policy

    def as_json(self) -> dict[str, Any]:
        several = len(self.timelines) > 1
        timeline = sorted((one[1], index, one) for index, line in enumerate(self.timelines) for one in line)
        run: dict[str, Any] = {
            "policy": self.policy,
            "params": {name: str(v) if isinstance(v, Fraction) else v for name, v in self.params.items()},
            "timeline": [
                {"task": task, "start": start, "end": end, "state": state} | ({"cpu": index} if several else {})
                for _, index, (task, start, end, state) in timeline
            ],
            "tasks": [task_json(live, self.end) for live in self.lives if not live.source.task.recurs],
        }
        jobs = [live for live in self.lives if live.source.task.recurs]
        if jobs:
            run["jobs"] = [job_json(live, self.end) for live in jobs]
        run["mean"] = mean(self.lives)
        run["switches"] = self.switches
        if self.deadlock:
            time, circle = self.deadlock
            cycle = [{"task": hold.job, "waits_for": hold.resource, "held_by": hold.by} for hold in circle]
            run["deadlock"] = {"time": time, "cycle": cycle}
        return run

    def trace(self) -> Trace:
        if self.tape is None:
            raise ValueError("this run was not recorded")
        steps = self.tape.play(
            self._bound,
            queue=lambda job: "ready",
            sizes={live.id: live.source.task.work for live in self.lives},
            foreseen=[live.id for live in self.lives if not live.source.task.recurs],
        )
        return Trace(
            layer="cpu",
            scenario=self.scenario.model_dump(mode="json", by_alias=True, exclude_defaults=True),
            policy=self.policy,
            params=dict(self.params),
            frames=list(stored(steps)),
        )


def filled(slices: list[Slice], end: int) -> list[Slice]:
    """With idle slices wherever nothing else is, from 0 to `end`."""
    line: list[Slice] = []
    at = 0
    for one in [*slices, (None, end, end, "idle")]:
        if one[1] > at:
            line.append((None, at, one[1], "idle"))
        if one[2] > one[1]:
            line.append(one)
        at = one[2]
    return line


def times(live: Live) -> dict[str, int | None]:
    """turnaround C - a, waiting C - a - p (less sleep), response: first run - a; None for what has not happened."""
    task, arrival = live.source.task, live.release
    turnaround = None if live.completion is None else live.completion - arrival
    return {
        "completion": live.completion,
        "turnaround": turnaround,
        "waiting": None if turnaround is None else turnaround - task.work - live.slept,
        "response": None if live.first_run is None else live.first_run - arrival,
    }


def task_json(live: Live, end: int) -> dict[str, Any]:
    task = live.source.task
    told = {"id": task.id, "arrival": task.arrival, "burst": task.work, **times(live), "preemptions": live.preemptions}
    if live.deadline is not None:
        told |= {"deadline": live.deadline, "missed": live.late(end)}
    return told


def job_json(live: Live, end: int) -> dict[str, Any]:
    """Of a task that recurs. `response` is its response time, from release to completion."""
    return {
        "task": live.source.task.id,
        "release": live.release,
        "completion": live.completion,
        "response": None if live.completion is None else live.completion - live.release,
        "missed": live.late(end),
        "deadline": live.deadline,
        "preemptions": live.preemptions,
    }


def mean(lives: list[Live]) -> dict[str, int | float | None]:
    """Over all jobs that were completed; None when none was."""
    over = [times(live) for live in lives if live.completion is not None]
    return {name: average([one[name] or 0 for one in over]) for name in ("turnaround", "waiting", "response")}


def average(values: list[int]) -> int | float | None:
    if not values:
        return None
    exact: Number = Fraction(sum(values), len(values))
    return exact.numerator if exact.denominator == 1 else float(exact)
