"""Engine steps as the lab shows them: one for each iteration in which somebody came, was admitted, began or left."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from fairq.core.job import Job
from fairq.core.number import to_json
from fairq.core.policy import Pick, Policy, View, Why
from fairq.policies import make
from fairq.sim.engine.batch import Batch
from fairq.sim.engine.call import Call
from fairq.sim.engine.closed import Closed, Mixin, without
from fairq.sim.engine.run import EngineRun, bind
from fairq.sim.engine.scenario import SECOND, EngineScenario
from fairq.sim.engine.stepping import Stepping
from fairq.sim.trace import Step

SHOWN = 12  # waiting requests that are named, of each client


class Ear:
    """Why the first request of an iteration was admitted, and what the policy showed just before."""

    def __init__(self) -> None:
        self.why: Why | None = None
        self.before: dict[str, Any] = {}

    def policy(self, spec: str) -> Policy:
        """One that tells of each admission. `select` changes nothing, so it may be asked too."""
        plain, ear = make(spec), self

        class Overheard(type(plain)):  # type: ignore[misc]
            def admit(self, now: int, view: View) -> Job | None:
                decision = self.select(now, view)
                before = dict(self.show())
                job: Job | None = super().admit(now, view)
                if job is not None and ear.why is None and isinstance(decision, Pick):
                    ear.why, ear.before = decision.why, before
                return job

        made: Policy = Overheard(**plain.parameters())
        made.short_admit = plain.short_admit  # `admit` above adds nothing to what the policy's own does
        return made

    def told(self) -> tuple[Why | None, dict[str, Any]]:
        """Once."""
        found = self.why, self.before
        self.why, self.before = None, {}
        return found


class Notes:
    """What happened in an engine, and its steps. `produced`: how many tokens of its answer a member has."""

    def __init__(self, ear: Ear, produced: Callable[[Call], int]) -> None:
        self.ear, self.produced = ear, produced
        self.steps: list[tuple[int, Step]] = []  # (ns, step)
        self.came: list[str] = []
        self.admitted: list[str] = []
        self.left: list[str] = []
        self.waiting: dict[str, dict[str, None]] = {}
        self.began: set[str] = set()

    def arrive(self, call: Call) -> None:
        self.came.append(call.job.id)
        self.waiting.setdefault(call.job.flow, {})[call.job.id] = None

    def enter(self, call: Call) -> None:
        if self.waiting.get(call.job.flow, {}).pop(call.job.id, call) is None:
            self.admitted.append(call.job.id)

    def end(self, call: Call) -> None:
        self.waiting.get(call.job.flow, {}).pop(call.job.id, None)
        self.left.append(call.job.id)

    def iteration(self, engine: Batch, prefilled: int, decoding: int) -> None:
        """It is over."""
        members = list(engine.members.values())
        first = [call.job.id for call in members if call.first is not None and call.job.id not in self.began]
        self.began.update(first)
        if not (self.came or self.admitted or self.left or first):
            return
        why, before = self.ear.told()
        size = engine.limits.block_tokens
        what = {
            "arrived": self.came,
            "admitted": self.admitted,
            "first": first,
            "finished": self.left,
            "prefilled": prefilled,
            "decoding": decoding,
            "before": before,
            "waiting": {flow: len(ids) for flow, ids in self.waiting.items()},
            "held": {
                call.job.id: max(call.blocks, -(-(call.prompt + self.produced(call)) // size)) for call in members
            },
            "free": engine.free,
        }
        step = Step(
            time=to_json(Fraction(engine.now, SECOND)),
            kind="iteration",
            what=what,
            why=why,
            queues={flow: list(ids)[:SHOWN] for flow, ids in self.waiting.items() if ids},
            running=[call.job.id for call in members],
            remaining={call.job.id: call.output - self.produced(call) for call in members},
            show=dict(engine.policy.show()),
        )
        self.steps.append((engine.now, step))
        self.came, self.admitted, self.left = [], [], []


class Noted(Mixin):
    """An engine that tells `notes` who comes, is admitted and goes. They are to be set before it runs."""

    notes: Notes

    def _arrive(self, call: Call) -> None:
        super()._arrive(call)
        if call.job.seq in self.calls:
            self.notes.arrive(call)

    def _enter(self, call: Call) -> None:
        super()._enter(call)
        self.notes.enter(call)

    def _end(self, call: Call, reason: str) -> None:
        super()._end(call, reason)
        self.notes.end(call)


class Watched(Noted, Stepping):
    """The engine iteration by iteration."""

    def _carry_out(self, decoding: list[Call]) -> None:
        prefilled = sum(size for _, size in self.chunks)
        super()._carry_out(decoding)
        self.notes.iteration(self, prefilled, len(decoding))


class WatchedClosed(Closed, Watched):
    """Some of the requests come only when others have left."""


def engine_steps(scenario: EngineScenario, run: Any) -> list[Step]:
    assert isinstance(run, EngineRun)
    calls, followers = scenario.calls()
    ear = Ear()
    policy = ear.policy(run.spec)
    engine = (WatchedClosed if followers else Watched)(policy, scenario.limits_for_prefixes(), scenario.cost_model())
    engine.notes = Notes(ear, lambda call: call.produced)
    bind(policy, engine, run.weights(), scenario.seed)
    if isinstance(engine, WatchedClosed):
        engine.follow(followers)
    engine.add(without(calls, followers))
    engine.run()
    return [step for _, step in engine.notes.steps]
