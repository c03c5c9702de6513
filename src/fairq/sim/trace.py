"""The trace of a run: what happened, why, and what the policy held, step by step. Lab, exports and tests read traces.

Recording has to be cheap, so a run writes down the calls that its policy got (`Tape`: one append a call) and where its
steps are. Reading plays the calls to a fresh policy and asks it for `show()` at every step. What is stored or sent
is a `Trace`, which needs no policy to be read: each frame is a JSON merge patch (RFC 7386) of the frame before it, so
that only what a step touched is there, and every `KEYFRAME`-th stands alone, so that any step is found quickly.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from msgspec import Struct

from fairq.core.job import Flow, Job
from fairq.core.number import Number, to_json
from fairq.core.policy import ROOMY, Cause, Decision, Pick, Policy, Stop, Time, View, Why

VERSION = 1
KEYFRAME = 64


class Step(Struct, frozen=True, kw_only=True):
    """One moment of a run, complete: what happened, and how things stand after it.

    time       in the layer's unit; "7/2" where it is no integer
    kind       what sort of step (each layer lists its own)
    what       the numbers and names of it
    why        the decision's reason, None where nothing was decided
    queues     name -> ids of the jobs that wait in it, in order of arrival
    running    ids of the jobs in service
    remaining  id -> service still to be given, of every job that is there
    show       what the policy shows
    """

    time: int | str
    kind: str
    what: dict[str, Any] = {}
    why: Why | None = None
    queues: dict[str, list[str]] = {}
    running: list[str] = []
    remaining: dict[str, int] = {}
    show: dict[str, Any] = {}


class Frame(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stored step. `patch` changes the state of the frame before; that of a keyframe starts from nothing."""

    time: int | str
    kind: str
    what: dict[str, Any] = {}
    why: Why | None = None
    patch: dict[str, Any] = {}


class Trace(Struct, frozen=True, kw_only=True):
    """A run, to be stored or sent. `steps()` and `at()` give it back complete."""

    version: int = VERSION
    layer: str
    scenario: dict[str, Any]
    policy: str
    params: dict[str, Any]
    frames: list[Frame]

    @classmethod
    def of(cls, run: Any, steps: Iterator[Step]) -> Self:
        """Of a `fairq.sim.scenario.Run`, with the steps that its tape gave."""
        return cls(
            layer=run.scenario.layer,
            scenario=run.scenario.model_dump(mode="json", by_alias=True, exclude_defaults=True),
            policy=run.policy,
            params=dict(run.params),
            frames=list(stored(steps)),
        )

    def __len__(self) -> int:
        return len(self.frames)

    def steps(self, start: int = 0) -> Iterator[Step]:
        """The steps from `start` on, in order."""
        first = start - start % KEYFRAME
        state: dict[str, Any] = {}
        for index, frame in enumerate(self.frames[first:], first):
            state = patched({} if index % KEYFRAME == 0 else state, frame.patch)
            if index >= start:
                yield Step(time=frame.time, kind=frame.kind, what=frame.what, why=frame.why, **state)

    def at(self, index: int) -> Step:
        """Step `index`, from 0; negative ones count from the end. IndexError outside."""
        return next(self.steps(range(len(self.frames))[index]))


