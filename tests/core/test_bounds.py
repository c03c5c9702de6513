"""The band, the pairwise bound and work conservation, under everything that may happen. The pool checks them itself."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.pool import Pool
from tests.core.traffic import BIG, Traffic, pairs

POLICIES = ["sfq", "sfq:credit=50", "request-rr", "shortest", "fcfs"]
some_traffic = st.lists(st.tuples(st.integers(0, 99), st.integers(0, BIG - 1)), max_size=100)


@pytest.mark.parametrize("settlement", ["fixed", "forward"])
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=25, deadline=None)
@given(traffic=some_traffic, slots=st.integers(1, 3))
def test_everything_holds_whatever_happens(
    policy: str, settlement: str, traffic: list[tuple[int, int]], slots: int
) -> None:
    pool = Pool({"u1": slots, "u2": 1}, policy=policy, settlement=settlement)
    play = Traffic(pool).play
    for kind, number in traffic:
        play(kind, number)


@pytest.mark.parametrize("settlement", ["fixed", "forward"])
@pytest.mark.parametrize("policy", ["sfq", *(pytest.param(name, marks=pytest.mark.slow) for name in POLICIES[1:])])
def test_ten_thousand_decisions_and_more(policy: str, settlement: str) -> None:
    """Queues grow long and end; weights, caps, pauses and upstreams change; requests leave, fail, try again."""
    pool = Pool({"u1": 3, "u2": 2}, policy=policy, settlement=settlement, validate=False)
    traffic = Traffic(pool, tenants=6)
    for kind, number in pairs(3, 200_000):
        traffic.play(kind, number)
        if len(pool.orders) >= 10_000:
            break
    assert len(pool.orders) >= 10_000
