"""A router and its engines in one time.

An engine must not run past a moment at which the router might send it something. So always the one that is furthest
behind goes on, at most to the first request that leaves it; one with a free slot no further than the next arrival, and,
where a request that leaves another engine may bring one, than the other engines. What is dispatched while an iteration
runs is seen at its end, as in a real engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from msgspec.structs import replace

from fairq.core.errors import ConfigError
from fairq.core.placement import Placement, Upstream
from fairq.core.policy import ROOMY, Pick, Policy, Stop
from fairq.sim.engine.call import Call
from fairq.sim.engine.closed import Follower
from fairq.sim.engine.jumping import Jumping
from fairq.sim.fleet.prediction import Prediction

UNBOUNDED = 2**62  # slots


class Member(Jumping):
    """One engine. ended: who has left it since the router looked last; it waits for the router then."""

    upstream: Upstream
    ended: list[Call]

    def _arrive(self, call: Call) -> None:
        super()._arrive(call)
        if call.finish is not None:  # it was not let in
            self._left(call)

    def _end(self, call: Call, reason: str) -> None:
        super()._end(call, reason)
        self._left(call)

    def _left(self, call: Call) -> None:
        self.ended.append(call)
        self.paused = True

    @property
    def busy(self) -> bool:
        return bool(self.calls or self.coming or self.ended)

    def take(self, call: Call, now: int) -> None:
        if not self.busy:
            self.now = max(self.now, now)
        self.add((call,))


class Fleet:
    """dispatches  requests that the router has sent, in all and to each engine"""

    def __init__(
        self, members: Sequence[Member], router: Policy, placement: Placement, slots: int, prediction: Prediction
    ) -> None:
        self.members, self.router, self.placement, self.prediction = members, router, placement, prediction
        for number, member in enumerate(members):
            member.ended = []
            member.upstream = Upstream(f"e{number:0{len(str(len(members) - 1))}}", slots or UNBOUNDED)
        self.coming: list[tuple[int, int, Call]] = []  # (arrival, order, call)
        self.leaving: list[tuple[int, int, Call]] = []  # of those that wait here
        self.waiting: dict[str, Call] = {}  # by the id of their jobs
        self.followers: dict[Call, list[Follower]] = {}
        self.dispatches = self.arrived = self.order = 0
        self.sent = dict.fromkeys((member.upstream.name for member in members), 0)

    def run(self, calls: Iterable[Call], followers: Iterable[Follower]) -> None:
        """`calls`: those that arrive by themselves."""
        for one in followers:
            self.followers.setdefault(one.leader, []).append(one)
        for call in calls:
            self._expect(call)
        while (now := self._next()) is not None:
            happened = self._release(now)
            happened |= self._let_in(now)
            happened |= self._dispatch(now)
            if not happened:
                self._go_on(now)

    # Time
    def _next(self) -> int | None:
        """The earliest of: an engine's boundary, an arrival, somebody losing patience here."""
        times = [member.now for member in self.members if member.busy]
        times += [heap[0][0] for heap in (self.coming, self.leaving) if heap]
        return min(times, default=None)

    def _go_on(self, now: int) -> None:
        """The engine that is furthest behind."""
        member = min((one for one in self.members if one.busy), key=lambda one: one.now)
        member.let_in()
        if member.ended:  # somebody has cancelled, or was not let in
            return
        limits = [member.leaving[0][0]] if member.leaving else []
        if member.upstream.free > 0:  # a full one is sent nobody until somebody has left it
            limits += [heap[0][0] for heap in (self.coming, self.leaving) if heap]
            if self.followers or self.waiting:  # else what leaves the others sends nobody here
                limits += [one.now for one in self.members if one.busy and one is not member]
        until = max(min(limits), now + 1) if limits else None
        member.run(until)
        if member.now == now and not member.ended:  # its policy waits for a time that has not come
            if until is None:
                raise ConfigError("policy", member.policy.name, "waits forever")
            member.now = until

    # What happens at one instant, in this order
    def _release(self, now: int) -> bool:
        happened = False
        for member in self.members:
            if member.ended and member.now <= now:
                for call in member.ended:
                    member.upstream.inflight -= 1
                    self.placement.finished(replace(call.job, size=call.produced), member.upstream)
                    self.prediction.finished(call)
                    self.router.stop(call.job, now, Stop.FINISHED)
                    self._let_follow(call)
                member.ended, member.paused, happened = [], False, True
        return happened

    def _let_in(self, now: int) -> bool:
        happened = False
        while self.coming and self.coming[0][0] <= now:
            call = heappop(self.coming)[2]
            call.job = replace(call.job, seq=self.arrived, arrival=call.arrival, estimate=None)
            self.arrived += 1
            self.waiting[call.job.id] = call
            if call.cancel_at is not None:
                heappush(self.leaving, (max(call.cancel_at, call.arrival), self.arrived, call))
            self.router.arrive(call.job, now)
            happened = True
        while self.leaving and self.leaving[0][0] <= now:
            call, happened = heappop(self.leaving)[2], True
            if self.waiting.pop(call.job.id, None) is not None:
                self.router.cancel(call.job, now)
                call.finish, call.reason = now, "cancel"
                self._let_follow(call)
        return happened

    def _dispatch(self, now: int) -> bool:
        happened = False
        while self.waiting and (free := [one.upstream for one in self.members if one.upstream.free > 0]):
            decision = self.router.select(now, ROOMY)
            self.router.commit(decision, now)
            if not isinstance(decision, Pick):
                break
            job = decision.job
            upstream = self.placement.choose(job, free)
            self.placement.dispatched(job, upstream)
            self.router.charge(job, self.router.layer.cost(job), now)
            upstream.inflight += 1
            self._send(self.waiting.pop(job.id), upstream, now)
            happened = True
        return happened

    def _send(self, call: Call, upstream: Upstream, now: int) -> None:
        self.sent[upstream.name] += 1
        call.job = replace(call.job, seq=self.dispatches)  # an engine sees them in the order in which they are sent
        self.dispatches += 1
        next(one for one in self.members if one.upstream is upstream).take(call, now)

    # Requests that follow others
    def _expect(self, call: Call) -> None:
        heappush(self.coming, (call.arrival, self.order, call))
        self.order += 1

    def _let_follow(self, leader: Call) -> None:
        for one in self.followers.pop(leader, ()):
            patience = None if one.call.cancel_at is None else one.call.cancel_at - one.call.arrival
            one.call.arrival = (leader.finish or 0) + one.think
            one.call.cancel_at = None if patience is None else one.call.arrival + patience
            self._expect(one.call)
