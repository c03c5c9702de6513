"""The fluid of GPS as areas: between two moments at which the set of backlogged flows changes, shares are constant."""

from itertools import pairwise
from typing import Any

from fairq.lab.views import Flood
from fairq.sim.link.run import LinkRun


def floods(run: Any) -> list[Flood]:
    """From arrivals and finishes alone: a flow is backlogged in GPS from an arrival to that packet's finish."""
    assert isinstance(run, LinkRun)
    weights = {flow: float(weight) for flow, weight in run.weights().items()}
    spans: dict[str, list[tuple[float, float]]] = {}
    for one in run.served:
        spans.setdefault(one.flow, []).append((float(one.arrival), float(one.finish)))
    moments = sorted({moment for each in spans.values() for span in each for moment in span})
    found: list[Flood] = []
    for start, end in pairwise(moments):
        busy = {flow: weights[flow] for flow, each in spans.items() if any(a <= start and end <= b for a, b in each)}
        total = sum(busy.values())
        if busy:
            found.append(Flood(start, end, {flow: weight / total for flow, weight in busy.items()}))
    return found
