"""A quantity over time: nothing is lost by making pieces longer, and their number has a limit."""

import random

import pytest

from fairq.measure.series import PIECES, Series


def test_areas_and_tops_stay_however_long_it_goes_on() -> None:
    rng, series = random.Random(3), Series(piece=10)
    now, area, top = 0, 0.0, 0.0
    for _ in range(20_000):
        start = now + rng.choice((0, 0, 7))  # nothing was there meanwhile
        end, value = start + rng.randint(1, 90), rng.random()
        series.add(start, end, value, value + 1)
        area += value * (end - start)
        now, top = end, max(top, value + 1)
    points = list(series.points())
    assert PIECES <= len(points) <= 2 * PIECES
    assert sum(mean for _, mean, _ in points) * series.piece == pytest.approx(area)
    assert max(most for _, _, most in points) == top
    assert [start for start, _, _ in points] == [series.piece * n for n in range(len(points))]
    assert points[-1][0] < now <= points[-1][0] + series.piece


def test_a_piece_tells_its_mean_over_all_of_it_and_its_top() -> None:
    series = Series(piece=10)
    series.add(0, 5, 4, 6)
    series.add(15, 30, 2, 2)
    assert list(series.points()) == [(0, 2.0, 6), (10, 1.0, 2), (20, 2.0, 2)]


def test_one_long_interval_is_cut_into_few_pieces() -> None:
    series = Series(piece=1)
    series.add(0, 10**15, 3, 3)
    points = list(series.points())
    assert len(points) <= 2 * PIECES
    assert all(mean == pytest.approx(3) for _, mean, _ in points[:-1])
