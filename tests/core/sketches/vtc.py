"""Virtual token counter (OSDI 2024, Alg. 2), with counters that are read, not ticked.

A counter is base + 2 * (running jobs of the client) * (clock now - clock at base): a jump over a hundred decode
iterations costs what one iteration costs.
"""

from collections import deque

from fairq.core.job import Job
from fairq.core.policy import NOTHING_WAITS, Cause, Decision, Need, Pick, Policy, Stop, Time, Unit, View, Wait, Why

OUTPUT = 2  # cost of an output token, in input tokens


class VTC(Policy):
    name, unit, needs = "vtc", Unit.SERVICE, frozenset({Need.SIZE})

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.queues: dict[str, deque[Job]] = {}
        self.base: dict[str, tuple[int, int]] = {}  # counter, at which reading of the clock
        self.slope: dict[str, int] = {}
        self.announced: set[str] = set()  # jobs whose output is read off the clock
        self.last_left = ""

    def counter(self, client: str) -> int:
        base, at = self.base.get(client, (0, 0))
        return base + self.slope.get(client, 0) * (self.layer.clock() - at)

    def add(self, client: str, amount: int, slope: int = 0) -> None:
        self.base[client] = (self.counter(client) + amount, self.layer.clock())
        self.slope[client] = self.slope.get(client, 0) + slope

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        client = job.flow
        if client not in self.queues:
            floor = min(map(self.counter, self.queues), default=self.counter(self.last_left))
            self.add(client, max(floor - self.counter(client), 0))
            self.queues[client] = deque()
        self.queues[client].append(job)

    def first(self) -> str:
        return min(self.queues, key=lambda client: (self.counter(client), client))

    def select(self, now: Time, view: View) -> Decision:
        if not self.queues:
            return NOTHING_WAITS
        client = self.first()
        job = self.queues[client][0]
        why = Why("least-counter", {"counter": self.counter(client)})
        return Pick(job, why) if view.fits(job) else Wait(why)

    def commit(self, decision: Decision, now: Time) -> None:
        if isinstance(decision, Pick):
            self.queues[decision.job.flow].popleft()
            if not self.queues[decision.job.flow]:
                del self.queues[decision.job.flow]
                self.last_left = decision.job.flow

    def charge(self, job: Job, amount: int, now: Time) -> None:
        self.add(job.flow, amount)

    def started(self, job: Job, now: Time) -> None:
        self.announced.add(job.id)
        self.add(job.flow, 0, OUTPUT)

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        if job.id in self.announced:
            self.announced.discard(job.id)
            self.add(job.flow, 0, -OUTPUT)

    def next_overtaking(self, view: View, before: int) -> int | None:
        """When the first counter may pass the second: they meet at their gap over the difference of their slopes."""
        if len(self.queues) < 2:
            return None
        first = self.first()
        speed = self.slope.get(first, 0)
        others = [c for c in self.queues if c != first and self.slope.get(c, 0) < speed]
        gaps = [(self.counter(c) - self.counter(first)) // (speed - self.slope.get(c, 0)) for c in others]
        return self.layer.clock() + max(min(gaps), 1) if gaps else None
