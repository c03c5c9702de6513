"""Worst-case fair weighted fair queueing (Bennett, Zhang, INFOCOM 1996): WFQ that never runs ahead of the fluid.

    S, F    as in WFQ
    select  the packet of least (F, flow) among those that GPS has begun to serve:  S <= V(now)

WFQ may send a heavy flow's whole burst before anybody else, since all its F come first; the flow then waits for as
long. Here a packet that GPS has not begun to serve waits, so service is also never much ahead of GPS.

Unit of fairness: normalized service. On a link of constant rate r, lengths true: WFQ's bounds (a packet leaves at most
Lmax / r later than in GPS), and service at most (1 - r_i/r) * Lmax_i ahead of GPS, r_i the flow's guaranteed rate.
O(flows) for each packet as written.
"""

from fairq.core.job import Job
from fairq.core.policy import NOTHING_WAITS, Decision, Pick, Stop, Time, View, Why
from fairq.policies.wfq import WFQ


class WF2Q(WFQ):
    name = "wf2q"

    def select(self, now: Time, view: View) -> Decision:
        if not self.ranking:
            return NOTHING_WAITS
        heads = {flow: self.tags[self.head(flow).id] for flow in self.ranking}
        # Where the link has stalled or V was rounded down, nobody may be eligible; then the earliest S counts as begun.
        begun = max(self.fluid.virtual_time_at(now), min(start for start, _ in heads.values()))
        finish, flow, start = min((end, flow, start) for flow, (start, end) in heads.items() if start <= begun)
        return Pick(
            self.head(flow), Why("least-eligible-finish", {"start": self.tag(start), "finish": self.tag(finish)})
        )

    def commit(self, decision: Decision, now: Time) -> None:
        self.advance(now)
        super().commit(decision, now)

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        self.advance(now)
