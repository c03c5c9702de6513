"""Earliest deadline first (Liu, Layland 1973): the job whose absolute deadline comes first.

    select   argmin over waiting jobs of (d_i, arrival)
    preempt  when a waiting job's deadline is earlier than the running one's

Jobs without a deadline run when no other waits.

Unit of fairness: none; it keeps deadlines. Guarantee: independent jobs, one processor, preemption, free switches: if
any schedule meets all deadlines, EDF does (Dertouzos 1974). For periodic tasks whose deadlines are their periods that
is so exactly when the sum of C_i / T_i is at most 1. Past that point no task is safe: misses spread to all (domino).
"""

from fairq.core.job import Job
from fairq.core.policy import Need, Unit, Why
from fairq.core.ready import JobPolicy

NEVER = 1 << 62


class EDF(JobPolicy):
    name = "edf"
    unit = Unit.DEADLINE
    needs = frozenset({Need.DEADLINE, Need.PREEMPTION})
    takes_over = True

    def rank(self, job: Job) -> int:
        return NEVER if job.deadline is None else job.deadline

    def why(self, job: Job) -> Why:
        if job.deadline is None:
            return Why("no-deadline-waits")
        return Why("earliest-deadline", {"deadline": job.deadline})
