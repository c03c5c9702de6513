"""Where the rates of service over time are taken, and how far apart they are there."""

from __future__ import annotations

from msgspec import Struct


class Grid(Struct, frozen=True):
    """Where the rates are taken. Seconds; the defaults are those of the paper's tables.

    Tick i of 1 .. ticks - 1 stands at warm_up + i * (horizon - warm_up) / ticks, in the middle of its window.
    """

    horizon: float = 600.0
    ticks: int = 20
    window: float = 60.0
    warm_up: float = 30.0

    @property
    def step(self) -> float:
        return (self.horizon - self.warm_up) / self.ticks

    def times(self) -> list[float]:
        return [self.warm_up + i * self.step for i in range(1, self.ticks)]


def grid_for(last_arrival: float) -> Grid:
    """The paper's grid, which goes to 600 s, for a run whose arrivals take five to ten minutes, as those of its tables
    do; for a longer or shorter run the same grid, stretched or shrunk to its last arrival (s).
    """
    share = 1.0 if 300 <= last_arrival <= 601 or last_arrival <= 0 else last_arrival / 600
    return Grid(horizon=600 * share, window=60 * share, warm_up=30 * share)


class Difference(Struct, frozen=True):
    """Over the ticks. max, mean: service units per second; variance: of the population, their square.

    accumulated   the largest distance at any tick between the clients' services since the warm-up (units)
    series        the difference at each tick
    """

    max: float
    mean: float
    variance: float
    accumulated: float
    series: list[float]