def stored(steps: Iterator[Step]) -> Iterator[Frame]:
    """Steps as frames: the inverse of `Trace.steps`."""
    before: dict[str, Any] = {}
    for index, step in enumerate(steps):
        state = {"queues": step.queues, "running": step.running, "remaining": step.remaining, "show": step.show}
        patch = difference({} if index % KEYFRAME == 0 else before, state)
        yield Frame(time=step.time, kind=step.kind, what=step.what, why=step.why, patch=patch)
        before = state


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that makes `new` of `old`. Neither may hold None, which a patch uses for "gone"."""
    patch: dict[str, Any] = dict.fromkeys(old.keys() - new.keys())
    for key, value in new.items():
        if key not in old:
            patch[key] = value
        elif (was := old[key]) != value:
            nested = isinstance(value, Mapping) and isinstance(was, Mapping)
            patch[key] = difference(was, value) if nested else value
    return patch


def patched(old: Any, patch: Any) -> Any:
    """RFC 7386: `patch` applied to `old`, which stays as it is."""
    if not isinstance(patch, Mapping):
        return patch
    new = dict(old) if isinstance(old, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = patched(new.get(key), value)
    return new


class Tape(Policy):
    """A policy that writes down every call which may change it, and otherwise is the policy that it wraps.

    A layer drives the tape instead of its policy and says `step(...)` after every step of its own.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.name, self.unit = policy.name, policy.unit  # type: ignore[misc]
        self.calls: list[tuple[Any, ...]] = []

    def step(self, time: Number, kind: str, why: Why | str | None = None, **what: Any) -> None:
        """`why` may be the id of a job that was chosen by `take`: its reason is looked up when the tape is played."""
        self.calls.append((None, time, kind, why, what))

    def shown(self, policy: Policy, now: Number) -> dict[str, Any]:
        """What the policy holds at `now`."""
        return dict(policy.show())

    def play(
        self,
        fresh: Callable[[], Policy],
        *,
        queue: Callable[[Job], str] = lambda job: job.flow,
        sizes: Mapping[str, int] | None = None,
        foreseen: Iterable[str] = (),
    ) -> Iterator[Step]:
        """The steps of the recording.

        fresh     makes the policy as it was made for the run, bound to a layer that answers like the run's
        queue     in which queue a waiting job is shown
        sizes     the whole need of jobs that come in several parts, by id
        foreseen  jobs whose need is shown before they have arrived
        """
        policy, sizes = fresh(), sizes or {}
        whys: dict[str, Why] = {}
        left = {id_: sizes[id_] for id_ in foreseen}
        queues: dict[str, dict[str, None]] = {}
        running: dict[str, None] = {}
        for name, *args in self.calls:
            if name is None:
                time, kind, why, what = args
                yield Step(
                    time=to_json(time),
                    kind=kind,
                    what=what,
                    why=whys.get(why) if isinstance(why, str) else why,
                    queues={which: list(ids) for which, ids in queues.items() if ids},
                    running=list(running),
                    remaining=dict(left),
                    show=self.shown(policy, time),
                )
                continue
            if name == "take":
                decision = policy.select(args[0], ROOMY)
                if isinstance(decision, Pick):
                    whys[decision.job.id] = decision.why
                name, args = "commit", [decision, *args]
            getattr(policy, name)(*args)
            first = args[0]
            if name == "arrive":
                queues.setdefault(queue(first), {})[first.id] = None
                need = sizes.get(first.id, first.size)
                if need is not None:
                    left.setdefault(first.id, need)
            elif name == "commit" and isinstance(first, Pick):
                del queues[queue(first.job)][first.job.id]
                running[first.job.id] = None
            elif name == "cancel":
                del queues[queue(first)][first.id]
                left.pop(first.id, None)
            elif name == "charge" and first.id in left:
                left[first.id] -= args[1]
            elif name == "stop":
                running.pop(first.id, None)
                if args[2] is Stop.FINISHED:
                    left.pop(first.id, None)

    # What changes the policy
    def flow_changed(self, flow: Flow, now: Time) -> None:
        self.calls.append(("flow_changed", flow, now))
        self.policy.flow_changed(flow, now)

    def flow_open(self, flow: str, open_: bool, now: Time) -> None:
        self.calls.append(("flow_open", flow, open_, now))
        self.policy.flow_open(flow, open_, now)

    def forget(self, flow: str) -> None:
        self.calls.append(("forget", flow))
        self.policy.forget(flow)

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        self.calls.append(("arrive", job, now, cause))
        self.policy.arrive(job, now, cause)

    def cancel(self, job: Job, now: Time) -> None:
        self.calls.append(("cancel", job, now))
        self.policy.cancel(job, now)

    def priority_changed(self, job: Job, now: Time) -> None:
        self.calls.append(("priority_changed", job, now))
        self.policy.priority_changed(job, now)

    def commit(self, decision: Decision, now: Time) -> None:
        self.calls.append(("commit", decision, now))
        self.policy.commit(decision, now)

    def take(self, now: Time, view: View) -> Job | None:
        """For layers with room for every job: playing asks `select` again, so the reason costs nothing until then."""
        self.calls.append(("take", now))
        return self.policy.take(now, view)

    def timer(self, now: Time) -> None:
        self.calls.append(("timer", now))
        self.policy.timer(now)

    def charge(self, job: Job, amount: int, now: Time) -> None:
        self.calls.append(("charge", job, amount, now))
        self.policy.charge(job, amount, now)

    def started(self, job: Job, now: Time, given: int = 0) -> None:
        self.calls.append(("started", job, now, given))
        self.policy.started(job, now, given)

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        self.calls.append(("stop", job, now, reason, on))
        self.policy.stop(job, now, reason, on)

    # What only reads it
    def parameters(self) -> dict[str, Any]:
        return self.policy.parameters()

    def select(self, now: Time, view: View) -> Decision:
        return self.policy.select(now, view)

    def peek(self, now: Time, view: View) -> Job | None:
        return self.policy.peek(now, view)

    def fitting(self, now: Time, view: View) -> Pick | None:
        return self.policy.fitting(now, view)

    def refuses(self, job: Job, now: Time) -> bool:
        return self.policy.refuses(job, now)

    def next_change(self, now: Time, view: View) -> Time | None:
        return self.policy.next_change(now, view)

    def next_overtaking(self, view: View, before: int) -> int | None:
        return self.policy.next_overtaking(view, before)

    def slice(self, job: Job) -> int | None:
        return self.policy.slice(job)

    def preempts(self, running: Job, now: Time) -> bool:
        return self.policy.preempts(running, now)

    def rates(self, now: Time) -> Mapping[str, Number]:
        return self.policy.rates(now)

    def waiting(self) -> int:
        return self.policy.waiting()

    def backlogged(self) -> Sequence[str]:
        return self.policy.backlogged()

    def show(self) -> Mapping[str, Any]:
        return self.policy.show()
