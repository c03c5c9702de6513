"""Layers of a page each, to drive policies without a simulator: a CPU, a link, a batching engine."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

from fairq.core.job import Flow, Job
from fairq.core.policy import ROOMY, Cause, Layer, Need, Pick, Policy, Stop

P = TypeVar("P", bound=Policy)


def bound(policy: P, weights: Mapping[str, int | Fraction] | None = None, **layer: object) -> P:
    policy.bind(Layer(name="test", provides=frozenset(Need), **layer))  # type: ignore[arg-type]
    for flow, weight in (weights or {}).items():
        policy.flow_changed(Flow(id=flow, weight=Fraction(weight)), 0)
    return policy


def pick(policy: Policy, now: int = 0) -> Job:
    """Select twice, since it must be pure; commit; the job."""
    decision = policy.select(now, ROOMY)
    assert decision == policy.select(now, ROOMY)
    assert isinstance(decision, Pick)
    policy.commit(decision, now)
    return decision.job


def serve(policy: Policy, jobs: Iterable[Job]) -> str:
    """A router: all jobs are there, each is charged its size at dispatch. The flows in order of service."""
    for job in jobs:
        policy.arrive(job, 0)
    order = ""
    while policy.select(0, ROOMY).why.code != "nothing-waits":
        job = pick(policy)
        policy.charge(job, job.size or 0, 0)
        order += job.flow
    return order


def cpu(policy: Policy, jobs: Sequence[Job], sleeps: Mapping[str, Mapping[int, int]] | None = None) -> list[str]:
    """One CPU, tick by tick: whose tick it was (job ids, "-" when idle).

    sleeps  job -> {after so many of its own ticks: sleep so long}
    """
    coming = sorted(jobs, key=lambda job: job.arrival)
    left = {job.id: job.size or 0 for job in jobs}
    asleep: list[tuple[int, Job]] = []
    running: Job | None = None
    slice_: int | None = None
    ran = now = 0
    line: list[str] = []
    while True:
        if running:
            policy.charge(running, 1, now)
            left[running.id] -= 1
            ran += 1
            done = (running.size or 0) - left[running.id]
            if not left[running.id]:
                policy.stop(running, now, Stop.FINISHED)
                running = None
            elif (nap := (sleeps or {}).get(running.id, {}).get(done)) is not None:
                policy.stop(running, now, Stop.BLOCKED)
                asleep.append((now + nap, running))
                running = None
        for until, job in list(asleep):
            if until <= now:
                asleep.remove((until, job))
                policy.arrive(job, now, Cause.WOKEN)
        while coming and coming[0].arrival <= now:
            policy.arrive(coming.pop(0), now)
        if running and slice_ is not None and ran >= slice_:
            policy.stop(running, now, Stop.SLICE_USED)
            policy.arrive(running, now, Cause.PREEMPTED)
            running = None
        due = policy.next_change(now, ROOMY)
        if due is not None and due <= now:
            policy.timer(now)
        if running and policy.preempts(running, now):
            policy.stop(running, now, Stop.PREEMPTED)
            policy.arrive(running, now, Cause.PREEMPTED)
            running = None
        if not running:
            if isinstance(policy.select(now, ROOMY), Pick):
                running, ran = pick(policy, now), 0
                slice_ = policy.slice(running)
            elif not coming and not asleep:
                return line
        line.append(running.id if running else "-")
        now += 1


def slices(line: Sequence[str]) -> list[tuple[str, int, int]]:
    """Runs of equal ticks as (job, from, to)."""
    out: list[tuple[str, int, int]] = []
    for at, job in enumerate(line):
        if out and out[-1][0] == job:
            out[-1] = (job, out[-1][1], at + 1)
        else:
            out.append((job, at, at + 1))
    return out


def link(policy: Policy, packets: Sequence[Job]) -> list[tuple[str, int]]:
    """A link of rate 1: (flow, time when its packet has left), in order of departure."""
    coming = sorted(packets, key=lambda packet: packet.arrival)
    now = 0
    out: list[tuple[str, int]] = []
    while len(out) < len(packets):
        if not isinstance(policy.select(now, ROOMY), Pick):
            now = max(now, coming[0].arrival)
        while coming and coming[0].arrival <= now:
            policy.arrive(coming[0], coming.pop(0).arrival)
        packet = pick(policy, now)
        policy.charge(packet, packet.size or 0, now)
        now += packet.size or 0
        while coming and coming[0].arrival <= now:
            policy.arrive(coming[0], coming.pop(0).arrival)
        policy.stop(packet, now, Stop.FINISHED)
        out.append((packet.flow, now))
    return out


class Engine:
    """Continuous batching: a pool of KV tokens, a job holds input + output of them, its output grows by one a step.

    Each job carries its input in `size` and its true output in `slice`. `jump` goes from event to event and announces
    service by `started` and `stop`; otherwise every step charges every running job. Both select at the same moments.
    """

    def __init__(
        self, policy: P, pool: int, jump: bool, weight: int = 2, cached: Mapping[str, int] | None = None
    ) -> None:
        self.policy, self.pool, self.jump, self.weight, self.cached = policy, pool, jump, weight, cached or {}
        self.clock = 0
        self.ends: dict[str, tuple[int, Job]] = {}
        self.admitted: list[tuple[int, str]] = []
        bound(policy, clock=lambda: self.clock)

    @property
    def running(self) -> Sequence[Job]:
        return [job for _, job in self.ends.values()]

    def fits(self, job: Job) -> bool:
        return sum(held(other) for other in self.running) + held(job) <= self.pool

    def cached_prefix(self, job: Job) -> int:
        return self.cached.get(job.id, 0)

    def admit(self) -> None:
        policy = self.policy
        while True:
            decision = policy.select(self.clock, self)
            assert decision == policy.select(self.clock, self)
            if isinstance(decision, Pick) or decision.plan is not None:
                policy.commit(decision, self.clock)
            if not isinstance(decision, Pick):
                return
            job = decision.job
            policy.charge(job, (job.size or 0) - self.cached_prefix(job), self.clock)
            if self.jump:
                policy.started(job, self.clock)
            self.ends[job.id] = (self.clock + (job.slice or 0), job)
            self.admitted.append((self.clock, job.id))

    def run(self, jobs: Iterable[Job]) -> None:
        coming = sorted(jobs, key=lambda job: job.arrival)
        while coming or self.ends:
            self.finish()
            while coming and coming[0].arrival <= self.clock:
                self.policy.arrive(coming.pop(0), self.clock)
            self.admit()
            self.seen()
            if self.jump:
                moments = [end for end, _ in self.ends.values()] + [job.arrival for job in coming[:1]]
                overtaken = self.policy.next_overtaking(self, self.clock + 1_000_000)
                self.clock = min(moments + [overtaken] * (overtaken is not None), default=self.clock)
            else:
                self.clock += 1
                for job in self.running:
                    self.policy.charge(job, self.weight, self.clock)

    def finish(self) -> None:
        for end, job in list(self.ends.values()):
            if end <= self.clock:
                del self.ends[job.id]
                self.policy.stop(job, self.clock, Stop.FINISHED)

    def seen(self) -> None:
        """After the decisions of a moment; a test may look."""


def held(job: Job) -> int:
    return (job.size or 0) + (job.slice or 0)
