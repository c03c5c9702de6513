"""Basic priority inheritance (Sha, Rajkumar, Lehoczky 1990).

    effective priority of a holder = max(own, effective priorities of all it keeps waiting), through chains
    on release: from what it still holds

Guarantee: a job is blocked for at most min(less urgent jobs, distinct resources) critical sections. It neither
prevents deadlock nor chained blocking.
"""

from typing import ClassVar

from fairq.locks.protocol import Protocol


class Inheritance(Protocol):
    name: ClassVar[str] = "inheritance"

    def effective(self, job: str) -> int:
        behind = [job]  # all that wait for it, directly or not; in a deadlock it waits for itself
        for other in behind:
            behind += [waiter for waiter in self.waiters(other) if waiter not in behind]
        return max(self.own[waiting] for waiting in behind)
