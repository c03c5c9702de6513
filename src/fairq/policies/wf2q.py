"""Worst-case fair weighted fair queueing (Bennett, Zhang, INFOCOM 1996): WFQ that never runs ahead of the fluid.

    S, F    as in WFQ
    select  the packet of least (F, flow) among those that GPS has begun to serve:  S <= V(now)

WFQ may send a heavy flow's whole burst before anybody else, since all its F come first; the flow then waits for as
long. Here a packet that GPS has not begun to serve waits, so service is also never much ahead of GPS.

Unit of fairness: normalized service. On a link of constant rate r, lengths true: WFQ's bounds (a packet leaves at most
Lmax / r later than in GPS), and service at most (1 - r_i/r) * Lmax_i ahead of GPS, r_i the flow's guaranteed rate.
O(log flows) for each packet: those that wait for V by S, those that it has reached by F.
"""

from fairq.core.eligible import Eligible
from fairq.core.job import Job
from fairq.core.number import Number
from fairq.core.policy import Decision, Stop, Time, View, Why
from fairq.policies.wfq import WFQ


class WF2Q(WFQ):
    name = "wf2q"

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.ranking = self.waiters = Eligible()

    def rank(self, flow: str) -> tuple[Number, Number]:
        return self.tags[self.queues[flow][0].id]

    def next_flow(self, now: Time) -> str | None:
        """Where the link stalled or V was rounded down nobody may be eligible; then the earliest S counts as begun."""
        if not self.ranking:
            return None
        return self.waiters.earliest(self.fluid.virtual_time_at(now), 1) or self.waiters.nearest()

    def take(self, now: Time, view: View) -> Job | None:
        self.advance(now)
        return super().take(now, view)

    def commit(self, decision: Decision, now: Time) -> None:
        self.advance(now)
        super().commit(decision, now)

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        self.advance(now)

    def why(self, flow: str, rank: tuple[Number, Number]) -> Why:
        start, finish = rank
        return Why("least-eligible-finish", {"start": self.tag(start), "finish": self.tag(finish)})
