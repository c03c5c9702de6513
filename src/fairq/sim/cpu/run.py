"""One policy on one CPU scenario: what came out, for tables, `--json` and traces."""

from fractions import Fraction
from functools import cached_property
from typing import Any

from msgspec import to_builtins

from fairq.core.policy import Layer, Need, Policy
from fairq.measure.cpu import Measures, Reweighted, Story, measure, shares
from fairq.measure.fairness import Interval
from fairq.measure.latency import flat
from fairq.policies import make
from fairq.sim.collector import collector_paused
from fairq.sim.cpu.live import Live
from fairq.sim.cpu.machine import Machine
from fairq.sim.cpu.processor import Slice
from fairq.sim.cpu.scenario import CpuScenario
from fairq.sim.draw import draws
from fairq.sim.scenario import Run
from fairq.sim.trace import Tape, Trace

PROVIDES = frozenset({Need.SIZE, Need.DEADLINE, Need.PREEMPTION, Need.RANDOM})
STEPS = ("events", "ticks")


class CpuRun(Run):
    """record  how fine `trace` is: "events", a step wherever something happens (the default), or "ticks", one for every
            tick (the lab's view). It costs nothing before `trace` is asked for: a run is a function of its scenario,
            so then it is run again, watched.

    lives     every job, in order of release
    deadlock  None, or when and which jobs began to wait for each other; the others run on
    switches  how often a processor began a task that was not its last one
    """

    def __init__(self, scenario: CpuScenario, policy: str, record: str | None = None) -> None:
        if record is not None and record not in STEPS:
            raise ValueError(f"record = {record!r}: must be one of {STEPS}")
        self.scenario, self.spec, self.steps = scenario, policy, record or "events"
        bound = self._bound()
        self.policy, self.params = bound.name, bound.parameters()
        with collector_paused():
            machine = Machine(scenario, bound)
            machine.run()
        self.lives, self.deadlock = machine.lives, machine.deadlock
        self.switches, self.moments = machine.switches, machine.moments
        self.end = machine.end or machine.now
        self.slices = [cpu.slices for cpu in machine.cpus]

    def _bound(self) -> Policy:
        policy = make(self.spec)
        policy.bind(Layer(name="cpu", provides=PROVIDES, random=draws(self.scenario.seed)))
        return policy

    @cached_property
    def timelines(self) -> list[list[Slice]]:
        """What each processor did from 0 to the end."""
        return [filled(slices, self.end) for slices in self.slices]

    @cached_property
    def stories(self) -> list[Story]:
        """What became of each job, in order of release."""
        return [story(live, self.end) for live in self.lives]

    @cached_property
    def measures(self) -> Measures:
        return measure(self.stories, self.timelines, self.end, switches=self.switches)

    def measured(self) -> dict[str, Any]:
        return flat(self.measures)

    def jobs(self) -> list[dict[str, Any]]:
        """Of recurring tasks too; `turnaround` is what real-time texts call the response time."""
        keys = ("turnaround", "waiting", "response", "deadline", "lateness", "missed")
        return [
            {"task": one.task, "arrival": one.arrival, "work": one.work, "first_run": one.first_run}
            | {"completion": one.completion}
            | {key: getattr(one, key) for key in keys}
            | {"preemptions": live.preemptions}
            for live, one in zip(self.lives, self.stories, strict=True)
        ]

    def fairness(self) -> list[Interval]:
        """Normalized service over the intervals in which the same tasks are ready or running, at the same weights."""
        return shares(self.stories, self.timelines, self.weights(), self._reweighted())

    def weights(self) -> dict[str, Fraction]:
        """At the beginning."""
        return {task.id: task.share for task in self.scenario.tasks}

    def _reweighted(self) -> list[Reweighted]:
        changes = sorted(self.scenario.changes, key=lambda change: change.at)
        return [(change.at, change.task, change.weight) for change in changes]

    def max_min(self, interval: Interval) -> Fraction | None:
        """Of the ticks of all processors, no task can use more than those of one."""
        length = Fraction(interval.end - interval.start)
        weights = self.weights() | {task: weight for at, task, weight in self._reweighted() if at <= interval.start}
        return interval.max_min(weights, length * len(self.timelines), length)

    def as_json(self) -> dict[str, Any]:
        several = len(self.timelines) > 1
        timeline = sorted((one[1], index, one) for index, line in enumerate(self.timelines) for one in line)
        recurring = {task.id for task in self.scenario.tasks if task.recurs}
        pairs = list(zip(self.lives, self.stories, strict=True))
        run: dict[str, Any] = {
            "policy": self.policy,
            "params": {name: str(v) if isinstance(v, Fraction) else v for name, v in self.params.items()},
            "timeline": [
                {"task": task, "start": start, "end": end, "state": state} | ({"cpu": index} if several else {})
                for _, index, (task, start, end, state) in timeline
            ],
            "tasks": [task_json(live, one) for live, one in pairs if one.task not in recurring],
        }
        if recurring:
            run["jobs"] = [job_json(live, one) for live, one in pairs if one.task in recurring]
        run["mean"] = {
            key: average([value for one in self.stories if (value := getattr(one, key)) is not None])
            for key in ("turnaround", "waiting", "response")
        }
        run["switches"] = self.switches
        run["measures"] = to_builtins(self.measures)
        comings = sum(1 + len(live.away or ()) for live in self.lives)
        run["fairness"] = self.fairness_json("tasks", 2 * (comings + len(self.scenario.changes)))
        if self.deadlock:
            time, circle = self.deadlock
            cycle = [{"task": hold.job, "waits_for": hold.resource, "held_by": hold.by} for hold in circle]
            run["deadlock"] = {"time": time, "cycle": cycle}
        return run

    def trace(self) -> Trace:
        tape = Tape(self._bound())
        Machine(self.scenario, tape.policy, tape, ticks=self.steps == "ticks").run()
        steps = tape.play(
            self._bound,
            queue=lambda job: "ready",
            sizes={live.id: live.source.work for live in self.lives},
            foreseen=[live.id for live in self.lives if not live.source.recurs],
        )
        return Trace.of(self, steps)


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


def story(live: Live, end: int) -> Story:
    over = live.completion
    if over is None:
        over = live.deadline if live.aborted else None
    until = end if over is None else over
    return Story(
        task=live.source.id,
        arrival=live.release,
        work=live.source.work,
        until=until,
        first_run=live.first_run,
        completion=live.completion,
        deadline=live.deadline,
        away=tuple((start, min(stop, until)) for start, stop in live.away or ()),
        slept=live.slept,
    )


def task_json(live: Live, one: Story) -> dict[str, Any]:
    told = {
        "id": one.task,
        "arrival": one.arrival,
        "burst": one.work,
        "completion": one.completion,
        "turnaround": one.turnaround,
        "waiting": one.waiting,
        "response": one.response,
        "preemptions": live.preemptions,
    }
    return told if one.deadline is None else told | {"deadline": one.deadline, "missed": one.missed}


def job_json(live: Live, one: Story) -> dict[str, Any]:
    """Of a task that recurs. `response` is its response time, from release to completion."""
    return {
        "task": one.task,
        "release": one.arrival,
        "completion": one.completion,
        "response": one.turnaround,
        "missed": one.missed,
        "deadline": one.deadline,
        "preemptions": live.preemptions,
    }


def average(values: list[int]) -> int | float | None:
    if not values:
        return None
    exact = Fraction(sum(values), len(values))
    return exact.numerator if exact.denominator == 1 else float(exact)
