"""The shell around one pool's scheduler: it numbers and times events, records them, and does what commands say.

Everything runs on one event loop, so decisions are serial. An event that arises while another one is being handled
(an upstream that refuses the connection at once) waits its turn: the ledger's order is the order of decisions.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from fairq.core import events as ev
from fairq.core.commands import Abort, Dispatch, Ended, Reject
from fairq.core.cost import Usage
from fairq.core.job import Request
from fairq.core.lifecycle import Outcome, State
from fairq.core.lines import encode_lines
from fairq.core.scheduler import Scheduler
from fairq.gateway.admission import Admission

Record = Callable[[bytes], None]
"""Takes ledger lines, newline included."""


class Call(Protocol):
    """One client request, as its dispatcher sees it. `size`: bytes that it holds while it waits."""

    request: Request
    size: int

    def dispatch(self, command: Dispatch) -> None: ...
    def reject(self, outcome: Outcome) -> None: ...
    def abort(self) -> None: ...
    def cut(self) -> None: ...
    def ended(self, record: Ended) -> None: ...


class Timer(Protocol):
    def cancel(self) -> None: ...


class Dispatcher:
    """
    clock    monotonic nanoseconds
    call_at  (ns on that clock, callback) -> a timer that can be cancelled
    """

    def __init__(
        self,
        scheduler: Scheduler,
        admission: Admission,
        record: Record,
        clock: Callable[[], int],
        call_at: Callable[[int, Callable[[], None]], Timer],
    ) -> None:
        self.scheduler, self.admission = scheduler, admission
        self.calls: dict[str, Call] = {}
        self._record, self._clock, self._call_at = record, clock, call_at
        self._inbox: deque[tuple[type[ev.Event], dict[str, Any]]] = deque()
        self._handling = False
        self._timer: Timer | None = None
        self._timer_at: int | None = None

    def submit(self, call: Call) -> None:
        """A request that passed every limit. It may be dispatched before this returns."""
        request = call.request
        self.calls[request.id] = call
        if self._handling:
            self._inbox.append((ev.Admitted, {"request": request}))
        else:
            self._happen(ev.Admitted(seq=self.scheduler.seq + 1, time=self._now(), request=request))

    def finish(
        self, id_: str, outcome: Outcome, usage: Usage, status: int, first_byte: int, last_byte: int, reason: str
    ) -> None:
        """A dispatched request is over. As `emit(ev.Finished, ...)`, which every request would come to."""
        if self._handling:
            times = {"first_byte": first_byte, "last_byte": last_byte}
            told = {"id": id_, "outcome": outcome, "usage": usage, "status": status, "finish": reason, **times}
            self._inbox.append((ev.Finished, told))
            return
        self._happen(
            ev.Finished(
                seq=self.scheduler.seq + 1,
                time=self._now(),
                id=id_,
                outcome=outcome,
                usage=usage,
                status=status,
                first_byte=first_byte,
                last_byte=last_byte,
                finish=reason,
            )
        )

    def evict(self, id_: str) -> None:
        """It gives its place in the queue to another request, and nobody else can take that place from now on."""
        self.admission.leave(id_)
        self.emit(ev.Evicted, id=id_)

    def is_retrying(self, id_: str) -> bool:
        """Charged, but between two upstreams."""
        return id_ in self.scheduler.retries

    def is_live(self, tenant: str) -> bool:
        """Has this tenant requests that wait or run?"""
        return tenant in self.scheduler.tenants.all

    def position(self, request: Request) -> int:
        """Its place in its tenant's queue, from 1. O(queue): for waiting comments only."""
        return self.admission.position(request.flow, request.id)

    def can_retry(self, id_: str) -> bool:
        """Would a failed attempt of this running request be tried on another upstream?"""
        return self.scheduler.can_retry(id_)

    def emit(self, kind: type[ev.Event], **fields: Any) -> None:
        """Something happened. O(log tenants), and whatever the commands cost."""
        if self._handling:
            self._inbox.append((kind, fields))
        else:
            self._happen(self._made(kind, fields))

    def _made(self, kind: type[ev.Event], fields: dict[str, Any]) -> ev.AnyEvent:
        event: Any = kind(seq=self.scheduler.seq + 1, time=self._now(), **fields)
        return event  # type: ignore[no-any-return]  # the classes of AnyEvent are all there are

    def _now(self) -> int:
        now, last = self._clock(), self.scheduler.now
        return now if now > last else last

    def _happen(self, event: ev.AnyEvent) -> None:
        self._handling = True
        try:
            self._handle(event)
            while self._inbox:
                kind, fields = self._inbox.popleft()
                if kind is ev.Evicted and not self._waits(fields["id"]):
                    continue  # dispatched while this event waited its turn
                self._handle(self._made(kind, fields))
        finally:
            self._handling = False
        scheduler = self.scheduler
        if scheduler.timed or scheduler.patience:
            self._arm()

    def _handle(self, event: ev.AnyEvent) -> None:
        scheduler, admission = self.scheduler, self.admission
        commands = scheduler.handle(event)
        self._record(encode_lines([event, *commands]))
        # Who waits is counted before anything is done: an answer may make a connection's next request arrive, which
        # asks for admission.
        if admission.requests:
            for command in commands:
                if type(command) is not Abort:
                    admission.leave(command.id)
        if type(event) is ev.Admitted and scheduler.tenants.waiting and self._waits(id_ := event.request.id):
            admission.enter(event.request.flow, id_, self.calls[id_].size)
        for command in commands:
            if type(command) is Dispatch:
                self.calls[command.id].dispatch(command)
            elif type(command) is Ended:
                self.calls.pop(command.id).ended(command)
            elif type(command) is Reject:
                self.calls[command.id].reject(command.outcome)
            else:
                self.calls[command.id].abort()

    def _waits(self, id_: str) -> bool:
        entry = self.scheduler.jobs.get(id_)
        return entry is not None and entry.state is State.WAITING

    def _arm(self) -> None:
        """Keep one timer, for the earliest deadline. It is moved lazily: most deadlines never come."""
        due = self.scheduler.next_deadline()
        if due is None or (self._timer_at is not None and self._timer_at <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = due
        self._timer = self._call_at(due, self._ring)

    def _ring(self) -> None:
        self._timer = self._timer_at = None
        due = self.scheduler.next_deadline()
        if due is not None and due <= self._clock():
            self.emit(ev.Tick)
        else:
            self._arm()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
