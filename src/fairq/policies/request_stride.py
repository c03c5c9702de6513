"""Stride over requests (after Waldspurger, Weihl, MIT/LCS/TM-528, 1995): one stride each, a baseline.

    select   argmin over clients with queued requests of (pass_i, id)
    charge   pass_i += 1 / w_i                          for a request
    join     pass_i  = max(pass_i, global pass)         the pass of the request that was taken last

Unit of fairness: normalized requests. Clients that stay backlogged differ by at most one request over their weights;
in tokens they differ by whatever their requests do.
"""

from fairq.core.job import Job
from fairq.core.policy import Need, Time
from fairq.policies.sfq import SFQ


class RequestStride(SFQ):
    name = "request-stride"
    needs = frozenset({Need.TOKENS})  # in other layers request-rr, which it equals at equal weights, says the same

    def charge(self, job: Job, amount: int, now: Time) -> None:
        super().charge(job, 1, now)
