"""The scheduler of one pool: events in, commands out.

`handle` is the only mutator. It reads nothing but its state and the event, so the same events give the same commands,
in production, in a test and in a replay. A shell (gateway, replay, test) does what the commands say.
`core.snapshot` saves, restores and validates one.

Per event O(log tenants), plus O(upstreams) per dispatch.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from fairq.core import events as ev
from fairq.core.commands import Abort, AnyCommand, Dispatch, Ended, Reject
from fairq.core.cost import SETTLEMENTS, Estimator, Usage
from fairq.core.errors import FairqError, InvalidTransition, UnknownName
from fairq.core.lifecycle import LIFECYCLE, Outcome, State
from fairq.core.number import fixed
from fairq.core.placement import Placement, Upstream
from fairq.core.policy import ROOMY, Layer, Need, Pick, Policy, Stop
from fairq.core.ranking import Ranking
from fairq.core.roster import Entry, Setup, Tenants

ATTEMPTS = 2  # a request is tried on one more upstream, never on a third
ENDS_BY_ITSELF = frozenset({Outcome.COMPLETED})


class Scheduler:
    def __init__(self, setup: Setup, policy: Policy, placement: Placement) -> None:
        if setup.settlement not in SETTLEMENTS:
            raise UnknownName("settlement", setup.settlement, SETTLEMENTS)
        self.setup = setup
        self.policy, self.placement = policy, placement
        self.estimator = Estimator(setup.cost)
        self.settlement = SETTLEMENTS[setup.settlement]()
        self.tenants = Tenants(setup, policy, self.settlement)
        self.upstreams: dict[str, Upstream] = {}
        self.jobs: dict[str, Entry] = {}  # all that live, in order of arrival
        self.retries: dict[str, Entry] = {}  # those that go first
        self.expiry: Ranking[str, int] = Ranking()  # waiting jobs by the time they expire
        self.seq = self.now = self.dark_since = 0
        self.busy = False
        policy.bind(
            Layer(
                name="gateway",
                provides=frozenset({Need.SIZE}),
                cost=self.preview,
                normalize=fixed,
                rebase=True,
            )
        )

    # Reading
    def preview(self, job: Any) -> int:
        """What `job` would be charged if it were dispatched now."""
        return self.settlement.preview(job.flow, self.estimator.estimate(job).cost)

    def next_deadline(self) -> int | None:
        """When a `Tick` is due: a request expires, has waited long enough for an upstream, or the policy's moment."""
        first = self.expiry.first()
        moments = (first and first[0], self._gives_up_at(), self.policy.next_change(self.now, ROOMY))
        return min((at for at in moments if at is not None), default=None)

    def can_retry(self, id_: str) -> bool:
        """Would a failed attempt of this running job be tried on another upstream?"""
        entry = self.jobs[id_]
        return entry.attempts < ATTEMPTS and any(u.name != entry.upstream for u in self._usable())

    def free_slots(self) -> int:
        return sum(max(upstream.free, 0) for upstream in self.upstreams.values())

    # The only mutator
    def handle(self, event: ev.AnyEvent) -> list[AnyCommand]:
        if event.seq != self.seq + 1 or event.time < self.now:
            raise FairqError(f"event {event.seq} at {event.time} cannot follow event {self.seq} at {self.now}")
        self.seq, self.now = event.seq, event.time
        out: list[AnyCommand] = []
        HANDLERS[type(event)](self, event, out)
        if not self.is_lit():
            self._give_up(out)
        if self.retries:
            self._retry(out)
        if (due := self.policy.next_change(self.now, ROOMY)) is not None and due <= self.now:
            self.policy.timer(self.now)
        self._fill(out)
        if self.busy and not self.policy.waiting():
            self.busy = False
            self.settlement.idled()
        return out

    def _on_admitted(self, event: ev.Admitted, out: list[AnyCommand]) -> None:
        request = event.request
        if request.id in self.jobs:
            raise InvalidTransition(request.id, self.jobs[request.id].state, "Admitted", self.jobs[request.id].story)
        entry = Entry(request=request)
        self.jobs[request.id] = entry
        self.busy = True
        self.tenants.arrive(entry, self.now)
        self.expiry.put(request.id, request.expires)

    def _on_cancelled(self, event: ev.Cancelled, out: list[AnyCommand]) -> None:
        entry = self._entry(event.id, "Cancelled")
        was = entry.state
        self._step(entry, "Cancelled")
        if was is State.WAITING:
            self.tenants.withdraw(entry, self.now)
            self._end(entry, Outcome.CANCELLED_WAITING, out)
        elif was is State.RETRYING:
            self._end(entry, Outcome.CANCELLED_RUNNING, out)
        elif was is State.RUNNING:
            out.append(Abort(seq=self.seq, time=self.now, id=event.id))

    def _on_evicted(self, event: ev.Evicted, out: list[AnyCommand]) -> None:
        self._reject(self._entry(event.id, "Evicted"), Outcome.REFUSED_QUEUE_FULL, out, "Evicted")

    def _on_slot_freed(self, event: ev.SlotFreed, out: list[AnyCommand]) -> None:
        entry = self._entry(event.id, "SlotFreed")
        self._step(entry, "SlotFreed")
        self._free(entry)

    def _on_attempt_failed(self, event: ev.AttemptFailed, out: list[AnyCommand]) -> None:
        entry = self._entry(event.id, "AttemptFailed")
        self._step(entry, "AttemptFailed")
        self._free_slot(entry)
        entry.failed = event.outcome
        self.retries[event.id] = entry
        self.expiry.put(event.id, entry.request.expires)

    def _on_finished(self, event: ev.Finished, out: list[AnyCommand]) -> None:
        entry = self._entry(event.id, "Finished")
        if entry.state is State.RUNNING:
            self._free(entry)
        self._step(entry, "Finished")
        request, estimate = entry.request, entry.estimate
        actual = self.estimator.actual(request, event.usage)
        self.settlement.finished(request.flow, actual - estimate.cost, entry.epoch, entry.contended)
        self.estimator.learn(request, event.usage, event.outcome in ENDS_BY_ITSELF)
        self._end(entry, event.outcome, out, event, actual)

    def _on_tick(self, event: ev.Tick, out: list[AnyCommand]) -> None:
        while (first := self.expiry.first()) and first[0] <= self.now:
            self._reject(self.jobs[first[1]], Outcome.EXPIRED, out)

    def _on_upstream_changed(self, event: ev.UpstreamChanged, out: list[AnyCommand]) -> None:
        was_lit = self.is_lit()
        upstream = self.upstreams.setdefault(event.upstream, Upstream(name=event.upstream, slots=event.slots))
        upstream.slots, upstream.healthy, upstream.draining = event.slots, event.healthy, event.draining
        if was_lit and not self.is_lit():
            self.dark_since = self.now

    def _on_upstream_removed(self, event: ev.UpstreamRemoved, out: list[AnyCommand]) -> None:
        was_lit = self.is_lit()
        upstream = self.upstreams[event.upstream]
        upstream.slots = 0  # which no other upstream has
        if not upstream.inflight:
            del self.upstreams[event.upstream]
        if was_lit and not self.is_lit():
            self.dark_since = self.now

    def _on_draining(self, event: ev.Draining, out: list[AnyCommand]) -> None:
        for entry in list(self.jobs.values()):
            if entry.state in (State.WAITING, State.RETRYING):
                self._reject(entry, Outcome.REFUSED_SHUTTING_DOWN, out)

    def _on_paused(self, event: ev.Paused, out: list[AnyCommand]) -> None:
        self.tenants.pause(event.tenant, True, self.now)

    def _on_resumed(self, event: ev.Resumed, out: list[AnyCommand]) -> None:
        self.tenants.pause(event.tenant, False, self.now)

    def _on_reconfigured(self, event: ev.Reconfigured, out: list[AnyCommand]) -> None:
        self.setup = msgspec.structs.replace(
            self.setup,
            flows=event.flows,
            default_flow=event.default_flow,
            wait_for_upstream=event.wait_for_upstream,
            cost=event.cost,
        )
        self.estimator.adopt(event.cost)
        self.tenants.reconfigure(self.setup, self.now)

    def _on_calibration(self, event: ev.CalibrationChanged, out: list[AnyCommand]) -> None:
        self.estimator.adopt(msgspec.structs.replace(self.estimator.model, alpha=event.alpha, beta=event.beta))

    def _on_record_only(self, event: ev.AnyEvent, out: list[AnyCommand]) -> None:
        """Recorded so that the ledger is complete; decides nothing."""

    # Dispatching
    def _fill(self, out: list[AnyCommand]) -> None:
        """Choose first, charge afterwards, until no slot is free or nobody is backlogged."""
        policy = self.policy
        while free := [upstream for upstream in self.upstreams.values() if upstream.free > 0]:
            decision = policy.select(self.now, ROOMY)
            if not isinstance(decision, Pick):
                if decision.plan is not None:
                    policy.commit(decision, self.now)
                return
            entry = self.jobs[decision.job.id]
            flow = entry.request.flow
            entry.why = decision.why
            entry.estimate = self.estimator.estimate(entry.request)
            entry.contended, entry.epoch = policy.contended(flow), self.settlement.epoch
            policy.commit(decision, self.now)
            entry.charge = self.settlement.charge(flow, entry.estimate.cost)
            policy.charge(entry.request, entry.charge, self.now)
            self.expiry.drop(entry.request.id)
            self.tenants.dispatched(entry, self.now)
            self._send(entry, free, out)

    def _retry(self, out: list[AnyCommand]) -> None:
        for entry in list(self.retries.values()):
            others = [u for u in self._usable() if u.name != entry.upstream] if entry.attempts < ATTEMPTS else []
            if not others:
                self._reject(entry, entry.failed, out)
            elif free := [upstream for upstream in others if upstream.free > 0]:
                del self.retries[entry.request.id]
                self.expiry.drop(entry.request.id)
                self._send(entry, free, out)

    def _send(self, entry: Entry, free: list[Upstream], out: list[AnyCommand]) -> None:
        request = entry.request
        self._step(entry, "Dispatch")
        upstream = self.placement.choose(request, free)
        upstream.inflight += 1
        self.placement.dispatched(request, upstream)
        entry.upstream = upstream.name
        entry.attempts += 1
        if entry.attempts == 1:
            entry.dispatched = self.now
        out.append(
            Dispatch(
                seq=self.seq,
                time=self.now,
                id=request.id,
                tenant=request.flow,
                upstream=upstream.name,
                estimate=entry.estimate.cost,
                charge=entry.charge if entry.attempts == 1 else 0,
                input_tokens=entry.estimate.input_tokens,
                output_tokens=entry.estimate.output_tokens,
                why=entry.why,
                contended=entry.contended,
                attempt=entry.attempts,
            )
        )

    def _free(self, entry: Entry) -> None:
        self._free_slot(entry)
        self.policy.stop(entry.request, self.now, Stop.FINISHED)
        self.tenants.left(entry, self.now)

    def _free_slot(self, entry: Entry) -> None:
        upstream = self.upstreams.get(entry.upstream)
        if upstream is not None:
            upstream.inflight -= 1
            self.placement.finished(entry.request, upstream)
            if not upstream.slots and not upstream.inflight:
                del self.upstreams[upstream.name]

    # Ending
    def _reject(self, entry: Entry, outcome: Outcome, out: list[AnyCommand], event: str = "Reject") -> None:
        was = entry.state
        self._step(entry, event)
        if was is State.WAITING:
            self.tenants.withdraw(entry, self.now)
        out.append(Reject(seq=self.seq, time=self.now, id=entry.request.id, outcome=outcome))
        self._end(entry, outcome, out)

    def _end(
        self,
        entry: Entry,
        outcome: Outcome,
        out: list[AnyCommand],
        finished: ev.Finished | None = None,
        actual: int = 0,
    ) -> None:
        request = entry.request
        del self.jobs[request.id]
        self.expiry.drop(request.id)
        if self.retries.pop(request.id, None) is not None:
            self.tenants.left(entry, self.now)
        usage = finished.usage if finished else Usage()
        tokens = usage.completion
        first = finished.first_byte if finished else 0
        last = finished.last_byte if finished else 0
        out.append(
            Ended(
                seq=self.seq,
                time=self.now,
                id=request.id,
                tenant=request.flow,
                outcome=outcome,
                upstream=entry.upstream,
                model=request.model,
                wait=(entry.dispatched if entry.attempts else self.now) - request.arrival,
                ttft=first - request.arrival if first else 0,
                tpot=(last - first) // (tokens - 1) if tokens > 1 and first else 0,
                total=self.now - request.arrival,
                estimate=entry.estimate.cost,
                charge=entry.charge,
                actual=actual,
                meter=entry.why.values.get("meter", 0),
                usage=usage,
                finish=finished.finish if finished else "",
                status=finished.status if finished else outcome.status,
                attempts=entry.attempts,
            )
        )

    # No upstream at all
    def _usable(self) -> Iterator[Upstream]:
        return (u for u in self.upstreams.values() if u.healthy and not u.draining and u.slots > 0)

    def is_lit(self) -> bool:
        return any(True for _ in self._usable())

    def _first_waiting(self) -> Entry | None:
        return next((entry for entry in self.jobs.values() if entry.state is State.WAITING), None)

    def _gives_up_at(self) -> int | None:
        if self.is_lit() or (first := self._first_waiting()) is None:
            return None
        return max(first.request.arrival, self.dark_since) + self.setup.wait_for_upstream

    def _give_up(self, out: list[AnyCommand]) -> None:
        while (at := self._gives_up_at()) is not None and at <= self.now:
            first = self._first_waiting()
            assert first is not None
            self._reject(first, Outcome.REFUSED_NO_UPSTREAM, out)

    # Transitions
    def _entry(self, id_: str, event: str) -> Entry:
        entry = self.jobs.get(id_)
        if entry is None:
            raise InvalidTransition(id_, "unknown", event, ("it has ended or never arrived",))
        return entry

    def _step(self, entry: Entry, event: str) -> None:
        state = LIFECYCLE[entry.state].get(event)
        if state is None:
            raise InvalidTransition(entry.request.id, entry.state, event, entry.story)
        entry.state = state
        entry.story.append(event)


HANDLERS: dict[type, Callable[[Scheduler, Any, list[AnyCommand]], None]] = {
    ev.Admitted: Scheduler._on_admitted,
    ev.Cancelled: Scheduler._on_cancelled,
    ev.Evicted: Scheduler._on_evicted,
    ev.SlotFreed: Scheduler._on_slot_freed,
    ev.AttemptFailed: Scheduler._on_attempt_failed,
    ev.Finished: Scheduler._on_finished,
    ev.Tick: Scheduler._on_tick,
    ev.UpstreamChanged: Scheduler._on_upstream_changed,
    ev.UpstreamRemoved: Scheduler._on_upstream_removed,
    ev.Draining: Scheduler._on_draining,
    ev.Paused: Scheduler._on_paused,
    ev.Resumed: Scheduler._on_resumed,
    ev.Reconfigured: Scheduler._on_reconfigured,
    ev.CalibrationChanged: Scheduler._on_calibration,
    ev.Refused: Scheduler._on_record_only,
    ev.RecordingGap: Scheduler._on_record_only,
}
