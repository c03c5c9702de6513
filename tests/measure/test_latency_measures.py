from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq.measure.latency import Summary, mean, nearest_rank, summary, tpot, ttft


@pytest.mark.parametrize(
    ("percent", "expected"), [(5, 15), (30, 20), (40, 20), (50, 35), (100, 50), (0, 15), (Fraction(1, 10), 15)]
)
def test_the_textbook_example_of_nearest_rank(percent: int, expected: int) -> None:
    assert nearest_rank([15, 20, 35, 40, 50], percent) == expected


@given(
    st.lists(st.integers(-1000, 1000), min_size=1, max_size=60),
    st.integers(0, 100),
)
def test_nearest_rank_is_numpys_inverted_distribution(values: list[int], percent: int) -> None:
    values.sort()
    exact = nearest_rank(values, percent)
    assert sum(value <= exact for value in values) * 100 >= percent * len(values)
    below = [value for value in values if value < exact]
    assert len(below) * 100 < percent * len(values) or not below
    # numpy ranks with floats; where percent * n / 100 is an integer it may land on the neighbour
    if percent * len(values) % 100:
        assert exact == np.percentile(values, percent, method="inverted_cdf")


@pytest.mark.parametrize(("values", "percent"), [([], 50), ([1], 101), ([1], -1)])
def test_there_is_no_percentile_of_nothing_or_outside_0_to_100(values: list[int], percent: int) -> None:
    with pytest.raises(ValueError, match="percent"):
        nearest_rank(values, percent)


def test_a_summary_of_one_to_a_hundred() -> None:
    assert summary(range(100, 0, -1)) == Summary(count=100, mean=50.5, p50=50, p90=90, p99=99, max=100)
    assert summary([]) is None


def test_means_of_integers_are_exact() -> None:
    assert mean([1, 2, 2]) == Fraction(5, 3)
    assert mean([0.5, 1.5]) == 1.0
    with pytest.raises(ValueError, match="no values"):
        mean([])


def test_time_to_first_token_and_per_output_token() -> None:
    """Three tokens at 40, 50 and 60 ms after an arrival at 10 ms: 30 ms, and two gaps of 10 ms."""
    assert ttft(10, 40) == 30
    assert tpot(40, 60, 3) == 10
    assert tpot(40, 45, 3) == Fraction(5, 2)
    assert tpot(0.5, 1.5, 3) == 0.5
    assert tpot(40, 40, 1) is None
