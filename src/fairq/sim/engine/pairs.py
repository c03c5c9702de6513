"""How far the service of clients drifts apart, exactly, without reading everybody at every event.

Between two changes of its course a client's service grows evenly with the service clock. So what is largest or least
of two clients' difference is so when one of them changes: begins or ends to wait, is admitted, starts or stops to get
tokens. Only then its pairs are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from math import isqrt

from fairq.core.counting import Counting
from fairq.core.number import Number


class Pairs:
    """gap     the largest |W_f - W_g| over any interval in which f and g both have requests waiting
    behind  the largest W_g - W_f over any interval in which f has, whatever g has

    names  of the clients that are watched, by whose places the rest goes
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.place = {name: index for index, name in enumerate(names)}
        self.waits = [False] * len(names)
        self.gap: Number = 0
        self.behind: Number = 0
        # [f][g]: the least that g was ahead of f, since f waits; and since both do
        self._alone: list[list[Number]] = [[0] * len(names) for _ in names]
        self._both: list[list[Number]] = [[0] * len(names) for _ in names]

    def begin(self, at: int, values: Sequence[Number]) -> None:
        """It has a request waiting from now on. values: everybody's service until now"""
        own = values[at]
        for other, service in enumerate(values):
            self._alone[at][other] = service - own
            if self.waits[other]:
                self._both[at][other], self._both[other][at] = service - own, own - service
        self.waits[at] = True

    def end(self, at: int) -> None:
        """It has none any more."""
        self.waits[at] = False

    def look(self, changed: Iterable[int], values: Sequence[Number]) -> None:
        """At those who change their course now."""
        waits = self.waits
        for at in changed:
            own, own_waits = values[at], waits[at]
            alone, both = self._alone[at], self._both[at]
            for other, service in enumerate(values):
                if other == at:
                    continue
                ahead = service - own
                if own_waits:
                    if ahead < alone[other]:
                        alone[other] = ahead
                    elif ahead - alone[other] > self.behind:
                        self.behind = ahead - alone[other]
                if not waits[other]:
                    continue
                theirs = self._alone[other]
                if -ahead < theirs[at]:
                    theirs[at] = -ahead
                elif -ahead - theirs[at] > self.behind:
                    self.behind = -ahead - theirs[at]
                if own_waits:
                    back = self._both[other]
                    if ahead < both[other]:
                        both[other] = ahead
                    elif ahead - both[other] > self.gap:
                        self.gap = ahead - both[other]
                    if -ahead < back[at]:
                        back[at] = -ahead
                    elif -ahead - back[at] > self.gap:
                        self.gap = -ahead - back[at]


class Spread:
    """worst  the largest max - min of the counters of clients with requests waiting, however many there are

    The least counter of those who wait never falls while anybody does. So one whose counter stands so far above it
    cannot make a new worst before it has grown by what is missing, and is not looked at until then: it is `due`.
    """

    def __init__(self, policy: Counting) -> None:
        self.policy = policy
        self.worst: Number = 0
        self.due: list[tuple[int, str]] = []  # (clock, client) at which it may make a new worst

    def look(self, changed: Iterable[str], clock: int) -> None:
        """changed: who joined, was admitted or started since."""
        due = self.due
        for name in changed:
            self._look_at(name, clock)
        while due and due[0][0] <= clock:
            self._look_at(heappop(due)[1], clock)

    def _look_at(self, name: str, clock: int) -> None:
        policy = self.policy
        if name not in policy.ranking or (first := policy.first()) is None:
            return
        counter = policy.counters[name]
        spread = counter.read(clock) - first[0]
        if spread > self.worst:
            self.worst = spread
        if not counter.speed:
            return
        unit, missing = counter.unit, self.worst - spread
        speed, bend = counter.speed + 2 * counter.bend * (clock - counter.at), counter.bend
        ticks = int(missing // (unit * speed))
        if bend:  # half of what is missing by its speed, half by its bend: not too late
            ticks = min(ticks // 2, isqrt(int(missing // (2 * unit * bend))))
        heappush(self.due, (clock + ticks + 1, name))
