"""The requests of the benchmark: recorded lengths, Poisson arrivals, tenants at random. Standard library only."""

import csv
import random
from pathlib import Path

LENGTHS = Path(__file__).parents[2] / "data" / "heads" / "azure_conv.csv"


def requests(load: float, tenants: int, count: int) -> list[tuple[float, str, int, int]]:
    """(arrival in seconds, tenant, prompt, output)"""
    with LENGTHS.open(newline="") as lines:
        shapes = [(int(row["ContextTokens"]), int(row["GeneratedTokens"])) for row in csv.DictReader(lines)]
    rng, now, found = random.Random(7), 0.0, []
    for number in range(count):
        now += rng.expovariate(load)
        found.append((now, f"t{rng.randrange(tenants)}", *shapes[number % len(shapes)]))
    return found
