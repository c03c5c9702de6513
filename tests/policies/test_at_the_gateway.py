"""The gateway's scheduler takes every policy that asks for no more than sizes, and keeps its promises with it."""

import pytest
from tests.core.pool import TOKENS, Pool
from tests.core.traffic import Traffic, pairs

from fairq.core import snapshot
from fairq.core.errors import ConfigError
from fairq.core.job import Flow
from fairq.core.policy import Need
from fairq.core.setup import Setup
from fairq.gateway.config_names import policy_spec
from fairq.policies import POLICIES, make

FIT = [name for name, policy in POLICIES.items() if policy.needs <= {Need.SIZE}]
QUEUEING = [
    "sfq",
    "scfq",
    "drr",
    "drr:quantum=7",
    "hierarchical",
    "hierarchical:nodes=sfq/drr",
    "request-rr",
    "shortest",
]


def test_the_fair_queueing_policies_without_a_rate_fit() -> None:
    assert {spec.partition(":")[0] for spec in QUEUEING} <= set(FIT)
    assert not {"gps", "wfq", "wf2q", "virtual-clock", "drf"} & set(FIT)


@pytest.mark.parametrize("spec", QUEUEING)
@pytest.mark.parametrize("seed", range(2))
def test_no_slot_is_free_while_anybody_waits_and_all_books_agree(spec: str, seed: int) -> None:
    """`snapshot.validate` after each of 400 random events: arrivals, ends, caps, pauses, weights, retries, outages."""
    pool = Pool({"u1": 2, "u2": 1}, policy=spec, validate=True)
    traffic = Traffic(pool)
    for kind, number in pairs(seed, 400):
        traffic.play(kind, number)
    assert len(pool.orders) > 50


@pytest.mark.parametrize("spec", QUEUEING)
def test_a_snapshot_in_the_middle_changes_no_decision(spec: str) -> None:
    """Two pools see the same events; one is restored from its own state half way."""
    one, two = (Pool({"u1": 2, "u2": 1}, policy=spec, validate=False) for _ in range(2))
    for pool in (one, two):
        traffic = Traffic(pool)
        for count, (kind, number) in enumerate(pairs(7, 500)):
            if pool is two and count == 250:
                state, before = snapshot.save(pool.scheduler), pool.scheduler
                pool.scheduler = type(before)(pool.setup, make(spec), before.placement)
                snapshot.load(pool.scheduler, state)
            traffic.play(kind, number)
    assert one.orders == two.orders


@pytest.mark.parametrize("seed", range(3))
def test_hierarchical_keeps_sfqs_bound_where_there_are_no_classes(seed: int) -> None:
    """The pool's own books assert it at each dispatch."""
    pool = Pool({"u1": 2, "u2": 1}, policy="hierarchical", fair=True, validate=False)
    traffic = Traffic(pool, exact=True, busy=True)
    for kind, number in pairs(seed, 1500):
        traffic.play(kind, number)
    assert pool.joint.widest <= 2 * pool.largest


@pytest.mark.parametrize("weight", [1, 3])
def test_drr_shares_by_weight_within_a_quantum_and_two_requests(weight: int) -> None:
    flows = [Flow(id="A", weight=weight), Flow(id="B")]
    pool = Pool(slots=1, setup=Setup(policy="drr:quantum=50", cost=TOKENS, flows=flows))
    for _ in range(120):
        pool.admit("A", size=40)
        pool.admit("B", size=90)
    pool.finish_all(100)
    assert abs(pool.charged["A"] / weight - pool.charged["B"]) <= 50 + 2 * 90


def test_an_organisation_does_not_get_more_for_having_more_users() -> None:
    pool = Pool(slots=1, setup=Setup(policy="hierarchical", cost=TOKENS))
    for user in ("big/a", "big/b", "big/c", "small/a"):
        for _ in range(40):
            pool.admit(user, size=10)
    pool.finish_all(60)
    big = sum(amount for tenant, amount in pool.charged.items() if tenant.startswith("big/"))
    assert abs(big - pool.charged["small/a"]) <= 2 * 10


@pytest.mark.parametrize("spec", ["wfq", "gps", "virtual-clock", "drf", "rr"])
def test_a_policy_that_needs_what_a_gateway_lacks_is_a_clear_error(spec: str) -> None:
    with pytest.raises(ConfigError, match=f"'{spec}': needs .*, which layer gateway lacks"):
        Pool(policy=spec)


@pytest.mark.parametrize("spec", QUEUEING)
def test_the_configuration_accepts_it(spec: str) -> None:
    assert policy_spec(spec) == spec
