"""Multi-level feedback queue (OSTEP's rules 1-5): an allotment used up demotes, every BOOST all go to the top."""

from collections import deque

from fairq.core.job import Job
from fairq.core.policy import NOTHING_WAITS, Cause, Decision, Param, Pick, Policy, Stop, Time, Unit, View, Why


class MLFQ(Policy):
    name, unit = "mlfq", Unit.PRIORITY
    params = (Param(name="levels", default=3), Param(name="quantum", default=10), Param(name="boost", default=0))
    levels: int
    quantum: int
    boost: int

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.queues: list[deque[Job]] = [deque() for _ in range(self.levels)]  # the top one first
        self.level: dict[str, int] = {}
        self.used: dict[str, int] = {}  # of the allotment at this level: one quantum
        self.boosts_at = self.boost

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        self.level.setdefault(job.id, 0)
        self.used.setdefault(job.id, 0)
        if self.used[job.id] >= self.quantum:
            self.level[job.id] = min(self.level[job.id] + 1, self.levels - 1)
            self.used[job.id] = 0
        self.queues[self.level[job.id]].append(job)

    def select(self, now: Time, view: View) -> Decision:
        for level, queue in enumerate(self.queues):
            if queue:
                return Pick(queue[0], Why("highest-level", {"level": level}))
        return NOTHING_WAITS

    def commit(self, decision: Decision, now: Time) -> None:
        if isinstance(decision, Pick):
            self.queues[self.level[decision.job.id]].popleft()

    def charge(self, job: Job, amount: int, now: Time) -> None:
        self.used[job.id] += amount

    def slice(self, job: Job) -> int:
        return self.quantum - self.used[job.id]

    def preempts(self, running: Job, now: Time) -> bool:
        return any(self.queues[: self.level[running.id]])

    def next_change(self, now: Time, view: View) -> Time | None:
        return self.boosts_at or None

    def timer(self, now: Time) -> None:
        while self.boosts_at <= now:
            self.boosts_at += self.boost
        for queue in self.queues[1:]:
            self.queues[0].extend(queue)
            queue.clear()
        self.level = dict.fromkeys(self.level, 0)
        self.used = dict.fromkeys(self.used, 0)

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        if reason is Stop.FINISHED:
            del self.level[job.id], self.used[job.id]
