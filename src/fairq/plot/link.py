"""A link: each flow's packets as they were sent, beside the fluid that says what is fair."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from fairq.core.number import Number
from fairq.core.policy import Why
from fairq.plot.style import INK, LOST, SOFT, Look, Panel, caption, end_labels, legend, looks, rows, sheet, whole
from fairq.sim.link.run import LinkRun
from fairq.sim.link.scenario import LinkScenario

MOST_ROWS = 16
MOST_PACKETS = 120  # in a picture
MOST_TAGS = 34  # written beside bars
MOST_LINES = 6
TAGS = {"finish": "F", "meter": "S", "start": "S", "clock": "VC", "visits": "skip "}
MEANINGS = {"S": "S start tag", "F": "F finish tag", "VC": "VC clock", "skip ": "skip: visits in vain"}
FLUID: dict[str, Any] = {"marker": "D", "linestyle": "", "markerfacecolor": "white", "markeredgecolor": INK}

Curve = list[tuple[float, float]]


def draw(scenario: LinkScenario, runs: Sequence[LinkRun]) -> Figure:
    flows = [flow.id for flow in scenario.all_flows()][:MOST_ROWS]
    found = looks(flows)
    until = min(max(seen(run) for run in runs), max(end(run) for run in runs))
    chart = 0.3 * len(flows) + 0.15
    figure, panels = sheet(scenario.title, [Panel(chart), Panel(1.15, 0.12)] * len(runs), flows, keys=6)
    written: set[str] = set()
    for index, run in enumerate(runs):
        axes, below = panels[2 * index], panels[2 * index + 1]
        if index == 0 or run.scenario is not runs[index - 1].scenario:
            fluid = LinkRun(honest(run.scenario), "gps")
        written |= packets(axes, run, fluid, flows, found, until)
        service(below, run, fluid, flows, found, until)
        for one in (axes, below):
            one.set_xlim(0, until)
            whole(one)
        axes.tick_params(labelbottom=False)
    panels[-1].set_xlabel("time")
    told: list[Any] = [Line2D([], [], label="the fluid (GPS) ends this packet", markersize=4.5, **FLUID)]
    told.append(Line2D([], [], color=SOFT, linestyle="--", label="service in the fluid"))
    told.append(Line2D([], [], marker=7, linestyle="", color=SOFT, markersize=4, label="arrives"))
    if meant := [meaning for tag, meaning in MEANINGS.items() if tag in written]:
        told.append(Line2D([], [], linestyle="", label=f"on bars: {', '.join(meant)}"))
    if scenario.stalls:
        told.append(Patch(label="the link stands still", **LOST))
    legend(figure, told)
    return figure


def honest(scenario: LinkScenario) -> LinkScenario:
    """With true lengths: what is fair does not depend on what was said."""
    fields = {name: getattr(scenario, name) for name in LinkScenario.model_fields}
    packets = tuple(packet.model_copy(update={"estimate": None}) for packet in scenario.packets)
    return LinkScenario.model_construct(**{**fields, "packets": packets})


def end(run: LinkRun) -> float:
    return float(max(run.time(finish) for _, _, finish in run.departures))


def seen(run: LinkRun) -> float:
    """Up to when a picture can show it."""
    last = run.departures[:MOST_PACKETS][-1]
    return float(run.time(last[2]))


def packets(
    axes: Axes, run: LinkRun, fluid: LinkRun, flows: list[str], found: Mapping[str, Look], until: float
) -> set[str]:
    """Which of `MEANINGS` stand on its bars."""
    rows(axes, flows)
    row = {flow: index for index, flow in enumerate(flows)}
    delay = run.measured().get("delay_mean")
    parts = [] if delay is None else [f"mean delay {float(delay):.4g}"]
    if until < end(run):
        parts.append(f"first {until:g} of {end(run):g}")
    caption(axes, run.label, "  ·  ".join(parts))
    over: dict[str, Number] = {}
    bars: dict[tuple[str, float], list[tuple[float, float]]] = {}
    tags = reasons(run) if len(run.departures) <= MOST_TAGS else {}
    written: set[str] = set()
    for job, start, finish in run.departures:
        if job.flow not in row:
            continue
        begin = run.time(start) if start is not None else max(job.arrival, over.get(job.flow, 0))
        over[job.flow] = stop = run.time(finish)
        if begin >= until:
            continue
        y, thick = row[job.flow], 0.3 if start is None else 0.56
        bars.setdefault((job.flow, thick), []).append((float(begin), float(stop - begin)))
        if job.id in tags and until > 0 and float(stop - begin) / until > 0.004 + 0.0075 * len(tags[job.id]):
            written |= {mark for mark in MEANINGS if mark in tags[job.id]}
            axes.text(
                float(begin + stop) / 2, y, tags[job.id], fontsize=6.5, ha="center", va="center",
                bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none"},
            )  # fmt: skip
    for stall in run.scenario.stalls:
        if stall.at < until:
            axes.axvspan(stall.at, min(stall.at + stall.for_, until), **LOST)
    for (flow, thick), spans in bars.items():
        axes.broken_barh(spans, (row[flow] - thick / 2, thick), **found[flow].bar)
    for flow, y in row.items():
        if run.policy != "gps":
            ends = [float(fluid.time(finish)) for job, _, finish in fluid.departures if job.flow == flow]
            marks = [at for at in ends if at <= until]
            axes.plot(marks, [y + 0.36] * len(marks), markersize=3.6, clip_on=False, zorder=4, **FLUID)
        came = sorted({job.arrival for job in run.scenario.jobs if job.flow == flow and job.arrival < until})
        axes.plot(came, [y - 0.42] * len(came), marker=7, markersize=3.5, color=SOFT, linestyle="", clip_on=False)
    return written


def reasons(run: LinkRun) -> dict[str, str]:
    """Packet -> the tag that decided for it."""
    steps = LinkRun(run.scenario, run.spec, "events").trace().steps()
    return {step.what["packet"]: tag(step.why) for step in steps if step.kind == "start" and step.why}


def tag(why: Why) -> str:
    return " ".join(f"{TAGS[key]}{value}" for key, value in why.values.items() if key in TAGS)


def service(
    axes: Axes, run: LinkRun, fluid: LinkRun, flows: list[str], found: Mapping[str, Look], until: float
) -> None:
    """What each flow was given, over its weight; dashed, what the fluid gives it."""
    axes.set_ylabel("service / weight", fontsize=7.5)
    weights = {flow.id: flow.weight for flow in run.scenario.all_flows()}
    ideal = poured(fluid)
    last: list[tuple[float, float, str]] = []
    lines = sent(run) if run.policy != "gps" else ideal
    for flow in flows[:MOST_LINES]:
        look, weight = found[flow], float(weights[flow])
        line = [(x, y / weight) for x, y in clipped(lines.get(flow, [(0.0, 0.0)]), until)]
        dashed = [(x, y / weight) for x, y in clipped(ideal.get(flow, [(0.0, 0.0)]), until)]
        axes.plot(*zip(*dashed, strict=True), color=look.colour, linestyle="--", linewidth=1)
        axes.plot(*zip(*line, strict=True), marker=look.marker, markevery=(0.1, 0.2), markersize=4, **look.line)
        last.append((*line[-1], flow))
    axes.set_ylim(bottom=0)
    end_labels(axes, last)


def sent(run: LinkRun) -> dict[str, Curve]:
    """Flow -> (time, size sent by then). A stall within a packet is drawn as slower sending."""
    found: dict[str, Curve] = {}
    for job, start, finish in run.departures:
        line = found.setdefault(job.flow, [(0.0, 0.0)])
        done = line[-1][1]
        if start is not None:
            line.append((float(run.time(start)), done))
        line.append((float(run.time(finish)), done + (job.size or 0)))
    return found


def poured(fluid: LinkRun) -> dict[str, Curve]:
    """The same of GPS: between two events, every flow that has a packet in it is given its part of the rate."""
    weights = {flow.id: float(flow.weight) for flow in fluid.scenario.all_flows()}
    spans = [(float(job.arrival), float(fluid.time(finish)), job.flow) for job, _, finish in fluid.departures]
    stalls = [(float(s.at), float(s.at + s.for_)) for s in fluid.scenario.stalls]
    times = sorted({0.0, *(t for a, b, _ in spans for t in (a, b)), *(t for stall in stalls for t in stall)})
    found: dict[str, Curve] = {flow: [(0.0, 0.0)] for flow in weights}
    starting, ending = sorted(spans), sorted((b, flow) for _, b, flow in spans)
    inside: dict[str, int] = {}
    s = e = 0
    for at, until in pairwise(times):
        while s < len(starting) and starting[s][0] <= at:
            inside[starting[s][2]] = inside.get(starting[s][2], 0) + 1
            s += 1
        while e < len(ending) and ending[e][0] <= at:
            inside[ending[e][1]] -= 1
            e += 1
        busy = [flow for flow, count in inside.items() if count]
        flows = not any(a <= at < b for a, b in stalls)
        total = sum(weights[flow] for flow in busy)
        for flow, line in found.items():
            part = weights[flow] / total if flows and flow in busy else 0.0
            line.append((until, line[-1][1] + float(fluid.scenario.rate) * part * (until - at)))
    return found


def clipped(line: Curve, until: float) -> Curve:
    """Up to `until`, and straight on to it."""
    inside = [point for point in line if point[0] <= until]
    after = next((point for point in line if point[0] > until), None)
    x, y = inside[-1]
    if after is not None:
        y += (after[1] - y) * (until - x) / (after[0] - x)
    return [*inside, (until, y)]
