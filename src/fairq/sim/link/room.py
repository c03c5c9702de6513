"""Buffers: who arrives at a full one is dropped."""

from collections.abc import Mapping
from math import inf
from typing import Any

from fairq.core.job import Job
from fairq.core.policy import Policy


class Room:
    """What waits before `policy`: at most `most` packets in all, and of each flow what `per_flow` says; None: any."""

    def __init__(self, policy: Policy, most: int | None, per_flow: Mapping[str, int | None]) -> None:
        self.policy = policy
        self.most = inf if most is None else most
        self.per_flow = {flow: inf if limit is None else limit for flow, limit in per_flow.items()}
        self.held = dict.fromkeys(per_flow, 0)
        self.total = 0
        self.dropped: list[Job] = []

    def enter(self, job: Job, now: Any) -> None:
        if self.total >= self.most or self.held[job.flow] >= self.per_flow[job.flow]:
            self.dropped.append(job)
            return
        self.held[job.flow] += 1
        self.total += 1
        self.policy.arrive(job, now)

    def leave(self, job: Job) -> None:
        self.held[job.flow] -= 1
        self.total -= 1
