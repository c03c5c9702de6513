"""What becomes of wrong estimates: `fixed` learns for the future, `forward` also makes up for the past."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.engine import Slots
from tests.core.pool import SECOND, TOKENS, Pool

from fairq.core import events as ev
from fairq.core.cost import CostModel, Source, Usage
from fairq.core.estimator import Estimator
from fairq.core.job import Flow, Request
from fairq.core.lifecycle import Outcome
from fairq.core.settlement import Forward
from fairq.policies.sfq import SFQ

OUTPUTS: dict[str, Callable[[int], int]] = {
    "ten times what is predicted": lambda n: 1000,
    "alternating 1 and 4,000": lambda n: (1, 4000)[n % 2],
    "honest": lambda n: 100,
    "longer and honest": lambda n: 500,
}


@pytest.mark.parametrize("honest", ["honest", "longer and honest"])
@pytest.mark.parametrize("strange", ["ten times what is predicted", "alternating 1 and 4,000"])
@pytest.mark.parametrize(("settlement", "margin"), [("forward", 0.01), ("fixed", 0.05)])
def test_actual_service_is_equal_though_estimates_are_wrong_by_a_factor(
    strange: str, honest: str, settlement: str, margin: float
) -> None:
    """B-9: 8 slots, both backlogged until each has had 200 requests. Predicted is 100 for all, at first."""
    slots = Slots({"S": OUTPUTS[strange], "H": OUTPUTS[honest]}, 4200, settlement=settlement)
    while min(Counter(record.tenant for record in slots.pool.ended.values())[name] for name in "SH") < 200:
        assert slots.all_backlogged()
        for _ in range(100):
            slots.step()
    assert abs(slots.got("S") / slots.got("H") - 1) < margin


def test_actual_service_follows_the_weights_under_forward() -> None:
    outputs = {"S": OUTPUTS["alternating 1 and 4,000"], "H": OUTPUTS["longer and honest"]}
    slots = Slots(outputs, 1500, weights={"S": 1, "H": 3}, settlement="forward")
    for _ in range(1200):
        slots.step()
    assert slots.all_backlogged()
    assert abs(slots.got("H") / slots.got("S") / 3 - 1) < 0.05


lengths = st.lists(st.sampled_from([1, 2, 10, 99, 100, 101, 1000, 4000]), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(
    a=lengths,
    b=lengths,
    slots=st.integers(1, 8),
    weights=st.tuples(*[st.sampled_from([Fraction(1), Fraction(2), Fraction(1, 3)])] * 2),
)
def test_actual_service_stays_within_the_bound_of_forward(
    a: list[int], b: list[int], slots: int, weights: tuple[Fraction, Fraction]
) -> None:
    """2 qmax + D (e + 2c) (1/w_i + 1/w_j), after every event, however the outputs cycle."""
    engine = Slots(
        {"A": lambda n: a[n % len(a)], "B": lambda n: b[n % len(b)]},
        requests=40,
        slots=slots,
        weights=dict(zip("AB", weights, strict=True)),
        settlement="forward",
    )
    largest = Fraction(0)
    while engine.all_backlogged():
        largest = max(
            largest, *(Fraction(one.charge) / engine.pool.flow(one.tenant).weight for one in engine.pool.orders)
        )
        error = engine.largest_underestimate + 2 * engine.largest_estimate
        limit = 2 * largest + slots * error * (1 / weights[0] + 1 / weights[1])
        assert abs(engine.got("A") / weights[0] - engine.got("B") / weights[1]) <= limit
        engine.step()


@pytest.mark.parametrize("settlement", ["fixed", "forward"])
def test_aborting_before_the_end_is_not_free(settlement: str) -> None:
    """B-2: E aborts each stream after 900 of 1,000 tokens, which only counts as delivered; H reads all of its own."""
    pool = Pool(slots=1, settlement=settlement, validate=False)
    for _ in range(300):
        pool.admit("E")
        pool.admit("H")
    for _ in range(400):
        id_, dispatch = next(iter(pool.running.items()))
        if dispatch.tenant == "E":
            pool.finish(id_, 900, Outcome.CANCELLED_RUNNING, Source.COUNTED)
        else:
            pool.finish(id_, 1000)
    assert abs(pool.served["E"] / pool.served["H"] - 1) < 0.05
    assert pool.charged["E"] > 0.95 * pool.served["E"]


# The rules of `forward`, one by one. B and Z wait with a predicted output of 100 each; B goes first, and is watched.


def waiting(*tenants: str, slots: int = 1, **terms: object) -> Pool:
    """A pool of which nothing was dispatched yet."""
    pool = Pool({}, settlement="forward", wait_for_upstream=SECOND, **{"cost": TOKENS, **terms})
    for tenant in tenants:
        pool.admit(tenant)
    pool.upstream("u1", slots)
    return pool


def next_charge(pool: Pool, tenant: str) -> int:
    """The charge of the tenant's next dispatch. Other requests end with what was predicted."""
    known = len(pool.orders)
    while True:
        for order in pool.orders[known:]:
            if order.tenant == tenant:
                return order.charge
        known = len(pool.orders)
        id_, running = next(iter(pool.running.items()))
        pool.finish(id_, running.output_tokens)


def carry(pool: Pool, tenant: str) -> int:
    settlement = pool.scheduler.settlement
    assert isinstance(settlement, Forward)
    return settlement.carry.get(tenant, 0)


FLAT = CostModel(alpha=Fraction(0), beta=Fraction(1), default_output=100, context_length=5000)


