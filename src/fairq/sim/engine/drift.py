"""How far the service of clients that wait drifts apart, told by the requests alone, whatever served them.

A request that was admitted has been given its prompt then, and its answer evenly from the first token to the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fairq.sim.engine.call import Call

INPUT, OUTPUT = 1, 2  # what tokens cost


class Change(NamedTuple):
    """At `at`: requests that start (+1) or stop (-1) to wait, service at once, service per nanosecond from then on."""

    at: int
    client: str
    waits: int
    service: float
    rate: float


def changes(calls: Iterable[Call], cached: bool = True) -> list[Change]:
    """In order of time; at one instant service comes before waiting ends, for it was given to one that waited.

    cached: tokens of a prompt that were in the prefix cache cost nothing
    """
    found = []
    for call in calls:
        client, finish = call.job.flow, call.finish or call.arrival
        found.append(Change(call.arrival, client, 1, 0, 0.0))
        if call.admitted is None:
            found.append(Change(finish, client, -1, 0, 0.0))
            continue
        found.append(Change(call.admitted, client, 0, INPUT * (call.prompt - call.cached * cached), 0.0))
        found.append(Change(call.admitted, client, -1, 0, 0.0))
        if call.first is not None:
            found.append(Change(call.first, client, 0, OUTPUT, 0.0))
            if finish > call.first and call.produced > 1:
                rate = OUTPUT * (call.produced - 1) / (finish - call.first)
                found += [Change(call.first, client, 0, 0, rate), Change(finish, client, 0, 0, -rate)]
    return sorted(found, key=lambda one: (one.at, abs(one.waits)))


class Drift:
    """widest  the largest |W_f - W_g| over any interval in which f and g both wait
    wait    the most that others were given over any interval in which f waits and is given nothing
    seen    as `widest`, over the intervals that go on at each of `times`

    calls    of all these clients
    weights  service is divided by them
    times    ns, ascending
    """

    def __init__(
        self, calls: Iterable[Call], weights: Mapping[str, float], times: Sequence[int] = (), cached: bool = True
    ) -> None:
        self.widest = self.wait = 0.0
        self.seen: list[float] = []
        self._weights = weights
        self._service, self._rate = dict.fromkeys(weights, 0.0), dict.fromkeys(weights, 0.0)
        self._at, self._waits = dict.fromkeys(weights, 0), dict.fromkeys(weights, 0)
        self._apart: dict[tuple[str, str], tuple[float, float]] = {}  # of pairs that wait: least and most distance
        self._total, self._total_rate, self._total_at = 0.0, 0.0, 0
        self._since: dict[str, float] = {}  # client that is given nothing -> what others had been given when that began
        next_ = 0
        for change in changes(calls, cached):
            while next_ < len(times) and times[next_] < change.at:
                self._sample(times[next_])
                next_ += 1
            self._apply(change)
        for time in times[next_:]:
            self._sample(time)

    def _read(self, client: str, now: int) -> float:
        return self._service[client] + self._rate[client] * (now - self._at[client])

    def _apply(self, change: Change) -> None:
        """A distance changes its course when one of the two does, so it is largest or least then."""
        client, now, before = change.client, change.at, self._waits[change.client]
        if before:
            self._look(client, now)
        self._wait(client, now)
        weight = self._weights[client]
        self._service[client] = self._read(client, now) + change.service / weight
        self._at[client] = now
        self._rate[client] += change.rate / weight
        self._total += self._total_rate * (now - self._total_at) + change.service / weight
        self._total_rate += change.rate / weight
        self._total_at = now
        waits = self._waits[client] = before + change.waits
        if waits and (change.service or not before):
            self._look(client, now)
        elif before and not waits:
            for other in self._weights:
                self._apart.pop((min(client, other), max(client, other)), None)
        if waits and self._rate[client] < 1e-12:
            self._since[client] = self._total - self._service[client]

    def _wait(self, client: str, now: int) -> None:
        since = self._since.pop(client, None)
        if since is not None:
            total = self._total + self._total_rate * (now - self._total_at)
            self.wait = max(self.wait, total - self._read(client, now) - since)

    def _look(self, client: str, now: int) -> None:
        own = self._read(client, now)
        for other, waits in self._waits.items():
            if not waits or other == client:
                continue
            distance = own - self._read(other, now)
            pair = (client, other) if client < other else (other, client)
            if client > other:
                distance = -distance
            low, high = self._apart.get(pair, (distance, distance))
            if distance < low:
                low = distance
            elif distance > high:
                high = distance
            self._apart[pair] = low, high
            if high - low > self.widest:
                self.widest = high - low

    def _sample(self, now: int) -> None:
        widest = 0.0
        for (one, other), (low, high) in self._apart.items():
            distance = self._read(one, now) - self._read(other, now)
            widest = max(widest, high - low, distance - low, high - distance)
        self.seen.append(widest)
