"""Rate monotonic (Liu, Layland 1973): fixed priorities, the shorter period the more urgent.

    priority  -T_i, or with `by=deadline` -D_i (deadline monotonic: the relative deadline)

Jobs without a period (a deadline) run when no other waits. Among equal periods: first come, first served.

Unit of fairness: none; it keeps deadlines. Guarantees, for independent periodic tasks, one processor, preemption, free
switches: n tasks with D = T meet all deadlines if the sum of C_i / T_i is at most n(2^(1/n) - 1); if any fixed
priorities are feasible for D = T, these are; by deadline the same for D <= T. Exact: the response-time analysis
R_i = C_i + sum over more urgent j of ceil(R_i / T_j) C_j, feasible iff R_i <= D_i. So the tasks that miss can be named
beforehand, and a task is disturbed by shorter periods only. It need not be the longest period that misses (Buttazzo
2005): a long one may have the slack that one in the middle lacks.
"""

from fairq.core.job import Job
from fairq.core.policy import Need, Param, Unit, Why
from fairq.policies.fixed import PROTOCOL, FixedPriority

NEVER = 1 << 62


class RM(FixedPriority):
    name = "rm"
    unit = Unit.DEADLINE
    needs = frozenset({Need.DEADLINE, Need.PREEMPTION})
    per_job = ("priority",)
    params = (Param(name="by", default="period", choices=("period", "deadline"), text="param.rm.by"), PROTOCOL)
    by: str

    def base(self, job: Job) -> int:
        relative = None if job.deadline is None else job.deadline - job.arrival
        length = job.period if self.by == "period" else relative
        return -NEVER if length is None else -length

    def why(self, job: Job) -> Why:
        return Why("shortest-period" if self.by == "period" else "shortest-deadline", {"of": -self.priority[job.id]})
