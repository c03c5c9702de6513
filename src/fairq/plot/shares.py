"""Normalized service over the intervals in which the same flows compete. It starts anew in each, as it must."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes

from fairq.core.number import Number
from fairq.measure.fairness import Interval
from fairq.plot.style import INK, SOFT, Look, end_labels, whole

MOST_FLOWS = 8
MOST_INTERVALS = 12
MOST_POINTS = 150  # of a line

Point = tuple[float, float]


class Charge(NamedTuple):
    """`flow` was given `amount` (normalized), evenly from `start` to `end`."""

    start: Number
    end: Number
    flow: str
    amount: Number


def curves(interval: Interval, charges: Sequence[Charge]) -> dict[str, list[Point]]:
    """Flow -> (time, what it has been given since the interval began)."""
    begin, over = interval.start, interval.end
    given: dict[str, Number] = dict.fromkeys(interval.service, 0)
    lines: dict[str, list[Point]] = {flow: [(float(begin), 0.0)] for flow in given}
    for start, end, flow, amount in charges:
        since, until = max(start, begin), min(end, over)
        if flow not in given or since >= until:
            continue
        lines[flow].append((float(since), float(given[flow])))
        given[flow] += amount * (until - since) / (end - start)  # type: ignore[assignment]
        lines[flow].append((float(until), float(given[flow])))
    for flow, line in lines.items():
        line.append((float(over), float(given[flow])))
    return lines


def thinned(line: Sequence[Point]) -> list[Point]:
    """At most MOST_POINTS of them, the last one always."""
    step = -(-len(line) // MOST_POINTS)
    return [*line[:-1:step], line[-1]]


def draw_service(
    axes: Axes,
    intervals: Sequence[Interval],
    charges: Sequence[Charge],
    found: Mapping[str, Look],
    unit: str,
    at_once: bool = False,
) -> None:
    """unit: what service and weight are counted in; at_once: a charge is given when it starts, not evenly."""
    shown = intervals[:MOST_INTERVALS]
    axes.set_ylabel(f"service since they\nwait together\n({unit})", fontsize=7.5)
    axes.margins(x=0)
    if not shown:
        return
    axes.set_xlim(float(shown[0].start), float(shown[-1].end))
    last: dict[str, Point] = {}
    for interval in shown:
        flows = [flow for flow in interval.service if flow in found][:MOST_FLOWS]
        lines = curves(interval, charges)
        for flow in flows:
            line = thinned(lines[flow])
            look = found[flow]
            steps = "steps-pre" if at_once else "default"
            axes.plot(
                *zip(*line, strict=True),
                drawstyle=steps,
                marker=look.marker,
                markevery=(0.1, 0.2),
                markersize=4,
                **look.line,
            )
            last[flow] = line[-1]
        if interval is not shown[0]:
            axes.axvline(float(interval.start), color=SOFT, linewidth=0.8, linestyle=(0, (2, 2)))
        if interval.jain is not None and len(interval.service) > 1:
            width = float(interval.end - interval.start) / float(shown[-1].end - shown[0].start)
            if width > 0.07:
                where = float(interval.start + interval.end) / 2
                text = f"Jain {float(interval.jain):.2f}"
                axes.text(where, 1.0, text, transform=axes.get_xaxis_transform(), fontsize=7.5, ha="center", color=INK)
    axes.set_ylim(bottom=0)
    whole(axes, "y")
    end_labels(axes, [(x, y, flow) for flow, (x, y) in last.items()])
