"""What jobs are given from start to end, read off a service clock (Given)."""

from collections.abc import Callable, Mapping
from typing import Any

from fairq.core.job import Job
from fairq.core.memory import recall, remembered
from fairq.core.policy import Stop

MEMORY = ("began", "kept")


class Given:
    """For policies that charge a job when it has ended. What a preempted one had is kept until it goes on.

    began  job that runs -> the clock at which it would have had nothing yet
    kept   job that was preempted -> what it had
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self.clock = clock
        self.began: dict[str, int] = {}
        self.kept: dict[str, int] = {}

    def start(self, job: Job, given: int) -> None:
        self.began[job.id] = self.clock() - given - self.kept.pop(job.id, 0)

    def stop(self, job: Job, reason: Stop) -> int | None:
        """What it was given in all; None if it may go on."""
        began = self.began.pop(job.id, None)
        had = self.kept.pop(job.id, 0) if began is None else self.clock() - began
        if reason is not Stop.PREEMPTED:
            return had
        self.kept[job.id] = had
        return None

    def state(self) -> dict[str, Any]:
        return remembered(self, MEMORY)

    def restore(self, state: Mapping[str, Any]) -> None:
        recall(self, MEMORY, state)
