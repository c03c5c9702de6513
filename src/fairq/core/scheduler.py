"""The scheduler of one pool: events in, commands out.

`handle` is the only mutator. It reads nothing but its state and the event, so the same events give the same commands,
in production, in a test and in a replay. A shell (gateway, replay, test) does what the commands say.
`core.snapshot` saves, restores and validates one.

Per event O(log tenants), plus O(upstreams) per dispatch, plus O(retrying jobs) while there are any.
"""

from collections.abc import Callable
from typing import Any, Final, NoReturn

from fairq.core import events as ev
from fairq.core import operations as op
from fairq.core.commands import Abort, AnyCommand, Reject
from fairq.core.cost import UNUSED
from fairq.core.entry import Entry
from fairq.core.errors import FairqError, InvalidTransition, UnknownName
from fairq.core.estimator import Estimator
from fairq.core.lifecycle import LIFECYCLE, Outcome, State
from fairq.core.number import fixed
from fairq.core.patience import Patience
from fairq.core.placement import Placement, Upstream
from fairq.core.policy import ROOMY, Layer, Need, Pick, Policy
from fairq.core.roster import Tenants
from fairq.core.settlement import SETTLEMENTS
from fairq.core.setup import Setup
from fairq.core.slots import Slots

ATTEMPTS: Final = 2  # a request is tried on one more upstream, never on a third
WAITING: Final = State.WAITING
RUNNING: Final = State.RUNNING
RETRYING: Final = State.RETRYING
COMPLETED: Final = Outcome.COMPLETED


