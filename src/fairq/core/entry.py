"""The entry of a living job: its state, what was decided about it, and the records made of it."""

from typing import Final, NoReturn

from fairq.core.commands import Dispatch, Ended
from fairq.core.cost import UNUSED, Estimate, Usage
from fairq.core.errors import InvalidTransition
from fairq.core.events import Finished
from fairq.core.job import Request
from fairq.core.lifecycle import LIFECYCLE, Outcome, State
from fairq.core.policy import Time, Why

UNKNOWN: Final = Estimate(0, 0, 0)
UNDECIDED: Final = Why("")
WAITING: Final = State.WAITING
FAILED_CONNECT: Final = Outcome.FAILED_CONNECT


class Entry:
    """
    attempts    upstreams tried so far
    dispatched  when the first of them was
    gone        its client left while it ran
    failed      how the last attempt ended, if it is retrying
    """

    __slots__ = (
        *("attempts", "charge", "contended", "dispatched", "epoch", "estimate", "failed", "gone"),
        *("request", "state", "upstream", "why"),
    )

    def __init__(self, request: Request) -> None:
        self.request = request
        self.state: State = WAITING
        self.upstream = ""
        self.attempts = self.dispatched = self.charge = self.epoch = 0
        self.estimate = UNKNOWN
        self.contended = self.gone = False
        self.why = UNDECIDED
        self.failed: Outcome = FAILED_CONNECT

    def step(self, event: str) -> None:
        """Raises InvalidTransition, and changes nothing, if the table has no such step."""
        self.state = LIFECYCLE[self.state].get(event) or self.refuse(event)

    def refuse(self, event: str) -> NoReturn:
        raise InvalidTransition(self.request.id, self.state, event, self.story)

    @property
    def story(self) -> str:
        """Its events so far, for the one who reads an error."""
        events = ["Admitted", *["Dispatch", "AttemptFailed"] * self.attempts]
        if self.attempts and self.state is not State.RETRYING:
            events.pop()
        if self.gone:
            events.append("Cancelled")
        if self.state is State.DELIVERING:
            events.append("SlotFreed")
        return " -> ".join(events)

    def sent(self, seq: int, now: Time) -> Dispatch:
        """The command of the present attempt."""
        request, estimate = self.request, self.estimate
        return Dispatch(
            seq=seq,
            time=now,
            id=request.id,
            tenant=request.flow,
            upstream=self.upstream,
            estimate=estimate.cost,
            charge=self.charge if self.attempts == 1 else 0,
            input_tokens=estimate.input_tokens,
            output_tokens=estimate.output_tokens,
            why=self.why,
            contended=self.contended,
            attempt=self.attempts,
        )

    def ended(self, event: Finished, actual: int, usage: Usage) -> Ended:
        """Everything about one that was dispatched, and is over now."""
        request, now, first, tokens = self.request, event.time, event.first_byte, usage.completion
        arrival = request.arrival
        return Ended(  # not by name: CPython sends such long calls through a dict, which costs as much as the rest
            event.seq,
            now,
            request.id,
            request.flow,
            event.outcome,
            self.upstream,
            request.model,
            self.dispatched - arrival,
            first - arrival if first else 0,
            (event.last_byte - first) // (tokens - 1) if tokens > 1 and first else 0,
            now - arrival,
            self.estimate.cost,
            self.charge,
            actual,
            self.why.values.get("meter", 0),
            usage,
            event.finish,
            event.status,
            self.attempts,
        )

    def unserved(self, seq: int, now: Time, outcome: Outcome) -> Ended:
        """Everything about one that leaves a queue; one that retries was charged."""
        request = self.request
        return Ended(
            seq=seq,
            time=now,
            id=request.id,
            tenant=request.flow,
            outcome=outcome,
            upstream=self.upstream,
            model=request.model,
            wait=(self.dispatched if self.attempts else now) - request.arrival,
            total=now - request.arrival,
            estimate=self.estimate.cost,
            charge=self.charge,
            meter=self.why.values.get("meter", 0),
            usage=UNUSED,
            status=outcome.status,
            attempts=self.attempts,
        )
