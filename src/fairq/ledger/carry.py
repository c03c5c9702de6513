"""What `forward` settlement owes and is owed, rebuilt from recorded estimates and charges.

The error of a request that is over (actual - estimate) goes onto its tenant's next charges.
"""

from collections import OrderedDict

from fairq.core.number import TAG_BITS, fixed
from fairq.core.settlement import CARRIES
from fairq.ledger.book import Book, Living, Tenant
from fairq.ledger.segment import Head
from fairq.ledger.tags import Tags, policy_of


class Carry(Book):
    """
    carry    cost units still to be charged (above 0) or to be credited (below 0), by tenant
    largest  the largest amount that was ever carried, either way
    dropped  errors that were forgiven: nobody else was backlogged, the busy period was over, or a join clipped credit
    """

    def __init__(self, tags: Tags) -> None:
        self.forward = self.tagged = False
        self.carry: OrderedDict[str, int] = OrderedDict()
        self.epoch = self.largest = self.dropped = 0
        self._tags = tags

    def due(self, tenant: Tenant, estimate: int) -> int:
        """What its next charge must be. Under `fixed` settlement nothing is ever carried."""
        return max(1, estimate + self.carry.get(tenant.id, 0))

    def restored(self, head: Head) -> None:
        self.forward = head.setup.settlement == "forward"
        self.tagged = policy_of(head.setup.policy) == "sfq"
        settlement = head.state["settlement"]
        self.carry = OrderedDict(settlement.get("carry", ()))
        self.epoch = settlement.get("epoch", 0)

    def settle(self, living: Living, actual: int) -> None:
        """It is over. Call it before its tenant may join again: the error stands before the clipping."""
        error = actual - living.estimate
        if not self.forward:
            return
        if living.contended and living.epoch == self.epoch:
            self._set(living.tenant.id, self.carry.get(living.tenant.id, 0) + error)
        else:
            self.dropped += abs(error)

    def joined(self, tenant: Tenant) -> None:
        carry = self.carry.get(tenant.id, 0)
        if carry < 0:
            unit = fixed(1 << TAG_BITS, tenant.above, tenant.below)
            lead = max((self._tags.lead(tenant) << TAG_BITS) // unit, 0) if self.tagged else 0
            self._set(tenant.id, max(carry, -lead))
            self.dropped += max(carry, -lead) - carry

    def served(self, living: Living) -> None:
        living.epoch = self.epoch
        if self.forward:
            name = living.tenant.id
            self._set(name, living.estimate + self.carry.get(name, 0) - living.charge)

    def idled(self) -> None:
        if self.forward:
            self.dropped += sum(map(abs, self.carry.values()))
            self.carry.clear()
            self.epoch += 1

    def _set(self, name: str, carry: int) -> None:
        self.carry.pop(name, None)
        if carry:
            self.carry[name] = carry
            self.largest = max(self.largest, abs(carry))
            if len(self.carry) > CARRIES:
                self.dropped += abs(self.carry.popitem(last=False)[1])
