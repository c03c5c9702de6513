"""The shell around one pool's scheduler: it numbers and times events, records them, and does what commands say.

Everything runs on one event loop, so decisions are serial. What happens during a turn of the loop is put down in order
and decided at its end: first all decisions, then all that they order. So the code of each step stays in the processor's
caches for all that came in one turn, which saves a quarter of a request's time or more. An event that arises from an
order waits its turn.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

from fairq.core import events as ev
from fairq.core.commands import Abort, AnyCommand, Dispatch, Ended, Reject
from fairq.core.job import Request
from fairq.core.lifecycle import Outcome, State
from fairq.core.lines import encode_lines
from fairq.core.scheduler import Scheduler
from fairq.gateway.admission import Admission, Full

Record = Callable[[bytes], None]
"""Takes ledger lines, newline included."""

OVERTAKEN: Final = frozenset({ev.Evicted, ev.Cancelled})  # may come too late, and then mean nothing


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
    soon     calls a function at the end of this turn of the loop
    call_at  (ns on that clock, callback) -> a timer that can be cancelled
    """

    def __init__(
        self,
        scheduler: Scheduler,
        admission: Admission,
        record: Record,
        clock: Callable[[], int],
        soon: Callable[[Callable[[], None]], object],
        call_at: Callable[[int, Callable[[], None]], Timer],
    ) -> None:
        self.scheduler, self.admission = scheduler, admission
        self.calls: dict[str, Call] = {}
        self._record, self._clock, self._soon, self._call_at = record, clock, soon, call_at
        self._inbox: deque[tuple[type[ev.Event], dict[str, Any]]] = deque()  # what happened
        self._orders: deque[AnyCommand] = deque()  # what was decided and is not done yet
        self._woken = False  # `turn` will be called
        self._coming = self._coming_bytes = 0  # requests in the inbox
        self._timer: Timer | None = None
        self._timer_at: int | None = None

    # What happens
    def submit(self, call: Call) -> None:
        """A request that passed every limit."""
        request = call.request
        self.calls[request.id] = call
        self._coming += 1
        self._coming_bytes += call.size
        self.put(ev.Admitted, request=request)

    def put(self, kind: type[ev.Event], **fields: Any) -> None:
        """Something happened to a request. It is decided at the end of the turn."""
        self._inbox.append((kind, fields))
        self._wake()

    def emit(self, kind: type[ev.Event], **fields: Any) -> None:
        """Something else happened, an order of an operator's for one. It is decided now, and all before it."""
        self.put(kind, **fields)
        self.decide()

    def evict(self, id_: str) -> None:
        """It gives its place in the queue to another request, and nobody else can take that place from now on."""
        self.admission.leave(id_)
        self.put(ev.Evicted, id=id_)

    def _wake(self) -> None:
        if not self._woken:
            self._woken = True
            self._soon(self.turn)

    # What is asked. All that has happened is decided first.
    def ask(self, tenant: str, size: int) -> Full | list[str]:
        """`Admission.ask`. Requests that have come and are not decided yet count as if they would wait; where a bound
        is met so, all that has happened is decided first: a request that ended may have freed a place."""
        answer = self.admission.ask(tenant, size, self._coming, self._coming_bytes)
        if self._inbox and answer != []:
            self.decide()
            answer = self.admission.ask(tenant, size)
        return answer

    def is_retrying(self, id_: str) -> bool:
        """Charged, but between two upstreams."""
        self.decide()
        return id_ in self.scheduler.retries

    def is_live(self, tenant: str) -> bool:
        """Has this tenant requests that wait or run?"""
        self.decide()
        return tenant in self.scheduler.tenants.all

    def position(self, request: Request) -> int:
        """Its place in its tenant's queue, from 1. O(queue): for waiting comments only."""
        return self.admission.position(request.flow, request.id)

    def can_retry(self, id_: str) -> bool:
        """Would a failed attempt of this running request be tried on another upstream?"""
        self.decide()
        return self.scheduler.can_retry(id_)

    # Deciding and doing
    def turn(self) -> None:
        """Decide all that has happened and do it, and so on until nothing is left."""
        calls, orders = self.calls, self._orders
        try:
            self.decide()
            while orders:
                command = orders.popleft()
                if type(command) is Dispatch:
                    calls[command.id].dispatch(command)
                elif type(command) is Ended:
                    calls.pop(command.id).ended(command)
                elif type(command) is Reject:
                    calls[command.id].reject(command.outcome)
                else:
                    calls[command.id].abort()
                if not orders:
                    self.decide()
        finally:  # an error ends this turn, not what others are owed
            self._woken = False
            if self._inbox or orders:
                self._wake()

    def decide(self) -> None:
        """Take and record the decisions that are due. O(log tenants) each. Nothing is done yet: who asks for it may
        stand in the middle of something."""
        inbox = self._inbox
        if not inbox:
            return
        scheduler, admission = self.scheduler, self.admission
        clock, lines = self._clock(), []
        now = max(clock, scheduler.now)
        self._coming = self._coming_bytes = 0
        try:
            while inbox:
                kind, fields = inbox.popleft()
                if kind in OVERTAKEN and not self._stands(kind, fields["id"]):
                    continue
                event: Any = kind(seq=scheduler.seq + 1, time=now, **fields)
                commands = scheduler.handle(event)
                lines.append(event)
                lines += commands
                self._orders += commands
                if admission.requests:
                    for command in commands:
                        if type(command) is not Abort:
                            admission.leave(command.id)
                if kind is ev.Admitted and scheduler.tenants.waiting and self._waits(id_ := event.request.id):
                    admission.enter(event.request.flow, id_, self.calls[id_].size)
        finally:
            if lines:
                self._record(encode_lines(lines))
            self._wake()
        if scheduler.timed or scheduler.patience:
            self._arm()

    def _stands(self, kind: type[ev.Event], id_: str) -> bool:
        """Can it still happen to its request, which a decision before it may have moved on?"""
        return self._waits(id_) if kind is ev.Evicted else id_ in self.scheduler.jobs

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
        """Do what is left; nothing more may happen."""
        self.turn()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
