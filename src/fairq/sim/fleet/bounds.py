"""D²LPM's bounds (arXiv 2501.14312, theorems 5.1 and A.4), over a fleet that has run.

    d2lpm-gap   |W_f - W_g| over any interval in which f and g both have requests waiting, at the router or at
                an engine                                                            at most 2 |W| (U + Q)
    d2lpm-wait  service of others over any interval in which a client waits and is given nothing
                                                                          at most (n - 1) times that

with |W| engines, n clients, U = w_e * longest input + w_q * M, M the most tokens that one engine's batch holds, and Q
the larger of the quanta of the engines' DLPM and of the placement. Service is w_e * (input tokens that were computed),
at admission, and w_q for each output token, spread evenly between the first and the last. It is promised for engines
that preempt nobody, and a router that holds nobody back.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairq.core.placement import Placement
from fairq.core.policy import Policy
from fairq.placements.d2lpm import D2LPM
from fairq.policies.dlpm import DLPM
from fairq.policies.vtc import VTC
from fairq.sim.engine.bounds import MOST_PAIRED, Bound
from fairq.sim.engine.call import Call
from fairq.sim.engine.drift import INPUT, OUTPUT, Drift

NAMES = ("d2lpm-gap", "d2lpm-wait")


def bounds(
    calls: Sequence[Call],
    policy: Policy,
    placement: Placement,
    engines: int,
    pool_tokens: int,
    slots: int,
    preemptions: int,
) -> list[Bound]:
    """policy, placement, slots: of each engine; preemptions: of all."""
    if type(policy) is VTC and engines > 1:
        return [Bound("vtc-gap", None, None, None, unless="the theorem is about one engine")]
    if not isinstance(placement, D2LPM):
        return []
    clients = dict.fromkeys((call.job.flow for call in calls), 1.0)
    unless = (
        "the engines do not run dlpm"
        if not isinstance(policy, DLPM)
        else "the placement's quantum is endless"
        if not placement.quantum
        else "the router holds requests back (slots)"
        if slots
        else "an engine preempted somebody"
        if preemptions
        else f"more than {MOST_PAIRED} clients"
        if len(clients) > MOST_PAIRED
        else ""
    )
    if unless or not isinstance(policy, DLPM):
        return [Bound(name, None, None, None, unless) for name in NAMES]
    drift, longest = Drift(calls, clients), max((call.prompt for call in calls), default=0)
    unit = INPUT * longest + OUTPUT * pool_tokens
    gap = 2 * engines * (unit + max(placement.quantum, policy.quantum))
    wait = gap * (len(clients) - 1)
    return [
        Bound(NAMES[0], gap, drift.widest, drift.widest <= gap),
        Bound(NAMES[1], wait, drift.wait, drift.wait <= wait),
    ]
