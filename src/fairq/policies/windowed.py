"""Least service in a window (kthena, fairness scheduling): a baseline, as its router ships it.

    arrive   the request's rank is what its client was served in the last `window` seconds, as of now; it stays so
    select   argmin of (rank, arrival)
    charge   w_p * input + w_q * output tokens              when a request has ended

Unit of fairness: recent service, as it was when each request came. Guarantees: none. Requests that come together have
one rank, whatever is served to their client before their turn.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any

from fairq.core.given import Given
from fairq.core.job import Generation, Job
from fairq.core.policy import Layer, Need, Param, Stop, Time, Unit, Why
from fairq.core.ready import JobPolicy

SECOND = 1_000_000_000


class Windowed(JobPolicy):
    name = "windowed"
    unit = Unit.SERVICE
    needs = frozenset({Need.TOKENS})
    params = (
        Param(name="window", default=300, low=1, text="param.windowed.window"),
        Param(name="input", default=1, low=0, text="param.vtc.input"),
        Param(name="output", default=2, low=0, text="param.vtc.output"),
    )
    memory = ("ranks",)
    window: int
    input: int
    output: int

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.served: dict[str, deque[tuple[Time, int]]] = {}  # of each client: when a request ended, what it cost
        self.ranks: dict[str, int] = {}  # of jobs that wait

    def bind(self, layer: Layer) -> None:
        super().bind(layer)
        self.given = Given(layer.clock)

    def recent(self, flow: str, now: Time) -> int:
        served = self.served.get(flow, deque())
        while served and served[0][0] <= now - self.window * SECOND:
            served.popleft()
        return sum(cost for _, cost in served)

    def rank(self, job: Job) -> int:
        if job.id not in self.ranks:
            self.ranks[job.id] = self.recent(job.flow, job.arrival)
        return self.ranks[job.id]

    def leave(self, job: Job) -> None:
        super().leave(job)
        self.ranks.pop(job.id, None)

    def why(self, job: Job) -> Why:
        return Why("least-recent-service", {"served": self.ranks[job.id]})

    def started(self, job: Job, now: Time, given: int = 0) -> None:
        self.given.start(job, given)

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        assert isinstance(job, Generation)
        if (tokens := self.given.stop(job, reason)) is not None:
            cost = self.input * job.prompt + self.output * tokens
            self.served.setdefault(job.flow, deque()).append((now, cost))

    def show(self) -> Mapping[str, Any]:
        return {"served": {flow: sum(cost for _, cost in served) for flow, served in sorted(self.served.items())}}

    def state(self) -> dict[str, Any]:
        served = {flow: [list(one) for one in ended] for flow, ended in self.served.items()}
        return super().state() | {"served": served, "given": self.given.state()}

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        super().restore(state, jobs)
        self.given.restore(state["given"])
        self.served = {flow: deque((at, cost) for at, cost in ended) for flow, ended in state["served"].items()}
