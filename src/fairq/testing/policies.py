"""check_policy: the conformance test of a policy, against any order of whatever a layer may do.

    from fairq.testing import check_policy
    check_policy(lambda: MyPolicy(quantum=5))

It needs `hypothesis`. It raises AssertionError or ValidationFailed with the shortest sequence of steps that breaks a
rule:

* it is work-conserving: it waits only if no job waits in an open flow;
* `select` is pure: asked twice it says the same, and its state has not changed;
* it picks a job that waits, in an open flow, and the first of its flow if it `keeps_order`;
* a job can be cancelled anywhere in its queue, a flow closed, opened, given another weight and forgotten at any time;
* `state` survives JSON, and a policy restored from it decides the same for ever after;
* `waiting`, `backlogged`, `is_backlogged` and `contended` tell the truth, and `validate` never complains.

A policy that needs PREEMPTION is driven tick by tick on one CPU, any other one like a router with a few slots; what
needs TOKENS gets a token with every tick for each job that it started.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import msgspec
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fairq.core.job import Flow, Generation, Job
from fairq.core.lines import encode
from fairq.core.policy import ROOMY, Cause, Decision, Layer, Need, Pick, Policy, Stop

FLOWS = ("A", "B", "org/team", "org/team/ü", "\U0001f407", "A ")
SLOTS = 3
WEIGHTS = (Fraction(1), Fraction(2), Fraction(1, 3), Fraction(1024), Fraction(7, 5))

flows = st.sampled_from(FLOWS)
pick_one = st.integers(0, 1 << 16)


def drawn(n: int, stop: int) -> int:
    """The n-th draw, the same in every run: what a layer passes in as `random`."""
    return (n * 2_654_435_761 + 12_345) % 4_294_967_291 % stop


class PolicyMachine(RuleBasedStateMachine):
    """Drives a policy, and a twin of it that was restored from its state; both must always decide alike."""

    factory: Callable[[], Policy]

    @initialize()
    def begin(self) -> None:
        self.layer = Layer(name="check", provides=frozenset(Need), random=drawn, clock=lambda: self.now)
        self.policy = self.fresh()
        self.twin: Policy | None = None
        self.by_token = Need.TOKENS in self.policy.needs
        self.preemptive = Need.PREEMPTION in self.policy.needs
        self.now = self.count = 0
        self.queues: dict[str, dict[str, Job]] = {flow: {} for flow in FLOWS}  # what waits, in order of arrival
        self.running: dict[str, tuple[Job, int]] = {}  # with the ticks it has had in this slice
        self.left: dict[str, int] = {}
        self.closed: set[str] = set()
        self.known: set[str] = set()

    def fresh(self) -> Policy:
        policy = type(self).factory()
        policy.bind(self.layer)
        return policy

    def tell(self, method: str, *given: Any) -> None:
        for policy in filter(None, (self.policy, self.twin)):
            getattr(policy, method)(*given)

    def know(self, flow: str) -> None:
        if flow not in self.known:
            self.known.add(flow)
            self.tell("flow_changed", Flow(id=flow), self.now)
            if flow in self.closed:
                self.tell("flow_open", flow, False, self.now)

    # What a layer may do
    @rule(
        flow=flows,
        size=st.integers(1, 20),
        priority=st.integers(-2, 2),
        deadline=st.integers(1, 50),
        slice_=st.none() | st.integers(1, 5),
        later=st.integers(0, 3),
    )
    def arrive(self, flow: str, size: int, priority: int, deadline: int, slice_: int | None, later: int) -> None:
        self.wait(later)
        self.know(flow)
        self.count += 1
        kind = partial(Generation, prompt=deadline, limit=size) if self.by_token else Job
        job = kind(
            id=f"{flow}{self.count}",
            flow=flow,
            seq=self.count,
            arrival=self.now,
            size=size,
            priority=priority,
            deadline=self.now + deadline,
            slice=slice_,
            period=deadline,
        )
        self.left[job.id] = size
        self.queues[flow][job.id] = job
        self.tell("arrive", job, self.now, Cause.NEW)

    @precondition(lambda self: len(self.running) < (1 if self.preemptive else SLOTS))
    @rule()
    def dispatch(self) -> None:
        decision = self.decide()
        if not isinstance(decision, Pick):
            waiting = [flow for flow in FLOWS if flow not in self.closed and self.queues[flow]]
            assert not waiting, f"it waits ({decision.why.code}) while jobs of {waiting} do"
            if decision.plan is not None:
                self.commit()
            return
        job = decision.job
        queue = self.queues[job.flow]
        assert queue.get(job.id) == job, f"it picks {job.id}, which does not wait"
        assert job.flow not in self.closed, f"it picks {job.id} of a closed flow"
        if self.policy.keeps_order:
            assert next(iter(queue)) == job.id, f"it picks {job.id} before {next(iter(queue))} of the same flow"
        del queue[job.id]
        self.commit()
        if self.preemptive:
            self.running[job.id] = (job, self.policy.slice(job) or 1 << 30)
        else:
            self.tell("charge", job, self.layer.cost(job), self.now)
            self.running[job.id] = (job, 0)
            if self.by_token:
                self.tell("started", job, self.now, 1)

    @precondition(lambda self: self.preemptive and self.running)
    @rule(block=st.booleans())
    def tick(self, block: bool) -> None:
        """The running job gets a tick; then it ends, sleeps, or has to make place, in this order."""
        ((id_, (job, slice_)),) = self.running.items()
        self.now += 1
        self.tell("charge", job, 1, self.now)
        self.left[id_] -= 1
        if not self.left[id_]:
            self.end(job, Stop.FINISHED)
        elif block:
            self.end(job, Stop.BLOCKED)
            self.return_(job, Cause.WOKEN)
        elif slice_ <= 1:
            self.end(job, Stop.SLICE_USED)
            self.return_(job, Cause.PREEMPTED)
        elif self.policy.preempts(job, self.now):
            self.end(job, Stop.PREEMPTED)
            self.return_(job, Cause.PREEMPTED)
        else:
            self.running[id_] = (job, slice_ - 1)
        self.catch_up()

    @precondition(lambda self: not self.preemptive and self.running)
    @rule(which=pick_one, later=st.integers(0, 3))
    def finish(self, which: int, later: int) -> None:
        self.wait(later)
        job, _ = list(self.running.values())[which % len(self.running)]
        self.end(job, Stop.FINISHED)

    @precondition(lambda self: any(self.queues.values()))
    @rule(which=pick_one)
    def cancel(self, which: int) -> None:
        jobs = [job for queue in self.queues.values() for job in queue.values()]
        job = jobs[which % len(jobs)]
        del self.queues[job.flow][job.id]
        self.tell("cancel", job, self.now)

    @rule(flow=flows, open_=st.booleans())
    def open_or_close(self, flow: str, open_: bool) -> None:
        self.know(flow)
        (self.closed.discard if open_ else self.closed.add)(flow)
        self.tell("flow_open", flow, open_, self.now)

    @rule(flow=flows, weight=st.sampled_from(WEIGHTS))
    def change_weight(self, flow: str, weight: Fraction) -> None:
        self.known.add(flow)
        self.tell("flow_changed", Flow(id=flow, weight=weight), self.now)
        if flow in self.closed:
            self.tell("flow_open", flow, False, self.now)

    @rule(flow=flows)
    def forget(self, flow: str) -> None:
        busy = self.queues[flow] or any(job.flow == flow for job, _ in self.running.values())
        if flow in self.known and not busy and flow not in self.closed:
            self.known.discard(flow)
            self.tell("forget", flow)

    @rule()
    def save_and_restore(self) -> None:
        """The twin is from now on what the state says."""
        state = msgspec.json.decode(encode(self.policy.state()))
        living = [job for queue in self.queues.values() for job in queue.values()]
        living += [job for job, _ in self.running.values()]
        self.twin = self.fresh()
        self.twin.restore(state, {job.id: job for job in living})
        again = msgspec.json.decode(encode(self.twin.state()))
        assert again == state, "a restored policy has another state"

    # What must hold
    @invariant()
    def books_agree(self) -> None:
        for policy in filter(None, (self.policy, self.twin)):
            policy.validate()
            assert policy.waiting() == sum(map(len, self.queues.values())), "waiting() miscounts"
            backlogged = sorted(flow for flow in FLOWS if self.queues[flow] and flow not in self.closed)
            assert list(policy.backlogged()) == backlogged, "backlogged() is wrong"
            for flow in FLOWS:
                assert policy.is_backlogged(flow) == (flow in backlogged), f"is_backlogged({flow!r}) is wrong"
                assert policy.contended(flow) == any(other != flow for other in backlogged), (
                    f"contended({flow!r}) is wrong"
                )
            encode(policy.show())

    # Steps of steps
    def decide(self) -> Decision:
        before = encode(self.policy.state())
        decision = self.policy.select(self.now, ROOMY)
        assert self.policy.select(self.now, ROOMY) == decision, "asked twice, it says two things"
        assert encode(self.policy.state()) == before, "select changes the policy"
        if self.twin is not None:
            assert self.twin.select(self.now, ROOMY) == decision, "a restored policy decides differently"
        return decision

    def commit(self) -> None:
        decision = self.policy.select(self.now, ROOMY)
        self.policy.commit(decision, self.now)
        if self.twin is not None:  # `take` is the short way of both
            job = self.twin.take(self.now, ROOMY)
            assert job == (decision.job if isinstance(decision, Pick) else None), "take() and select() disagree"

    def end(self, job: Job, reason: Stop) -> None:
        del self.running[job.id]
        self.tell("stop", job, self.now, reason)

    def return_(self, job: Job, cause: Cause) -> None:
        self.queues[job.flow][job.id] = job
        self.tell("arrive", job, self.now, cause)

    def wait(self, ticks: int) -> None:
        if not (self.preemptive and self.running):  # a CPU's time passes with its ticks
            self.now += ticks
            self.catch_up()

    def catch_up(self) -> None:
        due = self.policy.next_change(self.now, ROOMY)
        if due is not None and due <= self.now:
            self.tell("timer", self.now)
            again = self.policy.next_change(self.now, ROOMY)
            assert again is None or again > self.now, "its timer does not move on"


def check_policy(factory: Callable[[], Policy], examples: int = 60, steps: int = 40, shrink: bool = True) -> None:
    """`factory` makes a policy that is not bound yet. `examples` sequences of up to `steps` steps are tried.

    `shrink` looks for the shortest failing sequence, which takes a while.
    """
    machine = type("PolicyMachine", (PolicyMachine,), {"factory": staticmethod(factory)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[phase for phase in Phase if shrink or phase not in (Phase.shrink, Phase.explain)],
        ),
    )