class Unlearned(Estimator):
    def learn(self, request: Request, usage: Usage, natural_end: bool) -> None: ...


def unlearned(pool: Pool) -> None:
    """Estimates stay at the prior: only the carry makes a difference then."""
    pool.scheduler.estimator = Unlearned(pool.scheduler.setup.cost)


def test_an_underestimate_is_charged_with_the_next_request() -> None:
    pool = waiting(*"BBZ")
    unlearned(pool)
    assert pool.order() == "B"
    pool.finish("B1", 350)
    assert carry(pool, "B") == 250
    assert next_charge(pool, "B") == 100 + 250
    assert carry(pool, "B") == 0


def test_an_error_is_the_difference_to_the_estimate_not_to_the_charge() -> None:
    """A charge holds the errors before it; were it compared with that, errors would come back for ever."""
    pool = waiting(*"BBBBZZZZ")
    unlearned(pool)
    pool.finish("B1", 350)
    assert next_charge(pool, "B") == 350
    pool.finish("B2", 100)  # as estimated: no new error, although 350 were charged
    assert next_charge(pool, "B") == 100


def test_a_charge_is_at_least_one_and_the_rest_of_a_credit_is_kept() -> None:
    pool = waiting(*"BBBBBBZZZZ", cost=FLAT)
    unlearned(pool)
    settlement = pool.scheduler.settlement
    settlement.finished("B", -250, settlement.epoch, True)
    before = pool.scheduler.policy.show()["meters"]["B"]
    assert [next_charge(pool, "B") for _ in range(3)] == [1, 1, 48]  # 300 - 250, with a floor of 1 for each
    assert pool.scheduler.policy.show()["meters"]["B"] - before == 50 << 20


def test_an_error_made_while_nobody_else_waited_is_forgiven() -> None:
    pool = waiting("B", "B")
    unlearned(pool)
    assert not pool.orders[0].contended
    pool.admit("Z")
    pool.finish("B1", 5000)
    assert carry(pool, "B") == 0


def test_the_idle_reset_forgives_and_errors_from_before_it_come_too_late() -> None:
    pool = waiting(*"BZB", slots=3)
    unlearned(pool)
    assert [order.contended for order in pool.orders] == [True, True, False]
    assert pool.scheduler.settlement.epoch == 1  # everything was dispatched: all queues are empty
    pool.finish("B1", 5000)
    assert carry(pool, "B") == 0


def test_idling_clears_debts() -> None:
    pool = waiting(*"BZB")
    unlearned(pool)
    pool.finish("B1", 350)
    assert carry(pool, "B") == 250
    pool.finish_all(2)
    assert not pool.waiting
    assert carry(pool, "B") == 0


def test_a_debt_outlives_leaving() -> None:
    pool = waiting(*"BZZZ")
    unlearned(pool)
    pool.finish("B1", 350)
    pool.admit("B")
    assert next_charge(pool, "B") == 350


def test_a_credit_is_clipped_at_a_join_to_what_the_meter_is_ahead() -> None:
    """B was charged 100, used 1, and is back when V has come nearer: M + carry = V, not below."""
    pool = waiting(*"BZZZZZ", cost=FLAT)
    unlearned(pool)
    assert pool.order() == "B"
    pool.finish("B1", 1)
    assert carry(pool, "B") == -99
    sfq = pool.scheduler.policy
    assert isinstance(sfq, SFQ)
    assert sfq.lead("B") == 100  # Z runs since V = 0
    pool.admit("Y", size=30)
    pool.admit("Y", size=30)
    pool.finish_all(2)
    assert sfq.lead("B") == 70  # the second one of Y moved V to 30
    pool.admit("B")
    assert carry(pool, "B") == -70


def test_a_request_that_failed_before_any_token_is_a_credit() -> None:
    pool = waiting(*"BBZ")
    unlearned(pool)
    pool.send(ev.AttemptFailed, id="B1", outcome=Outcome.FAILED_CONNECT)
    assert pool.outcome("B1") is Outcome.FAILED_CONNECT
    assert pool.ended["B1"].charge == 100
    assert carry(pool, "B") == -100


def test_a_usage_report_is_clipped_to_the_context_length() -> None:
    pool = waiting(*"BBZ", cost=FLAT)
    pool.finish("B1", 10**12)
    assert carry(pool, "B") == 5000 - 100
    assert pool.ended["B1"].usage.completion == 5000


def test_a_cap_does_not_turn_an_error_into_credit() -> None:
    """The error stands before the slot is free, so that the join which follows clips it."""
    pool = Pool(slots=2, settlement="forward", flows=[Flow(id="B", max_inflight=1)], cost=FLAT)
    unlearned(pool)
    pool.admit("Z", size=1)
    for _ in range(3):
        pool.admit("B")
        pool.admit("Z")
    for _ in range(9):
        pool.admit("Z")
    first = next(id_ for id_, one in pool.running.items() if one.tenant == "B")
    for _ in range(6):
        pool.finish(next(id_ for id_, one in pool.running.items() if one.tenant == "Z"), 100)
    sfq = pool.scheduler.policy
    assert isinstance(sfq, SFQ)
    pool.scheduler.jobs[first].contended = True
    pool.finish(first, 1)
    assert pool.running  # B is dispatched again, with what was left of its credit
    assert carry(pool, "B") >= -max(sfq.lead("B"), 0)


def test_the_carries_of_many_tenants_are_bounded() -> None:
    settlement = Forward()
    for number in range(200_000):
        settlement.finished(f"t{number}", 5, 0, True)
    assert len(settlement.carry) <= 65_536
    assert settlement.carry["t199999"] == 5
