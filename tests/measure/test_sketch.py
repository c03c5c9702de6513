"""The sketch against all values sorted, and its memory."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq.measure.latency import nearest_rank
from fairq.measure.sketch import Sketch


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=300), st.lists(st.integers(0, 100), min_size=1))
def test_percentiles_are_within_one_per_cent_of_nearest_rank(values: list[int], percents: list[int]) -> None:
    sketch = Sketch()
    for value in values:
        sketch.add(value)
    ordered, percents = sorted(values), sorted(percents)
    for percent, found in zip(percents, sketch.percentiles(percents), strict=True):
        assert found == pytest.approx(float(nearest_rank(ordered, percent)), rel=0.0101)
    assert (sketch.count, sketch.total) == (len(values), sum(values))
    assert (sketch.smallest, sketch.largest) == (ordered[0], ordered[-1])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 10**9)), st.lists(st.integers(0, 10**9)))
def test_two_sketches_merge_into_that_of_all_values(one: list[int], other: list[int]) -> None:
    both, left, right = Sketch(), Sketch(), Sketch()
    for value in one:
        left.add(value)
        both.add(value)
    for value in other:
        right.add(value)
        both.add(value)
    left.merge(right)
    assert left.summary() == both.summary()
    assert left.buckets == both.buckets
    assert (left.smallest, left.zeros) == (both.smallest, both.zeros)


def test_equal_values_may_be_added_at_once() -> None:
    one, many = Sketch(), Sketch()
    one.add(7, times=1000)
    for _ in range(1000):
        many.add(7)
    assert one.summary() == many.summary()


def test_memory_does_not_grow_with_the_number_of_values() -> None:
    chance, sketch = random.Random(1), Sketch()
    sizes = []
    for _ in range(2):
        for _ in range(20_000):
            sketch.add(chance.lognormvariate(18, 2))
        sizes.append(len(sketch.buckets))
    assert sizes[1] < 1.1 * sizes[0] < 1100


def test_negative_values_and_other_accuracies_are_refused() -> None:
    sketch = Sketch()
    with pytest.raises(ValueError, match="negative"):
        sketch.add(-1)
    with pytest.raises(ValueError, match="accuracies"):
        sketch.merge(Sketch(0.02))
    with pytest.raises(ValueError, match="no values"):
        sketch.percentiles([50])
    assert sketch.summary() is None
