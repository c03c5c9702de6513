"""The tests of fairness and conformance can fail: each bad policy is caught, and by which of them is said here."""

from collections.abc import Callable

import pytest
from tests.bad import order, sfq
from tests.core.pool import Pool
from tests.core.traffic import Traffic, pairs

from fairq.core.errors import ValidationFailed
from fairq.core.policy import Policy
from fairq.policies.sfq import SFQ
from fairq.testing import check_policy


@pytest.mark.parametrize(
    ("factory", "complaint"),
    [
        (order.Lifo, "before .* of the same flow"),
        (order.Impure, "asked twice|select changes"),
        (order.Fickle, "asked twice"),
        (order.Lazy, "while jobs of .* do"),
        (order.ServesThePaused, "of a closed flow|is wrong"),
        (sfq.LosesTags, "another state|decides differently"),
    ],
)
def test_conformance_catches(factory: Callable[[], Policy], complaint: str) -> None:
    with pytest.raises((AssertionError, ValidationFailed), match=complaint):
        check_policy(factory, examples=2000, shrink=False)  # it stops at the first find: mostly after a few


def bounds_hold(policy: Policy, seed: int, busy: bool = False, steps: int = 3000) -> bool:
    """Under 3,000 random events, on two upstreams of one and two slots."""
    pool = Pool({"u1": 2, "u2": 1}, policy=policy, fair=True, validate=False)
    traffic = Traffic(pool, exact=True, busy=busy)
    try:
        for kind, number in pairs(seed, steps):
            traffic.play(kind, number)
    except AssertionError:
        return False
    return True


def test_the_good_one_keeps_the_bounds() -> None:
    assert all(bounds_hold(SFQ(), seed, busy) for seed in range(3) for busy in (False, True))


@pytest.mark.parametrize(
    "bad",
    [
        sfq.BanksIdleCredit,
        sfq.ChargesBeforeChoosing,
        sfq.ForgetsWeights,
        sfq.CarriesOver,
        sfq.Refunds,
        order.GreedyReverse,
        order.Starving,
    ],
)
def test_the_bounds_catch(bad: Callable[[], Policy]) -> None:
    assert not all(bounds_hold(bad(), seed, busy) for seed in range(3) for busy in (False, True))


def test_coming_back_one_at_a_time_wins_nothing_unless_debts_are_shed() -> None:
    """Checklist 11-8: the attacker never has two requests waiting; whenever one is over it sends the next, ten times as
    long as those of the honest tenant, which is always backlogged."""

    def charged(policy: Policy) -> tuple[int, int]:
        pool = Pool(slots=1, policy=policy, fair=False, validate=False)
        for _ in range(2000):
            pool.admit("honest", size=10)
        for _ in range(1000):
            if not pool.queues["attacker"]:
                pool.admit("attacker", size=100)
            pool.finish_all(1)
        return pool.charged["attacker"], pool.charged["honest"]

    attacker, honest = charged(SFQ())
    assert abs(attacker - honest) <= 2 * 100
    attacker, honest = charged(sfq.ShedsDebt())
    assert attacker > 9 * honest
