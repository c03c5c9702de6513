"""SFQ that forgets the join rule: a flow keeps the meter it left with, so idle time is saved up and spent at once."""

from fairq.core.policy import Time
from fairq.policies.sfq import SFQ


class BankingSFQ(SFQ):
    def joined(self, flow: str, now: Time) -> None:
        self.meters.setdefault(flow, self.origin)
