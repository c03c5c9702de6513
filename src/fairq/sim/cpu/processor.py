"""One processor: what runs on it, until when, and what it has done so far."""

from collections.abc import Sequence

from fairq.core.job import Job
from fairq.sim.cpu.live import Live, Source

NEVER = 1 << 100

Slice = tuple[str | None, int, int, str]
"""(task, start, end, state): the state is run; with no task, switch or blocked."""


class Processor:
    __slots__ = (
        *("live", "vacated", "last", "slices"),
        *("switching", "began", "since", "due", "end", "next", "held"),
    )

    def __init__(self) -> None:
        self.live: Live | None = None
        self.vacated: Live | None = None  # who left it at this very moment and may come back
        self.last: Source | None = None  # the task it ran last
        self.switching = self.began = 0  # when the switch to the present job began, and when its work did
        self.since = 0  # service is charged up to here; later than now while it switches
        self.due = self.end = NEVER  # when the job reaches its next mark; when its slice ends
        self.next = NEVER  # when this processor needs attention
        self.held = 0  # it does nothing until then
        self.slices: list[Slice] = []

    def start(self, live: Live, now: int, switch_cost: int, slice_: int | None) -> bool:
        """Runs `live` from now on. Does that take the processor from another task?"""
        switches = self.last is not None and self.last is not live.source
        if switches:
            self.since = now + switch_cost
        elif self.vacated is not live or self.since < now:
            self.since = now
        self.switching, self.began = now, self.since
        self.last, self.live = live.source, live
        self.due = self.since + live.goal - live.done
        self.end = NEVER if slice_ is None else self.since + slice_
        self.next = self.due if self.due < self.end else self.end
        return switches

    def close(self, now: int) -> None:
        """Nothing runs on it any more."""
        if self.live is None:
            return
        if self.began > self.switching:
            self._append(None, self.switching, min(self.began, now), "switch")
        if now > self.began:
            self._append(self.live.source.task.id, self.began, now, "run")
        self.live = None
        self.next = NEVER

    def lose(self, now: int) -> None:
        """A tick goes to an attempt that failed."""
        self.held = self.next = now + 1
        self._append(None, now, now + 1, "blocked")

    def _append(self, task: str | None, start: int, end: int, state: str) -> None:
        slices = self.slices
        if slices and slices[-1][2] == start and slices[-1][0] == task and slices[-1][3] == state:
            start = slices.pop()[1]
        slices.append((task, start, end, state))


class Processors:
    """The view that policies get: every job fits, nothing is cached."""

    def __init__(self, cpus: Sequence[Processor]) -> None:
        self.cpus = cpus

    @property
    def running(self) -> Sequence[Job]:
        return [cpu.live.job for cpu in self.cpus if cpu.live]

    def fits(self, job: Job) -> bool:
        return True

    def cached_prefix(self, job: Job) -> int:
        return 0
