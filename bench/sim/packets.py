"""The packets that both sides send. Standard library only: a peer's interpreter reads this file too."""

import random

LOAD = 0.95
SMALLEST, LARGEST = 64, 1500


def traffic(packets: int, flows: int) -> list[tuple[int, int, int]]:
    """(arrival, size, flow): Poisson arrivals in whole byte times, uniform sizes in bytes, flows at random."""
    source = random.Random(1)
    mean, now, found = (SMALLEST + LARGEST) / 2, 0.0, []
    for _ in range(packets):
        now += source.expovariate(LOAD / mean)
        found.append((int(now), source.randint(SMALLEST, LARGEST), source.randrange(flows)))
    return found


def weight(flow: int) -> int:
    return flow % 4 + 1
