"""Every order of up to five events (eight in the slow run), for three tenants on two upstreams of one slot each.

States that differ in names and times only are one state. After each event the pool checks the band, the pairwise bound,
FIFO, work conservation, the books of scheduler and policy, and that nothing ends twice.
"""

from collections.abc import Hashable
from fractions import Fraction

import pytest
from tests.core.pool import Pool

from fairq.core import events as ev
from fairq.core.cost import CostModel, Usage
from fairq.core.estimator import Estimator
from fairq.core.job import Flow, Request
from fairq.core.lifecycle import Outcome
from fairq.core.settlement import Forward
from fairq.policies.sfq import SFQ

COSTS = {"A": 1, "B": 2, "C": 4}
Move = tuple[str, str | int]


def begin(settlement: str) -> Pool:
    cost = CostModel(alpha=Fraction(0), beta=Fraction(1), default_output=3)
    flows = [Flow(id="A"), Flow(id="B", weight=Fraction(2)), Flow(id="C", max_inflight=1)]
    pool = Pool({"u1": 1, "u2": 1}, validate=False, settlement=settlement, flows=flows, cost=cost)
    pool.scheduler.estimator = LearnsNothing(cost)  # else no state would ever come back
    return pool


class LearnsNothing(Estimator):
    def learn(self, request: Request, usage: Usage, natural_end: bool) -> None: ...


def moves(pool: Pool) -> list[Move]:
    """All that may happen now. Arrivals stop at four waiting requests."""
    can: list[Move] = [("pause", "A") if "A" not in pool.paused else ("resume", "A")]
    if len(pool.waiting) < 4:
        can += [("arrive", tenant) for tenant in COSTS]
    can += [("cancel", tenant) for tenant in COSTS if pool.queues.get(tenant)]
    can += [(what, n) for n in range(len(pool.running)) for what in ("finish", "overrun", "fail", "leave")]
    can += [("give up", n) for n in range(len(pool.retrying))]
    return can


def make(pool: Pool, move: Move) -> None:
    what, which = move
    running = list(pool.running)
    match what, which:
        case "pause", str():
            pool.send(ev.Paused, tenant=which)
        case "resume", str():
            pool.send(ev.Resumed, tenant=which)
        case "arrive", str() if pool.setup.settlement == "fixed":
            pool.admit(which, size=COSTS[which])
        case "arrive", str():
            pool.admit(which)
        case "cancel", str():
            pool.send(ev.Cancelled, id=next(iter(pool.queues[which])))
        case "finish", int():
            pool.finish(running[which], 1)
        case "overrun", int():
            pool.finish(running[which], 9)
        case "fail", int():
            pool.send(ev.AttemptFailed, id=running[which], outcome=Outcome.FAILED_CONNECT)
        case "leave", int():
            pool.send(ev.Cancelled, id=running[which])
        case "give up", int():
            pool.send(ev.Cancelled, id=list(pool.retrying)[which])
        case _:
            raise AssertionError(move)


def after(path: list[Move], settlement: str) -> Pool:
    """Played again from the start: that is faster than copying a pool."""
    pool = begin(settlement)
    for move in path:
        make(pool, move)
    return pool


def shape(pool: Pool) -> Hashable:
    """What the future depends on, and what is left to be checked, without names, times and constants added to tags."""
    scheduler, policy = pool.scheduler, pool.scheduler.policy
    assert isinstance(policy, SFQ)
    entries = scheduler.jobs
    epoch = scheduler.settlement.epoch
    return (
        tuple(request.flow for request in pool.waiting.values()),
        tuple(
            (one.request.flow, one.state, one.upstream, one.attempts, one.gone, one.contended, one.epoch == epoch)
            for one in entries.values()
        ),
        tuple(entries[id_].request.flow for id_ in pool.retrying),
        tuple(max(policy.meters.get(name, policy.origin) - policy.virtual_time, 0) for name in COSTS),
        tuple(scheduler.settlement.carry.items()) if isinstance(scheduler.settlement, Forward) else (),
        tuple(sorted(pool.paused)),
        pool.largest,
        tuple(sorted((pair, tuple(three)) for pair, three in pool.joint._pairs.items())),
    )


@pytest.mark.parametrize(
    ("settlement", "depth"),
    [
        ("fixed", 5),
        ("forward", 5),
        pytest.param("fixed", 7, marks=pytest.mark.slow),
        pytest.param("forward", 7, marks=pytest.mark.slow),
    ],
)
def test_every_order_of_events_keeps_every_promise(settlement: str, depth: int) -> None:
    level: list[list[Move]] = [[]]
    seen: set[Hashable] = set()
    for _ in range(depth):
        following = []
        for path in level:
            for move in moves(after(path, settlement)):
                pool = after(path, settlement)
                pool.validate = True
                make(pool, move)
                state = shape(pool)
                if state not in seen:
                    seen.add(state)
                    following.append([*path, move])
        level = following
    assert len(seen) > 3**depth  # 9,554 states for "fixed" at depth 6
