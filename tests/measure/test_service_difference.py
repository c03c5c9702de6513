"""The measures of the VTC paper, against the figures its authors got from the same measurements."""

from pathlib import Path

import pytest

from fairq.measure.grid import Grid, grid_for
from fairq.measure.service import ServiceOverTime, slowdown
from fairq.traces import Trace

DATA = Path(__file__).parents[2] / "data" / "vtc"


def measured(name: str) -> ServiceOverTime:
    service = ServiceOverTime()
    for request in Trace(DATA / f"{name}.csv"):
        told = request.measured
        assert told is not None
        if told.ttft is None or told.latency is None:
            continue
        at = request.arrival
        lengths = request.input_tokens, request.output_tokens
        service.add(request.client, at, at + told.ttft, at + told.latency, *lengths)
    return service


@pytest.mark.parametrize(
    ("name", "largest", "mean", "variance"),
    [
        ("FCFS__real", 759.97, 433.53, 32112.00),
        ("LCF__real", 750.49, 323.82, 29088.90),
        ("VTC__real", 368.40, 251.66, 6549.16),
        ("VTC_predict__real", 365.47, 240.33, 5321.62),
        ("VTC_oracle__real", 329.46, 227.51, 4475.76),
        ("LShare_rpm5__real", 143.86, 83.58, 1020.46),
        ("LShare_rpm10__real", 217.65, 128.24, 2767.44),
        ("LShare_rpm15__real", 343.07, 161.06, 5188.79),
        ("LShare_rpm20__real", 446.76, 195.71, 7449.79),
        ("LShare_rpm30__real", 693.66, 309.45, 24221.31),
        ("FCFS__overload", 447.37, 439.00, 30.62),
        ("VTC__overload", 192.88, 103.77, 6981.24),
        ("VTC_pred_50__overload", 33.98, 12.54, 111.94),
        ("VTC_oracle__overload", 5.87, 0.51, 1.71),
    ],
)
def test_the_authors_table_comes_out_of_their_measurements(
    name: str, largest: float, mean: float, variance: float
) -> None:
    found = measured(name).difference()
    assert found is not None
    assert (found.max, found.mean, found.variance) == pytest.approx((largest, mean, variance), abs=0.005)


@pytest.mark.parametrize(
    ("name", "accumulated"),
    [
        ("FCFS__overload", 237_738),
        ("VTC__overload", 9_050),
        ("VTC_pred_50__overload", 1_789),
        ("VTC_oracle__overload", 377),
    ],
)
def test_accumulated_difference_of_two_overloading_clients(name: str, accumulated: float) -> None:
    found = measured(name).difference()
    assert found is not None
    assert found.accumulated == pytest.approx(accumulated, abs=0.5)


def test_a_steady_client_is_served_at_the_rate_that_it_gets() -> None:
    """One client gets 100 units in each second, another nothing of what it asks for."""
    grid = Grid(horizon=100, ticks=10, window=10, warm_up=0)
    service = ServiceOverTime(grid)
    service.add("fed", 0, 0, 100, 2000, 4000)
    service.add("hungry", 25, None, 25, 100, 0)
    assert service.rates()["fed"] == pytest.approx([100] * 9)
    assert service.rates()["hungry"] == [0] * 9
    # 25 lies in the windows around 20 and 30, each 10 long, ends included: 100 units / 10 s are asked for there.
    assert service.demand()["hungry"] == [0, 10, 10, 0, 0, 0, 0, 0, 0]
    found = service.difference()
    assert found is not None
    assert found.series == [0, 10, 10, 0, 0, 0, 0, 0, 0]
    assert found.accumulated == pytest.approx(9000)


def test_the_papers_grid_fits_its_own_suites_and_is_stretched_for_others() -> None:
    assert grid_for(600.25) == grid_for(359.9) == Grid()  # the last arrivals of the overload suite at 600 and 360 s
    assert grid_for(1200) == Grid(horizon=1200, window=120, warm_up=60)
    assert grid_for(60) == Grid(horizon=60, window=6, warm_up=3)


def test_nobody_served_is_no_difference() -> None:
    assert ServiceOverTime().difference() is None


def test_isolation_is_how_much_longer_it_takes_among_others() -> None:
    assert slowdown({"a": 3.0, "b": 1.0, "c": 2.0}, {"a": 1.5, "c": 0.0}) == {"a": 2.0, "c": None}
