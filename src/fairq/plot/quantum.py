"""What a larger quantum buys and costs: locality, throughput, and fairness between clients that wait."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from fairq.plot.style import BOUND, COLOURS, INK, PALE, SOFT, Panel, caption, legend, sheet, thousands
from fairq.sim.engine.drift import Drift
from fairq.sim.engine.run import EngineRun
from fairq.sim.engine.scenario import EngineScenario

LEAST = 3  # quanta that make a sweep
MOST_PAIRED = 12  # clients whose pairs are looked at
OTHERS = ("D", "^", "v", "P", "X")  # markers of policies without a quantum


class Point(NamedTuple):
    """Means over the runs with one quantum: over seeds, mostly. gap: as the theorem has it; hits: a share."""

    hits: float
    gap: float
    limit: float | None
    throughput: float


def is_swept(runs: Sequence[EngineRun]) -> bool:
    return len({run.params["quantum"] for run in runs if run.policy == "dlpm"}) >= LEAST


def draw(scenario: EngineScenario, runs: Sequence[EngineRun]) -> Figure:
    by_quantum: dict[int, list[EngineRun]] = {}
    others: dict[str, list[EngineRun]] = {}
    for run in runs:
        if run.policy == "dlpm":
            by_quantum.setdefault(int(run.params["quantum"]), []).append(run)
        else:
            others.setdefault(run.spec, []).append(run)
    swept = {size: point(found) for size, found in sorted(by_quantum.items())}
    beside = {spec: point(found) for spec, found in others.items()}
    panels = [Panel(2.4), Panel(1.0, 0.6), Panel(0.9, 0.16), Panel(0.9, 0.16)]
    figure, (plane, *columns) = sheet(scenario.title, panels, [], keys=2 + len(beside))
    among = len(next(iter(runs)).weights())
    each = len(runs) // (len(swept) + len(beside))
    told = [f"means of {each} runs"] if each > 1 else []
    told += [f"largest {MOST_PAIRED} of {among} clients"] if among > MOST_PAIRED else []
    caption(plane, "fairness against locality", "  ·  ".join(told))
    against(plane, swept, beside)
    sizes = list(swept)
    told_of: tuple[tuple[str, Callable[[Point], float]], ...] = (
        ("apart while\nboth wait", lambda one: one.gap),
        ("cache hits (%)", lambda one: 100 * one.hits),
        ("tokens/s", lambda one: one.throughput),
    )
    for axes, (name, value) in zip(columns, told_of, strict=True):
        axes.plot(sizes, [value(one) for one in swept.values()], marker="o", color=COLOURS[0], linewidth=1.7)
        for (_, one), marker in zip(beside.items(), OTHERS, strict=False):
            axes.axhline(value(one), color=SOFT, linewidth=0.9, linestyle=":")
            axes.plot([sizes[-1]], [value(one)], marker=marker, color=INK, markersize=5, clip_on=False)
        axes.set_ylim(bottom=0)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_ylabel(name, fontsize=7.5)
        axes.grid(color=PALE, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(labelbottom=axes is columns[-1])
        thousands(axes)
    limits = [one.limit for one in swept.values() if one.limit is not None]
    if len(limits) == len(sizes):
        columns[0].plot(sizes, limits, **BOUND)
        shown = [one.gap for one in (*swept.values(), *beside.values()) if one.gap > 0] + limits
        columns[0].set_yscale("log")  # it is far above
        columns[0].set_ylim(min(shown) / 2, max(shown) * 2)
        columns[0].yaxis.set_minor_formatter(NullFormatter())
        thousands(columns[0])
    columns[-1].set_xlabel("quantum (tokens)")
    legend(
        figure,
        [
            Line2D([], [], color=COLOURS[0], marker="o", label="dlpm, by its quantum"),
            Line2D([], [], label="bound of the theorem", **BOUND),
            *(
                Line2D([], [], color=INK, marker=marker, linestyle=":", label=spec)
                for spec, marker in zip(beside, OTHERS, strict=False)
            ),
        ],
    )
    return figure


def against(axes: Axes, swept: Mapping[int, Point], beside: Mapping[str, Point]) -> None:
    axes.plot(
        [100 * one.hits for one in swept.values()],
        [one.gap for one in swept.values()],
        marker="o",
        color=COLOURS[0],
        linewidth=1.7,
    )
    for index, (size, one) in enumerate(swept.items()):
        beside_it, side = (5, -10) if index % 2 else (-2, 7), "left"
        if index == len(swept) - 1:  # there policies without a quantum are, and to the right stand their names
            beside_it, side = (-7, -4), "right"
        where = 100 * one.hits, one.gap
        axes.annotate(f"{size:,}", where, xytext=beside_it, textcoords="offset points", fontsize=8, ha=side)
    for (spec, one), marker in zip(beside.items(), OTHERS, strict=False):
        axes.plot([100 * one.hits], [one.gap], marker=marker, color=INK, markersize=6)
        axes.annotate(spec, (100 * one.hits, one.gap), (7, -3), textcoords="offset points", fontsize=8)
    axes.margins(x=0.12)
    axes.set_ylim(bottom=0)
    thousands(axes)
    axes.set_xlabel("cache hits (% of prompt tokens): more locality →", labelpad=1)
    axes.set_ylabel("← fairer: computed tokens\napart while both wait", fontsize=8)
    axes.grid(color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)


def point(runs: Iterable[EngineRun]) -> Point:
    found = list(runs)
    limits = [bound.limit for run in found for bound in run.bounds if bound.name.endswith("lpm-gap")]
    known = [limit for limit in limits if limit is not None]
    return Point(
        hits=mean(run.cache_hit_ratio or 0.0 for run in found),
        gap=mean(gap(run) for run in found),
        limit=mean(known) if known and len(known) == len(found) else None,
        throughput=mean(run.throughput for run in found),
    )


def gap(run: EngineRun) -> float:
    """Of what was computed, for every policy alike."""
    asked = dict.fromkeys(run.weights(), 0)
    for call in run.calls:
        asked[call.job.flow] += call.prompt + 2 * call.output
    shown = sorted(asked, key=lambda client: (-asked[client], client))[:MOST_PAIRED]
    weights = dict.fromkeys(shown, 1.0)
    return Drift([call for call in run.calls if call.job.flow in weights], weights).widest
