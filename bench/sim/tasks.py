"""What both sides are given. Standard library only: a peer's interpreter reads this file too."""

import random

PERIODIC = (
    *((10, 1), (12, 1), (14, 1), (15, 1), (20, 1), (21, 1)),
    *((24, 2), (28, 2), (30, 3), (35, 3), (40, 4), (42, 5)),
)
"""(period, execution time) of tasks that use 98 % of a processor: EDF meets every deadline, RM does not."""

HYPERPERIOD = 840

SLICE = 8  # the peer's quantum


def bursts(tasks: int) -> list[int]:
    """CPU time of each of `tasks` that all arrive at 0."""
    source = random.Random(1)
    return [source.randint(1, 4 * SLICE) for _ in range(tasks)]


def customers(count: int, load: float = 0.9, grain: int = 1000) -> list[tuple[int, int]]:
    """(arrival, service time) in an M/M/1 queue, in thousandths of the mean service time."""
    source, now, found = random.Random(1), 0.0, []
    for _ in range(count):
        now += source.expovariate(load / grain)
        found.append((int(now), max(1, round(source.expovariate(1 / grain)))))
    return found
