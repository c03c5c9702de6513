"""Deficit Longest Prefix Match (Cao et al., arXiv 2501.14312, Algorithm 1): locality within quotas.

    arrive   a client that was never seen: q_i = 0, and it is on the list l
    select   the waiting requests by matched prefix, longest first; the first whose client has q_i > 0 and that fits
    refill   when no client with a waiting request has q > 0: q_i += Q for every i on l with q_i <= 0
    charge   q_i -= w_e * (input tokens that are not cached)      when it is admitted
             q_i -= w_q                                           for each output token

The paper's inner loop goes on while requests wait; when none fits though somebody has quota, it would spin. Here a pass
that admits nobody ends, until an event or until the last quota of a waiting client is used up; so does one in which
`tries` requests did not fit (0: all are tried), however many wait. After an admission it looks from the longest match
again; the paper's pass goes on, and comes back to those whom a refill has helped meanwhile only in the next one.

Unit of fairness: service, w_e * extend tokens + w_q * output tokens. With one engine, no preemption and
U = w_e * longest input + w_q * M: -U < q_i <= Q; two clients that both wait throughout an interval differ by at most
2(U + Q), and one that waits gets at least as much as any other less 2U + 2Q. A larger Q means more hits and a looser
bound; Q to 0 is a fair order, infinite Q is longest prefix match.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fairq.core.counter import Counter
from fairq.core.job import Generation, Job
from fairq.core.matches import Matches
from fairq.core.policy import (
    NOTHING_WAITS,
    Cause,
    Decision,
    Layer,
    Need,
    Param,
    Pick,
    Stop,
    Time,
    Unit,
    View,
    Wait,
    Why,
)
from fairq.core.ready import JobPolicy

Refills = dict[str, int]
"""Client -> quanta that it is given."""


class DLPM(JobPolicy):
    name = "dlpm"
    unit = Unit.SERVICE
    needs = frozenset({Need.TOKENS, Need.PREFIX})
    params = (
        Param(name="quantum", default=2000, low=1, text="param.dlpm.quantum"),
        Param(name="input", default=1, low=0, text="param.dlpm.input"),
        Param(name="output", default=2, low=0, text="param.dlpm.output"),
        Param(name="tries", default=64, low=0, text="param.dlpm.tries"),
    )
    quantum: int
    input: int
    output: int
    tries: int

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.used: dict[str, Counter] = {}  # service of each client on the list
        self.refills: dict[str, int] = {}  # quanta it was given; its quota is what they are worth, less `used`
        self.queued: dict[str, int] = {}  # waiting requests of each client that has any
        self.running: set[str] = set()  # jobs that get tokens

    def bind(self, layer: Layer) -> None:
        super().bind(layer)
        self.clock = layer.clock
        self.matches = Matches(layer.prefix_tokens)

    def read(self, flow: str) -> int:
        """The service of a client until now."""
        return int(self.used[flow].read(self.clock()))

    def quota(self, flow: str) -> int:
        return self.refills[flow] * self.quantum - self.read(flow)

    def rank(self, job: Job) -> Any:
        return 0

    def why(self, job: Job) -> Why:
        return Why("longest-prefix")

    # The choice
    def select(self, now: Time, view: View) -> Decision:
        waiting = self.queued.keys() - self.closed
        if not waiting:
            return NOTHING_WAITS
        given = self._refill(waiting)
        able = [flow for flow in waiting if self.quota(flow) + given.get(flow, 0) * self.quantum > 0]
        for asked, (job, cached, spot) in enumerate(self.matches.longest_first(able, view), 1):
            if view.fits(job):
                return Pick(job, Why("longest-prefix", {"cached": cached, "quota": self.quota(job.flow)}), given)
            spot.refuse(job)
            if asked == self.tries:
                break
        return Wait(Why("none-fits"), given or None)

    def cached(self, blocks: Sequence[int]) -> None:
        self.matches.came(blocks)

    def _refill(self, waiting: Collection[str]) -> Refills:
        """As often as it takes until a client with a waiting request has quota."""
        if any(self.quota(flow) > 0 for flow in waiting):
            return {}
        rounds = min(-self.quota(flow) // self.quantum + 1 for flow in waiting)
        found = {}
        for flow in self.used:
            if (quota := self.quota(flow)) <= 0:
                found[flow] = min(rounds, -quota // self.quantum + 1)
        return found

    def commit(self, decision: Decision, now: Time) -> None:
        for flow, quanta in (decision.plan or {}).items():
            self.refills[flow] += quanta
        super().commit(decision, now)

    def peek(self, now: Time, view: View) -> Job | None:
        decision = self.select(now, view)
        return decision.job if isinstance(decision, Pick) else None

    def take(self, now: Time, view: View) -> Job | None:
        return self.admit(now, view)

    def admit(self, now: Time, view: View) -> Job | None:
        decision = self.select(now, view)
        self.commit(decision, now)
        return decision.job if isinstance(decision, Pick) else None

    def next_overtaking(self, view: View, before: int) -> int | None:
        """When the last client that waits and has quota has used it up: then all are refilled. Where not all of their
        requests are tried, when the first one has: then others are among those that are."""
        clock, never = self.clock(), before - self.clock()
        ends = []
        for flow in self.queued:
            quota, counter = self.quota(flow), self.used[flow]
            if quota > 0:
                ends.append(-(-quota // counter.speed) if counter.speed else never)
        ends.sort()
        end = ends[0 if 0 < self.tries < len(self.jobs) else -1] if ends else never
        return clock + end if end < never else None

    # Its queue
    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        super().arrive(job, now, cause)
        self.matches.add(job)
        self.queued[job.flow] = self.queued.get(job.flow, 0) + 1
        if job.flow not in self.used:
            self.used[job.flow], self.refills[job.flow] = Counter(), 0

    def leave(self, job: Job) -> None:
        super().leave(job)
        self.matches.remove(job)
        self.queued[job.flow] -= 1
        if not self.queued[job.flow]:
            del self.queued[job.flow]

    # Service
    def charge(self, job: Job, amount: int, now: Time) -> None:
        self.used[job.flow].value += self.input * amount

    def started(self, job: Job, now: Time, given: int = 0) -> None:
        assert isinstance(job, Generation)
        counter = self.used[job.flow]
        counter.settle(self.clock())
        counter.value += self.output * given
        counter.speed += self.output
        self.running.add(job.id)

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        if job.id in self.running:
            self.running.remove(job.id)
            counter = self.used[job.flow]
            counter.settle(self.clock())
            counter.speed -= self.output

    # What shells read
    def show(self) -> Mapping[str, Any]:
        return {
            "quota": {flow: self.quota(flow) for flow in sorted(self.used)},
            "counters": {flow: self.read(flow) for flow in sorted(self.used)},
        }

    def state(self) -> dict[str, Any]:
        used = {flow: [int(one.value), one.at, one.speed] for flow, one in self.used.items()}
        return super().state() | {"used": used, "refills": dict(self.refills), "running": sorted(self.running)}

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        for flow, (value, at, speed) in state["used"].items():
            self.used[flow] = counter = Counter()
            counter.value, counter.at, counter.speed = value, at, speed
        self.refills, self.running = dict(state["refills"]), set(state["running"])
        super().restore(state, jobs)
        for job in self.jobs.values():
            self.matches.add(job)
            self.queued[job.flow] = self.queued.get(job.flow, 0) + 1
