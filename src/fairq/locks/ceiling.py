"""The original priority ceiling protocol (Sha, Rajkumar, Lehoczky 1990). One processor.

    ceiling of a resource = the highest own priority of any task that uses it
    job J locks iff J's priority > the ceilings of all resources that are locked by other jobs
    else J is blocked by the holder of the one with the highest ceiling, which inherits as in basic inheritance

So a lock is refused even when the resource is free. Guarantees: a job is blocked at most once, for at most one
critical section; no deadlock, no chained blocking.
"""

from typing import ClassVar

from fairq.locks.inheritance import Inheritance


class Ceiling(Inheritance):
    name: ClassVar[str] = "ceiling"
    single_cpu: ClassVar[bool] = True

    def blocker(self, job: str, resource: str) -> str | None:
        others = [r for r, holder in self.holder.items() if holder != job]
        highest = max(others, key=self.ceilings.__getitem__, default=None)
        return None if highest is None or self.own[job] > self.ceilings[highest] else self.holder[highest]

    def woken(self, resource: str) -> str | None:
        """Whoever may lock now, not only waiters for this resource: a ceiling has gone."""
        return self.most_urgent(job for job, wanted in self.blocked.items() if self.blocker(job, wanted) is None)
