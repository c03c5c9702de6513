"""First come, first served, or FIFO (Arpaci-Dusseau, OSTEP, chapter 7): the job that arrived first.

Unit of fairness: none but the order of arrival. Guarantees: O(log F) per job, no starvation of any job; a long job at
the head makes everybody wait (the convoy effect), and a flow's share is whatever it sends.
"""

from fairq.core.policy import Unit, Why
from fairq.core.queues import FlowPolicy


class FCFS(FlowPolicy):
    name = "fcfs"
    unit = Unit.ORDER

    def rank(self, flow: str) -> tuple[int, str]:
        job = self.queues[flow][0]
        return job.seq, job.id

    def why(self, flow: str, rank: tuple[int, str]) -> Why:
        return Why("first-come", {"seq": rank[0]})
