"""The immediate ceiling protocol (highest locker, POSIX PRIO_PROTECT, OSEK). One processor.

    effective priority of a holder = max(own, ceilings of all that it holds), from the moment it locks

Nobody who could ask for a held resource gets to run, so nobody is ever refused; jobs as urgent as the ceiling take no
turns with the holder. Guarantees: the same worst case as the original ceiling protocol (at most one critical section
of a less urgent job, no deadlock), with fewer switches: the blocking comes before the job has started.
"""

from typing import ClassVar

from fairq.locks.protocol import Protocol


class ImmediateCeiling(Protocol):
    name: ClassVar[str] = "immediate-ceiling"
    single_cpu: ClassVar[bool] = True
    undivided: ClassVar[bool] = True

    def effective(self, job: str) -> int:
        held = [self.ceilings[resource] for resource, holder in self.holder.items() if holder == job]
        return max([self.own[job], *held])
