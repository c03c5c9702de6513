"""The requests and tenants of a `World`, and what may be kept along with it."""

from typing import Any

from fairq.core.commands import Ended
from fairq.core.events import Finished
from fairq.core.job import Flow, Request
from fairq.core.lifecycle import State
from fairq.ledger.segment import Head


class Living:
    """A request between its admission and its end. `paired` belongs to `ledger.pairs`."""

    __slots__ = (
        "attempts",
        "charge",
        "contended",
        "dispatched",
        "epoch",
        "estimate",
        "finished",
        "gone",
        "paired",
        "request",
        "state",
        "tenant",
        "upstream",
    )

    def __init__(self, request: Request, tenant: "Tenant") -> None:
        self.request, self.tenant = request, tenant
        self.state = State.WAITING
        self.upstream = ""
        self.attempts = self.dispatched = self.estimate = self.charge = self.epoch = 0
        self.contended = self.gone = False
        self.finished: Finished | None = None
        self.paired: list[Any] = []


class Tenant:
    """`queue`: waiting requests by id, oldest first."""

    __slots__ = ("above", "backlogged", "below", "cap", "configured", "id", "inflight", "paused", "queue", "weight")

    def __init__(self, flow: Flow, configured: bool) -> None:
        self.id, self.configured = flow.id, configured
        self.queue: dict[str, Living] = {}
        self.inflight = 0
        self.backlogged = False
        self.adopt(flow)

    def adopt(self, flow: Flow) -> None:
        self.weight, self.cap, self.paused = flow.weight, flow.max_inflight, flow.paused
        self.above, self.below = flow.weight.as_integer_ratio()

    @property
    def open(self) -> bool:
        return not self.paused and (self.cap is None or self.inflight < self.cap)


class Book:
    """Something that is kept along with the world. Each call comes right after the change that it names."""

    def restored(self, head: Head) -> None:
        """Everything begins anew from the state in `head`."""

    def joined(self, tenant: Tenant) -> None:
        """It became backlogged."""

    def left(self, tenant: Tenant) -> None:
        """It is backlogged no more."""

    def served(self, living: Living) -> None:
        """Dispatched and charged for the first time. Its tenant may still be backlogged, or leave next."""

    def placed(self, living: Living) -> None:
        """It took a slot, at its first or at its second attempt."""

    def released(self, living: Living) -> None:
        """It gave its slot back."""

    def reweighted(self, tenant: Tenant) -> None:
        """Its weight changed."""

    def ended(self, living: Living, record: Ended) -> None: ...

    def idled(self) -> None:
        """All queues are empty: the busy period is over."""
