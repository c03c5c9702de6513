"""Generalized processor sharing (Parekh, Gallager, IEEE/ACM ToN 1993): the fluid that says what is fair.

    rates   a backlogged flow i is given  r * w_i / (sum of w over the backlogged flows),  all of them at once
    finish  a packet ends when V reaches its F (policies/fluid.py: the same tags as WFQ's)

Unit of fairness: normalized service, exactly, over every interval: W_i/w_i = W_j/w_j while i and j are backlogged, and
W_i/w_i >= W_j/w_j for a backlogged i and any j. Nothing that sends whole packets can do that. A backlogged flow is
never given less than r * w_i / (sum of all w), so a flow that keeps to its share never waits for another.

It is a reference: times are rationals and exact, so they grow by a few bits with each arrival of a busy period.
"""

from collections.abc import Mapping
from fractions import Fraction

from fairq.core.job import Job
from fairq.core.number import Number, quotient
from fairq.core.policy import Need, Time, Why
from fairq.policies.wfq import WFQ


class GPS(WFQ):
    name = "gps"
    needs = WFQ.needs | {Need.FLUID}
    bits = None

    def rates(self, now: Time) -> Mapping[str, Number]:
        share = self.layer.rate / Fraction(self.fluid.weight or 1)
        return {flow: share * weight for flow, weight in sorted(self.fluid.weights.items())}

    def next_end(self) -> Number:
        """When the packet that `select` names has been served, if nothing arrives before. Some packet waits."""
        fluid = self.fluid
        service = (self.ranking.heap[0] - fluid.virtual_time) * fluid.weight - fluid.unspent
        return fluid.at + quotient(service, fluid.speed * fluid.scale)

    def charge(self, job: Job, amount: int, now: Number) -> None:
        """It has been served. The layer calls `commit` and this when the time of `next_end` has come."""
        self.advance(now)
        super().charge(job, amount, now)

    def why(self, flow: str, rank: Number) -> Why:
        return Why("ends-first", {"finish": self.tag(rank)})