class Scheduler:
    def __init__(self, setup: Setup, policy: Policy, placement: Placement) -> None:
        if setup.settlement not in SETTLEMENTS:
            raise UnknownName("settlement", setup.settlement, SETTLEMENTS)
        self.setup = setup
        self.policy, self.placement = policy, placement
        self.estimator = Estimator(setup.cost)
        self.settlement = SETTLEMENTS[setup.settlement]()
        policy.bind(
            Layer(
                name="gateway",
                provides=frozenset({Need.SIZE}),
                cost=self.preview,
                normalize=fixed,
                tag=int,  # they are integers already
                rebase=True,
            )
        )
        self.tenants = Tenants(setup, policy, self.settlement)
        self.slots = Slots()
        self.jobs: dict[str, Entry] = {}  # all that live, in order of arrival
        self.retries: dict[str, Entry] = {}  # those that go first
        self.patience = Patience(setup.wait_for_upstream)
        self.timed = type(policy).next_change is not Policy.next_change
        self.seq = self.now = 0
        self.busy = False

    # Reading
    @property
    def upstreams(self) -> dict[str, Upstream]:
        return self.slots.upstreams

    def preview(self, job: Any) -> int:
        """What `job` would be charged if it were dispatched now."""
        return self.settlement.preview(job.flow, self.estimator.estimate(job).cost)

    def next_deadline(self) -> int | None:
        """When a `Tick` is due: somebody's patience ends, or the policy has a timer."""
        first = self.patience.first()
        due = first[0] if first else None
        if not self.timed:
            return due
        timer = self.policy.next_change(self.now, ROOMY)
        return timer if due is None or (timer is not None and timer < due) else due

    def can_retry(self, id_: str) -> bool:
        """Would a failed attempt of this running job be tried on another upstream?"""
        entry = self.jobs[id_]
        return not entry.gone and entry.attempts < ATTEMPTS and any(self.slots.others(entry.upstream))

    def is_lit(self) -> bool:
        """Is any upstream usable?"""
        return bool(self.slots.usable)

    # The only mutator
    def handle(self, event: ev.AnyEvent) -> list[AnyCommand]:
        """Raises FairqError for an event out of order and InvalidTransition for one that cannot happen to its job."""
        seq, now = event.seq, event.time
        if seq != self.seq + 1 or now < self.now:
            raise FairqError(f"event {seq} at {now} cannot follow event {self.seq} at {self.now}")
        self.seq = seq
        self.now = now
        out: list[AnyCommand] = []
        try:
            newcomer = HANDLERS[type(event)](self, event, out)
        except InvalidTransition:  # nothing has changed, so nothing has happened
            self.seq = seq - 1
            raise
        if self.retries:
            self._retry(out)
        ends = self.patience.heap
        if ends and ends[0] <= now:
            self._lose_patience(out)
        if self.timed and (due := self.policy.next_change(now, ROOMY)) is not None and due <= now:
            self.policy.timer(now)
        if self.slots.free and self.tenants.waiting:
            self._fill(out)
        if newcomer is not None and (newcomer.state is WAITING or newcomer.state is RETRYING):
            self.patience.wait(newcomer.request)  # only now: mostly it is dispatched at once
            if not self.slots.usable:
                self._lose_patience(out)
        if self.busy and not self.tenants.waiting:
            self.busy = False
            self.settlement.idled()
        return out

    # A handler returns the job whose wait begins, if there is one
    def _on_admitted(self, event: ev.Admitted, out: list[AnyCommand]) -> Entry:
        request = event.request
        id_ = request.id
        if id_ in self.jobs:
            raise InvalidTransition(id_, self.jobs[id_].state, "Admitted", self.jobs[id_].story)
        self.jobs[id_] = entry = Entry(request)
        self.busy = True
        self.tenants.arrive(request, self.now)
        return entry

    def _on_cancelled(self, event: ev.Cancelled, out: list[AnyCommand]) -> None:
        entry = self._entry(event.id, "Cancelled")
        was = entry.state
        entry.step("Cancelled")
        if was is RUNNING:
            if not entry.gone:
                out.append(Abort(seq=self.seq, time=self.now, id=event.id))
            entry.gone = True
        elif was is WAITING:
            self._end_unserved(entry, Outcome.CANCELLED_WAITING, out)
        elif was is RETRYING:
            self._end_unserved(entry, Outcome.CANCELLED_RUNNING, out)

    def _on_evicted(self, event: ev.Evicted, out: list[AnyCommand]) -> None:
        self.reject(self._entry(event.id, "Evicted"), Outcome.REFUSED_QUEUE_FULL, out, "Evicted")

    def _on_slot_freed(self, event: ev.SlotFreed, out: list[AnyCommand]) -> None:
        entry = self._entry(event.id, "SlotFreed")
        entry.step("SlotFreed")
        self._release(entry)
        self.tenants.left(entry.request, self.now)

    def _on_attempt_failed(self, event: ev.AttemptFailed, out: list[AnyCommand]) -> Entry:
        entry = self._entry(event.id, "AttemptFailed")
        entry.step("AttemptFailed")
        self._release(entry)
        entry.failed = event.outcome
        self.retries[event.id] = entry
        if entry.gone:
            entry.step("Cancelled")
            self._end_unserved(entry, Outcome.CANCELLED_RUNNING, out)
        return entry

    def _on_finished(self, event: ev.Finished, out: list[AnyCommand]) -> None:
        entry = self.jobs.get(event.id) or self._unknown(event.id, "Finished")
        was = entry.state
        entry.state = LIFECYCLE[was].get("Finished") or entry.refuse("Finished")
        request, estimator = entry.request, self.estimator
        usage = estimator.clipped(request, event.usage)
        actual = estimator.actual(request, usage)
        # Before the tenant's slot is free: an error stands before the join that may follow
        self.settlement.finished(request.flow, actual - entry.estimate.cost, entry.epoch, entry.contended)
        estimator.learn(request, usage, event.outcome is COMPLETED)
        if was is RUNNING:
            self._release(entry)
            self.tenants.left(request, self.now)
        del self.jobs[request.id]
        out.append(entry.ended(event, actual, usage))

    # Dispatching
    def _fill(self, out: list[AnyCommand]) -> None:
        """Choose first, charge afterwards, until no slot is free or nobody is backlogged."""
        policy, settlement, slots, tenants, now = self.policy, self.settlement, self.slots, self.tenants, self.now
        jobs, estimate_of = self.jobs, self.estimator.estimate
        while slots.free and tenants.waiting:
            decision = policy.select(now, ROOMY)
            if type(decision) is not Pick:
                if decision.plan is not None:
                    policy.commit(decision, now)
                return
            request: Any = decision.job
            entry, flow = jobs[request.id], request.flow
            entry.why = decision.why
            entry.estimate = estimate = estimate_of(request)
            entry.contended = policy.contended(flow)
            entry.epoch = settlement.epoch
            policy.commit(decision, now)
            entry.charge = charge = settlement.charge(flow, estimate.cost)
            policy.charge(request, charge, now)
            tenants.dispatched(flow, now)
            entry.dispatched = now
            self._send(entry, slots.room, out)

    def _retry(self, out: list[AnyCommand]) -> None:
        for entry in list(self.retries.values()):
            if not self.can_retry(entry.request.id):
                self.reject(entry, entry.failed, out)
            elif self.slots.free:
                room = [upstream for upstream in self.slots.room if upstream.name != entry.upstream]
                if room:
                    del self.retries[entry.request.id]
                    self._send(entry, room, out)

    def _send(self, entry: Entry, room: list[Upstream], out: list[AnyCommand]) -> None:
        request, placement = entry.request, self.placement
        entry.state = LIFECYCLE[entry.state].get("Dispatch") or entry.refuse("Dispatch")
        self.patience.drop(request.id)
        upstream = placement.choose(request, room)
        self.slots.take(upstream)
        placement.dispatched(request, upstream)
        entry.upstream = upstream.name
        entry.attempts += 1
        out.append(entry.sent(self.seq, self.now))

    def _release(self, entry: Entry) -> None:
        """Its slot is free."""
        upstream = self.slots.release(entry.upstream)
        if upstream is not None:
            self.placement.finished(entry.request, upstream)

    # Ending
    def _lose_patience(self, out: list[AnyCommand]) -> None:
        """Whoever has waited for too long ends; a retrying one for what its upstream did."""
        now = self.now
        while (first := self.patience.first()) and first[0] <= now:
            entry = self.jobs[first[1]]
            outcome = Outcome.EXPIRED if 0 < entry.request.expires <= now else Outcome.REFUSED_NO_UPSTREAM
            self.reject(entry, entry.failed if entry.state is RETRYING else outcome, out)

    def reject(self, entry: Entry, outcome: Outcome, out: list[AnyCommand], event: str = "Reject") -> None:
        entry.step(event)
        out.append(Reject(seq=self.seq, time=self.now, id=entry.request.id, outcome=outcome))
        self._end_unserved(entry, outcome, out)

    def _end_unserved(self, entry: Entry, outcome: Outcome, out: list[AnyCommand]) -> None:
        """It waited, or it was charged and waited for a second upstream."""
        request = entry.request
        self.patience.drop(request.id)
        if self.retries.pop(request.id, None) is None:
            self.tenants.withdraw(request, self.now)
        else:
            unused = self.estimator.actual(request, UNUSED) - entry.estimate.cost
            self.settlement.finished(request.flow, unused, entry.epoch, entry.contended)
            self.tenants.left(request, self.now)
        del self.jobs[request.id]
        out.append(entry.unserved(self.seq, self.now, outcome))

    def judge_patience(self) -> None:
        """Upstreams or the limit changed."""
        waiting = (entry.request for entry in self.jobs.values() if entry.state is WAITING)
        self.patience.judge(self.is_lit(), waiting, self.now)

    def _entry(self, id_: str, event: str) -> Entry:
        return self.jobs.get(id_) or self._unknown(id_, event)

    def _unknown(self, id_: str, event: str) -> NoReturn:
        raise InvalidTransition(id_, "unknown", event, "it has ended or never arrived")


HANDLERS: dict[type, Callable[[Scheduler, Any, list[AnyCommand]], Entry | None]] = {
    ev.Admitted: Scheduler._on_admitted,
    ev.Cancelled: Scheduler._on_cancelled,
    ev.Evicted: Scheduler._on_evicted,
    ev.SlotFreed: Scheduler._on_slot_freed,
    ev.AttemptFailed: Scheduler._on_attempt_failed,
    ev.Finished: Scheduler._on_finished,
    ev.Tick: op.nothing,
    ev.UpstreamChanged: op.upstream_changed,
    ev.UpstreamRemoved: op.upstream_removed,
    ev.Draining: op.draining,
    ev.Paused: op.paused,
    ev.Resumed: op.resumed,
    ev.Reconfigured: op.reconfigured,
    ev.CalibrationChanged: op.calibrated,
    ev.Refused: op.nothing,
    ev.RecordingGap: op.nothing,
}
