"""The bounds of VTC and DLPM, watched while an engine runs.

    vtc-spread    max - min of the counters of clients with queued requests (lemma 4.3)              at most U
    vtc-gap       |W_f - W_g| over any interval in which f and g both have some (theorem 4.4)        at most 2U
    vtc-behind    W_g - W_f over any interval in which f has some, whatever g has (theorem 4.9)      at most 4U
    vtc-wait      service of others while a client of whom nothing runs waits to be dispatched       4(n - 1)U
    dlpm-quota    the largest quota (lemma A.1)                                                      at most Q
    dlpm-debt     the least one, below 0 (lemma A.1)                                                 less than U
    dlpm-gap, dlpm-behind   as above (theorems 4.1 and 4.2)                                          2(U + Q)
    dlpm-wait     as above (theorem A.2)                                                             2(n - 1)(U + Q)

W is normalized service, n the number of clients. U = max(w_p * longest input, w_q * M) / least weight; for DLPM the sum
of the two, without weights. M is the most tokens that a running batch can hold: the pool, or, where blocks are not
reserved for whole answers, the most that the answers and prompts running together came to, if that is more: two answers
of 60 do not fit into 100 tokens at once, but one may end before the other grows. Where tokens have a general cost h, U
is the most that the requests of one batch cost in the end: a client's counter was the least when its last request was
admitted, and can rise by no more since. The last of each is the one before it, added up over the others, for a time in
which f is given nothing; divided by the least service rate it is the theorem's time.

They hold for one engine that preempts nobody and in which a head that does not fit waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from msgspec import Struct

from fairq.core.number import Number
from fairq.policies.dlpm import DLPM
from fairq.policies.vtc import VTC
from fairq.sim.engine.batch import Batch
from fairq.sim.engine.call import Call
from fairq.sim.engine.watch import Watch

MOST_PAIRED = 32  # clients of whom every pair is watched; of more, those that ask for most


class Bound(Struct, frozen=True, omit_defaults=True):
    """limit, worst  in weighted tokens; worst: the largest that was seen
    holds         None where its assumptions do not hold, and `unless` says which
    among         how many clients were watched, where not all were
    """

    name: str
    limit: float | None
    worst: float | None
    holds: bool | None
    unless: str = ""
    among: int | None = None


def watch(engine: Batch, calls: Iterable[Call], clients: Mapping[str, object]) -> Watch | None:
    """Of a run whose policy has bounds. calls: those that will come; clients: of whom."""
    policy = engine.policy
    if type(policy) is not VTC and type(policy) is not DLPM:
        return None
    assert isinstance(policy, (VTC, DLPM))
    names = sorted(clients)
    if len(names) > MOST_PAIRED:
        asked = dict.fromkeys(names, 0)
        for call in calls:
            asked[call.job.flow] += call.prompt + 2 * call.output
        names = sorted(names, key=lambda name: (-asked[name], name))[:MOST_PAIRED]
    engine.observer = found = Watch(engine, policy, names)
    return found


def bounds(watched: Watch, parts: int, weights: Mapping[str, Fraction], longest_input: int) -> list[Bound]:
    """What was seen beside the limits. parts: how many units of a counter one unit of cost is at weight 1."""
    policy, engine, pairs, others = watched.policy, watched.engine, watched.pairs, len(weights) - 1
    most = max(engine.limits.pool_tokens, watched.together)
    among = len(pairs.place) if len(pairs.place) <= others else None
    found: list[tuple[str, Number, Number]]
    if isinstance(policy, DLPM):
        parts, passed_over = 1, False  # it passes over heads itself, and takes no weights
        unit: Number = policy.input * longest_input + policy.output * most
        both = 2 * (unit + policy.quantum)
        assert watched.quotas is not None
        found = [
            ("dlpm-gap", both, pairs.gap),
            ("dlpm-behind", both, pairs.behind),
            ("dlpm-wait", others * both, watched.wait),
            ("dlpm-quota", policy.quantum, watched.quotas.high),
            ("dlpm-debt", unit - 1, -watched.quotas.low),
        ]
    else:
        parts *= policy.h.scale
        passed_over = engine.limits.head == "skip"
        if policy.cost == "weights":
            inputs, outputs = policy.input * longest_input, policy.output * most
            # The last is what a batch can cost, should input cost more than output.
            unit = max(inputs, outputs, inputs + policy.output * (most - longest_input))
        else:
            unit = Fraction(watched.costs, policy.h.scale)
        unit = Fraction(unit) / min(weights.values())
        assert watched.spread is not None
        found = [
            ("vtc-spread", unit, watched.spread.worst),
            ("vtc-gap", 2 * unit, pairs.gap),
            ("vtc-behind", 4 * unit, pairs.behind),
            ("vtc-wait", 4 * others * unit, watched.wait),
        ]
    if engine.preemptions or passed_over:
        unless = "a head that does not fit is passed over" if passed_over else "requests were preempted"
        return [Bound(name, None, None, None, unless) for name, _, _ in found]
    return [
        Bound(
            *(name, float(limit), float(Fraction(worst) / parts), worst <= limit * parts),
            among=among if name.endswith(("-gap", "-behind")) else None,
        )
        for name, limit, worst in found
    ]
