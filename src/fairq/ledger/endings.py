"""The part of an audit about how requests end: exactly once, for the reason that was recorded, with a true record."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from fairq.core import commands as cmd
from fairq.core import events as ev
from fairq.core.estimator import Estimator
from fairq.core.lifecycle import Outcome, State
from fairq.ledger.book import Living
from fairq.ledger.carry import Carry
from fairq.ledger.checks import Checks
from fairq.ledger.world import World


class Endings:
    """
    due       requests that must end before the next event, and how
    outcomes  of all that have ended
    before    what to call before a line of a kind is applied to the world
    """

    def __init__(self, world: World, carry: Carry, estimator: Estimator, checks: Checks) -> None:
        self.due: dict[str, Outcome] = {}
        self.outcomes: Counter[str] = Counter()
        self._world, self._carry, self._estimator, self._checks = world, carry, estimator, checks
        self.before: dict[type, Callable[[Any], None]] = {
            ev.Cancelled: self._cancelled,
            ev.Evicted: self._evicted,
            ev.AttemptFailed: self._failed,
            ev.Finished: self._finished,
            cmd.Reject: self._rejected,
            cmd.Ended: self._ended,
        }

    def settle(self) -> None:
        """The event is over, and so must be what it ended."""
        for id_, outcome in self.due.items():
            self._checks.fail("one outcome each", f"{id_} should have ended ({outcome}) and has no record")
        self.due.clear()

    def _cancelled(self, line: ev.Cancelled) -> None:
        living = self._world.living.get(line.id)
        if living is not None and living.state in (State.WAITING, State.RETRYING):
            waits = living.state is State.WAITING
            self.due[line.id] = Outcome.CANCELLED_WAITING if waits else Outcome.CANCELLED_RUNNING

    def _evicted(self, line: ev.Evicted) -> None:
        self.due[line.id] = Outcome.REFUSED_QUEUE_FULL

    def _failed(self, line: ev.AttemptFailed) -> None:
        living = self._world.living.get(line.id)
        if living is not None and living.gone:
            self.due[line.id] = Outcome.CANCELLED_RUNNING

    def _finished(self, line: ev.Finished) -> None:
        self.due[line.id] = line.outcome
        living = self._world.living.get(line.id)
        if living is not None:
            usage = self._estimator.clipped(living.request, line.usage)
            self._carry.settle(living, self._estimator.actual(living.request, usage))

    def _rejected(self, line: cmd.Reject) -> None:
        self.due[line.id] = line.outcome

    def _ended(self, line: cmd.Ended) -> None:
        due = self.due.pop(line.id, None)
        living = self._world.living.get(line.id)
        self.outcomes[line.outcome] += 1
        if due is not line.outcome:
            reason = f"its outcome is {due}" if due else "nothing ended it"
            self._checks.fail("one outcome each", f"{line.id} is recorded as {line.outcome}; {reason}")
        elif living is not None:
            self._checks.held("one outcome each", True)
        if living is None:
            return
        if living.attempts and living.finished is None:
            self._carry.settle(living, 0)
        self._record(line, living)
        self._usage(line, living)

    def _record(self, line: cmd.Ended, living: Living) -> None:
        request, tenant = living.request, living.tenant.id
        wait = (living.dispatched if living.attempts else line.time) - request.arrival
        total = line.time - request.arrival
        theirs = (line.tenant, line.upstream, line.attempts, line.estimate, line.charge, line.wait, line.total)
        mine = (tenant, living.upstream, living.attempts, living.estimate, living.charge, wait, total)
        if not self._checks.held("record", theirs == mine):
            self._checks.fail("record", f"the record of {line.id} says {theirs}; it was {mine}")
        if line.outcome is Outcome.EXPIRED and line.time < request.expires:
            self._checks.fail("record", f"{line.id} is recorded as expired {request.expires - line.time} ns too early")

    def _usage(self, line: cmd.Ended, living: Living) -> None:
        finished, estimator = living.finished, self._estimator
        usage, actual = line.usage, 0
        if finished is not None:
            usage = estimator.clipped(living.request, finished.usage)
            actual = estimator.actual(living.request, usage)
        if not self._checks.held("usage", line.actual == actual and line.usage == usage):
            self._checks.fail("usage", f"{line.id} cost {actual} for {usage}, not {line.actual} for {line.usage}")
