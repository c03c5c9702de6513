"""The oracles are right: textbook values, and the conditions that define the answer."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle import max_min

RATIONALS = st.fractions(min_value=0, max_value=50, max_denominator=6)
WEIGHTS = st.fractions(min_value=Fraction(1, 6), max_value=9, max_denominator=6)


def test_four_sources_of_equal_right_share_a_link_of_ten() -> None:
    """Keshav, An Engineering Approach to Computer Networking, chapter 9: demands 2, 2.6, 4, 5."""
    demands: dict[str, Fraction | int] = {"a": 2, "b": Fraction(26, 10), "c": 4, "d": 5}
    shares = max_min(10, demands, dict.fromkeys(demands, 1))
    assert shares == {"a": 2, "b": Fraction(26, 10), "c": Fraction(27, 10), "d": Fraction(27, 10)}


def test_four_sources_of_unequal_weight_share_a_link_of_sixteen() -> None:
    """The weighted example of the same chapter: demands 4, 2, 10, 4 and weights 2.5, 4, 0.5, 1."""
    weights: dict[str, Fraction | int] = {"a": Fraction(5, 2), "b": 4, "c": Fraction(1, 2), "d": 1}
    assert max_min(16, {"a": 4, "b": 2, "c": 10, "d": 4}, weights) == {"a": 4, "b": 2, "c": 6, "d": 4}


def test_more_than_enough_meets_every_demand() -> None:
    assert max_min(100, {"a": 4, "b": 0}, {"a": 1, "b": 3}) == {"a": 4, "b": 0}


@settings(max_examples=80, deadline=None)
@given(capacity=RATIONALS, flows=st.dictionaries(st.sampled_from("abcdef"), st.tuples(RATIONALS, WEIGHTS), min_size=1))
def test_nobody_could_get_more_except_from_someone_who_has_less(
    capacity: Fraction, flows: dict[str, tuple[Fraction, Fraction]]
) -> None:
    demands = {name: demand for name, (demand, _) in flows.items()}
    weights = {name: weight for name, (_, weight) in flows.items()}
    shares = max_min(capacity, demands, weights)
    assert all(0 <= shares[name] <= demands[name] for name in flows)
    assert sum(shares.values()) == min(capacity, sum(demands.values()))
    levels = {name: shares[name] / weights[name] for name in flows}
    for name in flows:
        if shares[name] < demands[name]:
            assert levels[name] == max(levels.values())
