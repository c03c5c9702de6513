"""What the theorems on VTC and DLPM speak of, measured while an engine runs."""

from __future__ import annotations

from collections.abc import Sequence

from fairq.core.counter import Counter
from fairq.core.number import Number
from fairq.core.tokens import TokenCost
from fairq.policies.dlpm import DLPM
from fairq.policies.vtc import VTC
from fairq.sim.engine.batch import Batch
from fairq.sim.engine.call import Call
from fairq.sim.engine.observer import Observer
from fairq.sim.engine.pairs import Pairs, Spread


class Quotas:
    """high, low  of the quotas of DLPM's clients: the largest and the least

    A quota only falls between two refills, so it is read when a refill has raised it, less the refill and with it.
    """

    def __init__(self, policy: DLPM) -> None:
        self.policy = policy
        self.high = self.low = 0
        self._refills: dict[str, int] = {}  # quanta that each had been given when it was looked at

    def look_at(self, client: str) -> None:
        policy = self.policy
        quanta, before = policy.refills[client], self._refills.get(client, 0)
        used = policy.read(client)
        self.low = min(self.low, before * policy.quantum - used)
        if quanta != before:
            self._refills[client] = quanta
            self.high = max(self.high, quanta * policy.quantum - used)

    def look(self) -> None:
        for client, quanta in self.policy.refills.items():
            if quanta != self._refills.get(client, 0):
                self.look_at(client)


