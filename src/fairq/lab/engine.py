"""Engine steps as the lab shows them: one for each iteration in which somebody came, was admitted, began or left."""

from fractions import Fraction
from typing import Any

from fairq.core.job import Job
from fairq.core.number import to_json
from fairq.core.policy import Pick, Why
from fairq.policies import make
from fairq.sim.engine.call import Call
from fairq.sim.engine.closed import without
from fairq.sim.engine.run import EngineRun, bind
from fairq.sim.engine.scenario import SECOND, EngineScenario
from fairq.sim.engine.stepping import Stepping
from fairq.sim.trace import Step

SHOWN = 12  # waiting requests that are named, of each client


class Watched(Stepping):
    """The engine iteration by iteration, with an ear at its policy: why each request was admitted, and by what."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.steps: list[Step] = []
        self.arrived: list[str] = []
        self.admitted: list[str] = []
        self.finished: list[str] = []
        self.why: Why | None = None
        self.before: dict[str, Any] = {}
        self.waiting: dict[str, dict[str, None]] = {}
        self.began: set[str] = set()
        self.asked = self.policy.admit
        # The instance's own attribute goes before the class's method. `select` changes nothing, so it may be asked too.
        setattr(self.policy, "admit", self._hear)  # noqa: B010

    def _hear(self, now: int, view: Any) -> Job | None:
        decision = self.policy.select(now, view)
        before = dict(self.policy.show())
        job = self.asked(now, view)
        if job is not None and self.why is None and isinstance(decision, Pick):
            self.why, self.before = decision.why, before
        return job

    def _arrive(self, call: Call) -> None:
        super()._arrive(call)
        if call.job.seq in self.calls:
            self.arrived.append(call.job.id)
            self.waiting.setdefault(call.job.flow, {})[call.job.id] = None

    def _enter(self, call: Call) -> None:
        super()._enter(call)
        if self.waiting.get(call.job.flow, {}).pop(call.job.id, call) is None:
            self.admitted.append(call.job.id)

    def _end(self, call: Call, reason: str) -> None:
        super()._end(call, reason)
        self.waiting.get(call.job.flow, {}).pop(call.job.id, None)
        self.finished.append(call.job.id)

    def _carry_out(self, decoding: list[Call]) -> None:
        prefilled = sum(size for _, size in self.chunks)
        super()._carry_out(decoding)
        self.note(prefilled, len(decoding))

    def note(self, prefilled: int, decoding: int) -> None:
        """An iteration is over."""
        first = [call.job.id for call in self.members.values() if call.produced == 1 and call.job.id not in self.began]
        self.began.update(first)
        if not (self.arrived or self.admitted or self.finished or first):
            return
        what = {
            "arrived": self.arrived,
            "admitted": self.admitted,
            "first": first,
            "finished": self.finished,
            "prefilled": prefilled,
            "decoding": decoding,
            "before": self.before,
            "waiting": {flow: len(ids) for flow, ids in self.waiting.items()},
            "held": {call.job.id: call.blocks for call in self.members.values()},
            "free": self.free,
        }
        queues = {flow: list(ids)[:SHOWN] for flow, ids in self.waiting.items() if ids}
        running = [call.job.id for call in self.members.values()]
        left = {call.job.id: call.output - call.produced for call in self.members.values()}
        time = to_json(Fraction(self.now, SECOND))
        show = dict(self.policy.show())
        step = Step(
            time=time,
            kind="iteration",
            what=what,
            why=self.why,
            queues=queues,
            running=running,
            remaining=left,
            show=show,
        )
        self.steps.append(step)
        self.arrived, self.admitted, self.finished, self.why, self.before = [], [], [], None, {}


def engine_steps(scenario: EngineScenario, run: Any) -> list[Step]:
    assert isinstance(run, EngineRun)
    calls, followers = scenario.calls()
    policy = make(run.spec)
    engine = Watched(policy, scenario.limits_for_prefixes(), scenario.cost_model())
    bind(policy, engine, run.weights(), scenario.seed)
    engine.add(without(calls, followers))
    engine.run()
    return engine.steps
