"""Requests per minute (a baseline of Sheng et al., OSDI 2024): a limit at the door, first come first served behind it.

    arrive   refused if `limit` requests of the client were let in during the last `window` seconds

Unit of fairness: none. It bounds what a client may ask for, in requests, not what it gets: a low limit leaves the
engine idle while clients are turned away, a high one protects nobody.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any

from fairq.core.job import Job
from fairq.core.policy import Need, Param, Time
from fairq.policies.fcfs import FCFS

SECOND = 1_000_000_000


class RPM(FCFS):
    name = "rpm"
    needs = frozenset({Need.TOKENS})  # only an engine asks `refuses`
    params = (
        Param(name="limit", default=30, low=1, text="param.rpm.limit"),
        Param(name="window", default=60, low=1, text="param.rpm.window"),
    )
    limit: int
    window: int

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.let_in: dict[str, deque[Time]] = {}  # arrivals of the last window

    def refuses(self, job: Job, now: Time) -> bool:
        recent = self.let_in.setdefault(job.flow, deque())
        while recent and recent[0] <= job.arrival - self.window * SECOND:
            recent.popleft()
        if len(recent) >= self.limit:
            return True
        recent.append(job.arrival)
        return False

    def show(self) -> Mapping[str, Any]:
        return {"recent": {flow: len(recent) for flow, recent in sorted(self.let_in.items())}}

    def state(self) -> dict[str, Any]:
        return super().state() | {"let_in": {flow: list(recent) for flow, recent in self.let_in.items()}}

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        self.let_in = {flow: deque(recent) for flow, recent in state["let_in"].items()}
        super().restore(state, jobs)
