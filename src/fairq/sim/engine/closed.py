"""Requests that come only when another one has left: a client that sends one at a time, a conversation's next turn.

When they arrive is a result of the simulation. So calls are numbered as they arrive, for policies go by that order.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from heapq import heappush
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from fairq.sim.engine.batch import Batch
from fairq.sim.engine.call import Call
from fairq.sim.engine.jumping import Jumping
from fairq.sim.engine.stepping import Stepping

if TYPE_CHECKING:
    Mixin = Batch
else:
    # Compiled, a class with two bases of which neither adds attributes to a third takes the third's table of methods:
    # a mixin for engines must not be an engine itself.
    Mixin = object


class Follower(NamedTuple):
    """`call` arrives `think` nanoseconds after `leader` has left, however it ended."""

    call: Call
    leader: Call
    think: int


def without(calls: Iterable[Call], followers: Iterable[Follower]) -> list[Call]:
    """Those that arrive by themselves."""
    later = {one.call for one in followers}
    return [call for call in calls if call not in later]


class Closed(Mixin):
    followers: dict[Call, list[Follower]]
    arrived: int = 0

    def follow(self, followers: Iterable[Follower]) -> None:
        """To be called before `add`."""
        self.followers = {}
        for one in followers:
            self.followers.setdefault(one.leader, []).append(one)

    def add(self, calls: Iterable[Call]) -> None:
        self.coming.extend(calls)  # who will cancel is known by a number that is given at arrival

    def _arrive(self, call: Call) -> None:
        call.job = replace(call.job, seq=self.arrived, arrival=call.arrival)
        self.arrived += 1
        if call.cancel_at is not None:
            heappush(self.leaving, (max(call.cancel_at, call.arrival), call.job.seq))
        super()._arrive(call)
        if call.finish is not None:  # it did not get in
            self._let_follow(call)

    def _end(self, call: Call, reason: str) -> None:
        super()._end(call, reason)
        self._let_follow(call)

    def _let_follow(self, leader: Call) -> None:
        for one in self.followers.pop(leader, ()):
            call, patience = one.call, None
            if call.cancel_at is not None:
                patience = call.cancel_at - call.arrival
            call.arrival = max(leader.finish or 0, self.now) + one.think
            call.cancel_at = None if patience is None else call.arrival + patience
            insort(self.coming, call, key=lambda waiting: waiting.arrival)


class ClosedJumping(Closed, Jumping):
    """From event to event."""


class ClosedStepping(Closed, Stepping):
    """Iteration by iteration."""
