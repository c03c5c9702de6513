"""The contract of lock protocols, and the plainest of them: a lock is a lock, and nobody's priority changes.

A protocol decides two things: who may lock a free resource, and at which priority a holder runs. The CPU simulator
calls it; policies only hear of changed priorities. Jobs are named by id, a larger priority is more urgent.

    join, leave          a job comes with its own priority; it goes, letting go of what it holds
    request              None: it has the lock; else the job that it now waits for
    release              gives a lock back; says who is woken and will ask again when it runs
    changed              whose effective priority is another one than at the last call

A woken job does not have the lock yet: it asks again, like any other, when the policy lets it run.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from msgspec import Struct

from fairq.core.errors import check


class Hold(Struct, frozen=True):
    """`job` waits for `resource`, from which `by` keeps it."""

    job: str
    resource: str
    by: str


class Protocol:
    """No protocol: the holder keeps its own priority (so priority inversion is unbounded), and deadlock is possible."""

    name: ClassVar[str] = "none"
    single_cpu: ClassVar[bool] = False  # defined for one processor only
    undivided: ClassVar[bool] = False  # a holder does not take turns with equally urgent jobs

    def __init__(self, ceilings: Mapping[str, int]) -> None:
        """ceilings  the highest own priority of any task that ever locks the resource"""
        self.ceilings = ceilings
        self.own: dict[str, int] = {}
        self.holder: dict[str, str] = {}  # resource -> job, in order of locking
        self.blocked: dict[str, str] = {}  # job -> resource it waits for, in order of blocking
        self.called: dict[str, str] = {}  # job -> resource it was woken for and has not asked for again
        self.told: dict[str, int] = {}  # effective priorities that differ from own ones, as last reported

    # What a protocol says
    def blocker(self, job: str, resource: str) -> str | None:
        """Who keeps `job` from locking `resource` now; None: nobody."""
        holder = self.holder.get(resource)
        return None if holder == job else holder

    def effective(self, job: str) -> int:
        """The priority at which `job` runs now."""
        return self.own[job]

    def woken(self, resource: str) -> str | None:
        """Who is woken when `resource` has become free: its most urgent waiter, first come among equals."""
        return self.most_urgent(job for job, wanted in self.blocked.items() if wanted == resource)

    # What the simulator calls
    def join(self, job: str, priority: int) -> None:
        self.own[job] = priority

    def leave(self, job: str) -> list[str]:
        """The job is over, whatever it held or waited for. Returns who is woken."""
        self.blocked.pop(job, None)
        freed = [resource for resource, holder in self.holder.items() if holder == job]
        for resource in freed:
            del self.holder[resource]
        if job in self.called:
            freed.append(self.called.pop(job))
        del self.own[job]
        self.told.pop(job, None)
        return [woken for resource in freed for woken in self._wake(resource)]

    def request(self, job: str, resource: str) -> str | None:
        self.called.pop(job, None)
        by = self.blocker(job, resource)
        if by is None:
            self.holder[resource] = job
        else:
            self.blocked[job] = resource
        return by

    def release(self, job: str, resource: str) -> list[str]:
        check(self.holder.get(resource) == job, f"job {job} gives back {resource}, which it does not hold")
        del self.holder[resource]
        return list(self._wake(resource))

    def changed(self) -> list[tuple[str, int]]:
        now = {job: priority for job in self.concerned() if (priority := self.effective(job)) != self.own[job]}
        news = [(job, priority) for job, priority in now.items() if self.told.get(job) != priority]
        news += [(job, self.own[job]) for job in self.told if job not in now]
        self.told = now
        return news

    def deadlock(self, job: str) -> list[Hold]:
        """The circle in which `job`, which has just been refused, waits for itself; empty where there is none."""
        circle: list[Hold] = []
        at = job
        while at in self.blocked and (by := self.blocker(at, self.blocked[at])) is not None:
            circle.append(Hold(at, self.blocked[at], by))
            if by == job:
                return circle
            if len(circle) > len(self.blocked):
                break  # it waits for others that are deadlocked
            at = by
        return []

    # What protocols share
    def concerned(self) -> set[str]:
        """Jobs whose priority may be another one than their own."""
        return set(self.holder.values())

    def most_urgent(self, jobs: Iterable[str]) -> str | None:
        return max(jobs, key=self.effective, default=None)

    def waiters(self, job: str) -> Iterator[str]:
        """Those that `job` keeps waiting."""
        return (other for other, resource in self.blocked.items() if self.blocker(other, resource) == job)

    def _wake(self, resource: str) -> Iterator[str]:
        woken = self.woken(resource) if resource not in self.holder else None
        if woken is not None:
            self.called[woken] = self.blocked.pop(woken)
            yield woken