class Watch(Observer):
    """names     of the clients whose pairs are watched
    together  tokens of the prompts and answers of a batch, at their ends: the most
    costs     what they cost, likewise, where that is not so much per token
    wait      what others were given while one of whom nothing ran waited for its first admission: the most
    """

    def __init__(self, engine: Batch, policy: VTC | DLPM, names: Sequence[str]) -> None:
        self.engine, self.policy = engine, policy
        self.pairs = Pairs(names)
        self._place = self.pairs.place
        self._counters: list[Counter | None] = [None] * len(names)
        self._lifted: list[Number] = [0] * len(names)  # of a counter, that which was not service
        self.spread = Spread(policy) if isinstance(policy, VTC) else None
        self.quotas = Quotas(policy) if isinstance(policy, DLPM) else None
        self.h = policy.h if isinstance(policy, VTC) else TokenCost(0, policy.input, policy.output)
        self.together = self.costs = 0
        self._general = isinstance(policy, VTC) and policy.cost != "weights"
        self.wait: Number = 0
        self._tokens = self._cost = 0  # of the batch now
        self._queued: dict[str, int] = {}
        self._inside: dict[str, int] = {}  # requests in the batch
        self._total = Counter()  # service of all
        self._since: dict[str, Number] = {}  # client of whom nothing runs -> what all had been given when it came
        self._before: Number = 0
        self._paid: dict[int, Number] = {}  # service before this plan, of those who were admitted in it
        self._left: list[int] = []  # those who have nobody waiting after this plan
        self._changed: dict[int, None] = {}
        self._rose: dict[str, None] = {}  # those whose counter may have come farther above the others'

    def _service(self, at: int) -> Number:
        """Of one who is watched, until now: what its counter is but for lifts."""
        counter = self._counters[at]
        return 0 if counter is None else counter.read(self.engine.clock) - self._lifted[at]

    def values(self) -> list[Number]:
        """The service of all who are watched."""
        clock, each = self.engine.clock, zip(self._counters, self._lifted, strict=True)
        return [0 if counter is None else counter.read(clock) - lifted for counter, lifted in each]

    def _unit(self, client: str) -> Number:
        """What a cost of 1 is at its weight."""
        return self.policy.counters[client].unit if isinstance(self.policy, VTC) else 1

    def _grow(self, call: Call, way: int) -> None:
        """What all are given grows with this one's tokens from now on (way 1), or no longer (-1)."""
        total, h = self._total, self.h
        total.settle(self.engine.clock)
        unit = int(self._unit(call.job.flow)) * way
        total.speed += unit * (h.output + h.cross * call.prompt + 2 * h.square * call.produced)
        total.bend += unit * h.square

    # What happens
    def arrives(self, call: Call) -> None:
        if isinstance(self.policy, VTC):
            self._before = self.policy.read(call.job.flow)

    def arrived(self, call: Call) -> None:
        client = call.job.flow
        queued = self._queued[client] = self._queued.get(client, 0) + 1
        if queued > 1:
            return
        at = self._place.get(client)
        if at is not None:
            policy = self.policy
            if isinstance(policy, VTC):
                self._counters[at] = policy.counters[client]
                self._lifted[at] += policy.read(client) - self._before
            else:
                self._counters[at] = policy.used[client]
            self.pairs.begin(at, self.values())
        self._rose[client] = None
        if not self._inside.get(client):
            self._since[client] = self._total.read(self.engine.clock)

    def abandoned(self, call: Call) -> None:
        client = call.job.flow
        self._queued[client] -= 1
        if not self._queued[client]:
            self._waited(client)
            if (at := self._place.get(client)) is not None:
                self.pairs.look((at,), self.values())
                self.pairs.end(at)

    def admitted(self, call: Call) -> None:
        client = call.job.flow
        self._waited(client)
        self._queued[client] -= 1
        self._inside[client] = self._inside.get(client, 0) + 1
        if self.quotas is not None:
            self.quotas.look_at(client)
        self._rose[client] = None
        if (at := self._place.get(client)) is not None:
            if at not in self._paid:
                self._paid[at] = self._service(at)
            if not self._queued[client]:
                self._left.append(at)
        charged = call.prompt - call.cached if self.quotas is not None else call.prompt
        self._total.value += self._unit(client) * self.h.admission(charged)
        self._tokens += call.prompt + call.output
        if self._tokens > self.together:
            self.together = self._tokens
        if self._general:
            self._cost += self._whole(call)
            self.costs = max(self.costs, self._cost)

    def started(self, call: Call, given: int) -> None:
        client = call.job.flow
        self._grow(call, 1)
        self._total.value += self._unit(client) * self.h.tokens(call.prompt, 0, given)
        self._rose[client] = None
        if (at := self._place.get(client)) is not None:
            self._changed[at] = None

    def stopped(self, call: Call) -> None:
        client = call.job.flow
        self._inside[client] -= 1
        if call.produced:
            self._grow(call, -1)
        if self._queued[client] and not self._inside[client]:  # those that came meanwhile wait alone from now on
            self._since[client] = self._total.read(self.engine.clock)
        self._tokens -= call.prompt + call.output
        if self._general:
            self._cost -= self._whole(call)
        if (at := self._place.get(client)) is not None:
            self._changed[at] = None
        if self.quotas is not None:
            self.quotas.look_at(client)

    def look(self) -> None:
        if self._changed or self._paid:
            pairs, values = self.pairs, self.values()
            pairs.look(self._changed, values)
            if self._paid:
                before = values.copy()
                for at, service in self._paid.items():
                    before[at] = service
                pairs.look(self._paid, before)
                for at in self._left:
                    pairs.end(at)
                pairs.look(self._paid, values)
                self._paid, self._left = {}, []
            self._changed = {}
        spread = self.spread
        if spread is not None:
            if self._rose or (spread.due and spread.due[0][0] <= self.engine.clock):
                spread.look(self._rose, self.engine.clock)
                self._rose = {}
        elif self.quotas is not None and self.engine.queued:
            self.quotas.look()

    def _whole(self, call: Call) -> int:
        """What it costs in the end."""
        return self.h.admission(call.prompt) + self.h.tokens(call.prompt, 0, call.output)

    def _waited(self, client: str) -> None:
        since = self._since.pop(client, None)
        if since is not None:
            self.wait = max(self.wait, self._total.read(self.engine.clock) - since)
