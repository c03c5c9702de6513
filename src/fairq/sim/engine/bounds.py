"""The bounds of VTC and DLPM, watched while an engine runs: VTC's Lemma 4.3, theorems 4.4 and 4.9, DLPM's 4.1 and 4.2.

    spread   max - min of the counters of clients with queued requests            at most U
    gap      |W_f - W_g| over any interval in which f and g both have some        at most 2U; DLPM: 2(U + quantum)
    behind       W_g - W_f over any interval in which f has some, whatever g has    at most 4U; DLPM: 2(U + quantum)

W is normalized service by tokens. U = max(w_p * longest input, w_q * M) / least weight; for DLPM the sum of the two
instead of the larger, without weights. M is the most tokens that a running batch can hold: the pool, or, where blocks
are not reserved for whole answers, the most that the answers and prompts running together came to, if that is more:
two answers of 60 do not fit into 100 tokens at once, but one may end before the other grows. They hold for one engine
that preempts nobody and in which a head that does not fit waits.

Counters are linear in the service clock between two events, so whatever is largest is so at an event.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations

from msgspec import Struct

from fairq.core.number import Number
from fairq.policies.dlpm import DLPM
from fairq.policies.vtc import VTC
from fairq.sim.engine.batch import Batch

MOST_CLIENTS = 64  # whose counters are read at every event
MOST_PAIRED = 8  # of whom every pair is watched


class Bound(Struct, frozen=True, omit_defaults=True):
    """limit, worst  in weighted tokens; worst: the largest that was seen
    holds         None where its assumptions do not hold, and `unless` says which
    """

    name: str
    limit: float | None
    worst: float | None
    holds: bool | None
    unless: str = ""


class Watch:
    """Call it at every event, before and after admissions.

    read     a client's counter now: its service but for a constant, while it waits
    waiting  the clients with queued requests
    """

    def __init__(self, engine: Batch, policy: VTC | DLPM, clients: int) -> None:
        self.engine, self.policy = engine, policy
        self.read = policy.read
        self.waiting: Mapping[str, object] = policy.ranking if isinstance(policy, VTC) else policy.queued
        self.paired = clients <= MOST_PAIRED
        self.spread: Number = 0
        self.gap: Number = 0
        self.behind: Number = 0
        self.together = 0  # tokens of prompts and answers of a batch, at their ends
        self._apart: dict[tuple[str, str], tuple[Number, Number]] = {}  # of pairs that wait: least and most distance
        self._ahead: dict[tuple[str, str], Number] = {}  # of (f, g) while f waits: least that g was ahead of it
        self._lifted: dict[str, Number] = {}  # of a counter that which was not service
        if isinstance(policy, VTC):
            self._lift, policy.lift = policy.lift, self._note  # type: ignore[method-assign]

    def _note(self, flow: str, level: Number) -> None:
        before = self.read(flow)
        self._lift(flow, level)
        self._lifted[flow] = self._lifted.get(flow, 0) + self.read(flow) - before

    def __call__(self) -> None:
        self.together = max(self.together, sum(c.prompt + c.output for c in self.engine.members.values()))
        counters = {flow: self.read(flow) for flow in self.waiting}
        if len(counters) > 1:
            self.spread = max(self.spread, max(counters.values()) - min(counters.values()))
        if self.paired:
            apart = {}
            for pair in combinations(sorted(counters), 2):
                distance = counters[pair[0]] - counters[pair[1]]
                least, most = self._apart.get(pair, (distance, distance))
                apart[pair] = least, most = min(least, distance), max(most, distance)
                self.gap = max(self.gap, most - least)
            self._apart = apart
            self._look_behind()

    def _look_behind(self) -> None:
        policy = self.policy
        known = policy.counters if isinstance(policy, VTC) else policy.used
        served = {flow: self.read(flow) - self._lifted.get(flow, 0) for flow in known}
        least = {}
        for flow in self.waiting:
            own = served[flow]
            for other, service in served.items():
                ahead = service - own
                least[flow, other] = low = min(self._ahead.get((flow, other), ahead), ahead)
                self.behind = max(self.behind, ahead - low)
        self._ahead = least

    def bounds(self, parts: int, least_weight: Fraction, longest_input: int) -> list[Bound]:
        """parts: how many units of a counter one unit of cost is at weight 1."""
        policy, engine = self.policy, self.engine
        tokens = max(engine.limits.pool_tokens, self.together)
        inputs, outputs = policy.input * longest_input, policy.output * tokens
        if isinstance(policy, DLPM):
            most = 2.0 * (inputs + outputs + policy.quantum)
            found = [("dlpm-gap", most, self.gap), ("dlpm-behind", most, self.behind)] if self.paired else []
            parts, passed_over = 1, False  # it passes over heads itself, and takes no weights
        else:
            unit = float(max(inputs, outputs) / least_weight)
            found = [("vtc-spread", unit, self.spread)]
            if self.paired:
                found += [("vtc-gap", 2 * unit, self.gap), ("vtc-behind", 4 * unit, self.behind)]
            passed_over = engine.limits.head == "skip"
        if engine.preemptions or passed_over:
            unless = "a head that does not fit is passed over" if passed_over else "requests were preempted"
            return [Bound(name, None, None, None, unless) for name, _, _ in found]
        return [
            Bound(name, limit, float(Fraction(worst) / parts), worst <= limit * parts) for name, limit, worst in found
        ]


def watch(engine: Batch, clients: int) -> Watch | None:
    """Of a run whose policy keeps the bounds and whose clients are few enough to be read at every event."""
    policy = engine.policy
    if type(policy) is VTC:
        known = policy.cost == "weights" and clients <= MOST_CLIENTS
    else:
        known = type(policy) is DLPM and clients <= MOST_PAIRED
    if not known:
        return None
    assert isinstance(policy, (VTC, DLPM))
    engine.watch = found = Watch(engine, policy, clients)
    return found
