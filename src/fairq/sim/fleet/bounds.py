"""D²LPM's bound (arXiv 2501.14312, theorem 5.1), over a fleet that has run.

Two clients that both have requests waiting throughout an interval, at the router or at an engine, get service that
differs by at most 2 |W| (U + Q), with |W| engines, U = w_e * longest input + w_q * M, M the most tokens that one
engine's batch holds, and Q the larger of the quanta of the engines' DLPM and of the placement. Service is
w_e * (input tokens that were computed), at admission, and w_q for each output token, spread evenly between the first
and the last. It is promised for engines that preempt nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

from fairq.sim.engine.bounds import Bound
from fairq.sim.engine.call import Call

MOST_CLIENTS = 8  # of whom every pair is watched
INPUT, OUTPUT = 1, 2


class Change(NamedTuple):
    """At `at`: requests that start (+1) or stop to wait, service at once, service per nanosecond from then on."""

    at: int
    client: str
    waits: int
    service: int
    rate: float


def changes(calls: Iterable[Call]) -> list[Change]:
    """In order of time; at one instant service comes before waiting ends, for it was given to one that waited."""
    found = []
    for call in calls:
        client, finish = call.job.flow, call.finish or call.arrival
        found.append(Change(call.arrival, client, 1, 0, 0.0))
        if call.admitted is None:
            found.append(Change(finish, client, -1, 0, 0.0))
            continue
        found.append(Change(call.admitted, client, 0, INPUT * (call.prompt - call.cached), 0.0))
        found.append(Change(call.admitted, client, -1, 0, 0.0))
        if call.first is not None:
            found.append(Change(call.first, client, 0, OUTPUT, 0.0))
            if finish > call.first and call.produced > 1:
                rate = OUTPUT * (call.produced - 1) / (finish - call.first)
                found += [Change(call.first, client, 0, 0, rate), Change(finish, client, 0, 0, -rate)]
    return sorted(found, key=lambda one: (one.at, abs(one.waits)))


def widest_gap(calls: Sequence[Call]) -> float | None:
    """The largest |W_f - W_g| over any interval in which f and g both wait; None for more clients than are watched."""
    clients = sorted({call.job.flow for call in calls})
    if len(clients) > MOST_CLIENTS:
        return None
    service, rate, waits = dict.fromkeys(clients, 0.0), dict.fromkeys(clients, 0.0), dict.fromkeys(clients, 0)
    apart: dict[tuple[str, str], tuple[float, float]] = {}
    now, widest = 0, 0.0

    def look() -> None:
        nonlocal widest
        for pair in combinations(clients, 2):
            if waits[pair[0]] and waits[pair[1]]:
                distance = service[pair[0]] - service[pair[1]]
                low, high = apart.get(pair, (distance, distance))
                apart[pair] = low, high = min(low, distance), max(high, distance)
                widest = max(widest, high - low)
            else:
                apart.pop(pair, None)

    for change in changes(calls):
        if change.at > now:
            for client in clients:
                service[client] += rate[client] * (change.at - now)
            now = change.at
            look()
        service[change.client] += change.service
        rate[change.client] += change.rate
        if change.service:
            look()
        waits[change.client] += change.waits
        look()
    return widest


def d2lpm_bound(calls: Sequence[Call], engines: int, pool_tokens: int, quantum: int, preemptions: int) -> Bound:
    """`quantum`: the larger of both."""
    longest = max((call.prompt for call in calls), default=0)
    limit = 2 * engines * (INPUT * longest + OUTPUT * pool_tokens + quantum)
    worst = widest_gap(calls)
    if worst is None:
        return Bound("d2lpm gap", limit, None, None, unless=f"more than {MOST_CLIENTS} clients")
    if preemptions:
        return Bound("d2lpm gap", limit, worst, None, unless="an engine preempted somebody")
    return Bound("d2lpm gap", limit, worst, worst <= limit)
