"""Engines: what each client has been served, how far those who wait drift apart, how full it was, and who waited."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from fairq.measure.series import PIECES, Series
from fairq.plot import quantum
from fairq.plot.grown import grown
from fairq.plot.style import (
    BOUND,
    INK,
    PALE,
    SOFT,
    Look,
    Panel,
    caption,
    end_labels,
    legend,
    looks,
    markers,
    sheet,
    short,
    thousands,
)
from fairq.sim.engine.drift import INPUT, OUTPUT, Drift
from fairq.sim.engine.run import EngineRun
from fairq.sim.engine.scenario import SECOND, EngineScenario
from fairq.sim.sweep import run as run_again

MOST_RUNS = 6
MOST_LINES = 6  # clients with a line of their own
MOST_PAIRED = 12  # clients whose pairs are looked at
MOST_NAMED = 30  # clients with a place of their own among the waits; more stand in groups
GROUPS = 40
LETTERS = 110  # below a picture
MOMENTS = 120  # of a line
PANELS = (Panel(1.5, 0.62), Panel(0.95, 0.16), Panel(0.8, 0.16), Panel(0.95, 0.46))
GROUND: dict[str, Any] = {"facecolor": PALE, "edgecolor": "none"}
FULL: dict[str, Any] = {"facecolor": "#cfe3f1", "edgecolor": SOFT, "linewidth": 0.0, "hatch": "//"}
BATCH: dict[str, Any] = {"color": INK, "linewidth": 1.1}


def draw(scenario: EngineScenario, runs: Sequence[EngineRun]) -> Figure:
    if quantum.is_swept(runs):
        return quantum.draw(scenario, runs)
    shown = [again(run) for run in runs[:MOST_RUNS]]
    asked = demand(shown[0])
    found = looks(sorted(asked[:MOST_LINES]))
    figure, panels = sheet(scenario.title, PANELS * len(shown), found, keys=len(found) + 5)
    last = max((call.arrival for run in shown for call in run.calls), default=0)
    until = last or max(run.makespan for run in shown) or SECOND  # what comes later is the emptying of the queues
    moments = [until * step // MOMENTS for step in range(MOMENTS + 1)]
    rows = [panels[at : at + len(PANELS)] for at in range(0, len(panels), len(PANELS))]
    ends = []
    for run, (served, apart, filled, waits) in zip(shown, rows, strict=True):
        cut = f"first {MOST_RUNS} of {len(runs)} runs  ·  " if run is shown[0] and len(runs) > len(shown) else ""
        caption(served, run.label, cut + figures(run))
        ends.append(service(served, run, found, asked, moments))
        drift(apart, run, asked[:MOST_PAIRED], len(asked), moments)
        occupancy(filled, run)
        first_tokens(waits, run, asked)
        for axes in (served, apart, filled):
            axes.set_xlim(0, until / SECOND)
            axes.tick_params(labelbottom=axes is filled)
        filled.set_xlabel("time (s)", labelpad=1)
        for axes in (served, apart, filled, waits):
            axes.grid(color=PALE, linewidth=0.6)
            axes.set_axisbelow(True)
    for column in (0, 1, 3):  # the same scale for every policy
        high = max(row[column].get_ylim()[1] for row in rows)
        for row in rows:
            row[column].set_ylim(0, high)
            thousands(row[column])
    for row, names in zip(rows, ends, strict=True):
        end_labels(row[0], names)
    legend(figure, [*markers(found), *keys(len(asked) > len(found))])
    return figure


def again(run: EngineRun) -> EngineRun:
    """A run is a function of its scenario: one that was not looked at closely is done again, and watched."""
    if run.filled():
        return run
    watched = run_again((run.scenario.for_pictures(), run.spec, dict(run.swept)))
    assert isinstance(watched, EngineRun)
    return watched


def demand(run: EngineRun) -> list[str]:
    """The clients, those first who ask for most service."""
    asked = dict.fromkeys(run.weights(), 0)
    for call in run.calls:
        asked[call.job.flow] += call.prompt + 2 * call.output
    return sorted(asked, key=lambda client: (-asked[client], client))


def figures(run: EngineRun) -> str:
    difference = "" if run.difference is None else f"  ·  service difference {run.difference.mean:,.4g}"
    hits = "" if run.cache_hit_ratio is None else f"  ·  cache hits {run.cache_hit_ratio:.1%}"
    return f"{run.throughput:,.4g} tokens/s{difference}{hits}"


def service(
    axes: Axes, run: EngineRun, found: Mapping[str, Look], asked: Sequence[str], moments: Sequence[int]
) -> list[tuple[float, float, str]]:
    """Returns where lines end, with names."""
    served, times = grown(run, asked, moments), [moment / SECOND for moment in moments]
    if len(asked) > len(found):
        low, high = np.quantile(served, (0.1, 0.9), axis=0)
        axes.fill_between(times, low, high, **GROUND)
        axes.plot(times, np.median(served, axis=0), color=SOFT, linewidth=1.0)
    ends = []
    for index, client in enumerate(asked[: len(found)]):
        look = found[client]
        axes.plot(times, served[index], marker=look.marker, markevery=(index * 3, 18), markersize=4, **look.line)
        ends.append((times[-1], float(served[index][-1]), short(client, 10)))
    axes.set_ylim(bottom=0)
    axes.set_ylabel("service / weight", fontsize=7.5)
    return ends


def drift(axes: Axes, run: EngineRun, paired: Sequence[str], clients: int, moments: Sequence[int]) -> None:
    """How far the service of two who wait has come apart since they both do, and what the theorem allows."""
    local = run.policy == "dlpm"  # whose theorem is about what was computed, without weights
    weights = {client: 1.0 if local else float(run.weights()[client]) for client in paired}
    calls = [call for call in run.calls if call.job.flow in weights]
    seen = Drift(calls, weights, moments, cached=local).seen
    times = [moment / SECOND for moment in moments]
    axes.fill_between(times, seen, **GROUND)
    axes.plot(times, seen, color=INK, linewidth=1.0)
    bound = next((one for one in run.bounds if one.name.endswith("-gap")), None)
    limit = bound.limit if bound is not None and counts_alike(run) else None
    if limit is not None:
        axes.axhline(limit, **BOUND)
        told = f"bound {limit:,.0f}"
    elif bound is None:
        told = "no bound is known"
    else:
        told = f"no bound: {bound.unless or 'it is about other costs than 1 and 2 per token'}"
    axes.set_ylim(0, 1.3 * max(limit or 0, *seen, 1e-9))
    among = f", largest {len(paired)} of {clients} clients" if clients > len(paired) else ""
    axes.set_title(f"{told}  ·  worst {max(seen):,.0f}{among}", loc="right", fontsize=7.5, y=1.0, pad=-9, color=INK)
    axes.set_ylabel("apart while\nboth wait", fontsize=7.5)


def counts_alike(run: EngineRun) -> bool:
    """Are the policy's bounds about service as it is drawn?"""
    charged = run.params.get("cost", "weights"), run.params.get("input", INPUT), run.params.get("output", OUTPUT)
    return charged == ("weights", INPUT, OUTPUT)


def occupancy(axes: Axes, run: EngineRun) -> None:
    """Of several engines the mean share of their caches, and all of their sequences."""
    filled = run.filled()
    beside = axes.twinx()
    kv, batch = [], []
    times = [step * max(one.kv.piece for _, one in filled) for step in range(2 * PIECES + 1)]
    for _, one in filled:
        blocks = one.engine.limits.blocks
        kv.append(resampled(one.kv, times, 1 / blocks))
        batch.append(resampled(one.batch, times, 1.0))
    share, sequences = np.mean(kv, axis=0), np.sum(batch, axis=0)
    seconds = [time / SECOND for time in times]
    axes.fill_between(seconds, share * 100, step="post", **FULL)
    beside.plot(seconds, sequences, drawstyle="steps-post", **BATCH)
    axes.set_ylim(0, 105)
    axes.set_yticks([0, 50, 100])
    axes.set_ylabel("cache (%)", fontsize=7.5)
    beside.set_ylim(0, 1.05 * max(float(sequences.max()), 1.0))
    beside.set_ylabel("batch", fontsize=7.5)
    beside.spines["right"].set_visible(True)


def resampled(series: Series, times: Sequence[int], share: float) -> Any:
    """The means of a series in pieces as long as those between `times`."""
    found = np.zeros(len(times))
    long = times[1] // series.piece
    for start, mean, _ in series.points():
        at = start // times[1]
        if at < len(found):
            found[at] += mean * share / long
    return found


def first_tokens(axes: Axes, run: EngineRun, asked: Sequence[str]) -> None:
    """Of each client half of its requests waited no longer than the mark, 99 % no longer than the line's end."""
    told = run.clients()
    waits = [
        (told[client]["ttft"]["p50"], told[client]["ttft"]["p99"]) if told[client]["ttft"] else None for client in asked
    ]
    if len(asked) <= MOST_NAMED:
        room = max(LETTERS // len(asked), 4)
        axes.set_xticks(range(len(asked)), [short(client, room) for client in asked], fontsize=7)
        shown = list(enumerate(waits))
        axes.set_xlim(-0.7, len(asked) - 0.3)
        axes.set_xlabel("clients, those first that ask for most", labelpad=1, fontsize=8)
    else:
        size = max(-(-len(asked) // GROUPS), 2)
        shown = []
        for at in range(0, len(asked), size):
            group = [one for one in waits[at : at + size] if one]
            half = sorted(one[0] for one in group)
            shown.append((at, (half[len(half) // 2], max(one[1] for one in group)) if group else None))
        axes.set_xlim(-size, len(asked))
        axes.set_xlabel(
            f"clients in groups of {size}, those first that ask for most: the middle one, and the worst p99",
            labelpad=1,
            fontsize=8,
        )
    there = [(at, one) for at, one in shown if one]
    axes.vlines(
        [at for at, _ in there], [one[0] for _, one in there], [one[1] for _, one in there], color=SOFT, linewidth=1.2
    )
    axes.plot(
        [at for at, _ in there], [one[0] for _, one in there], linestyle="", marker="o", markersize=3.5, color=INK
    )
    axes.plot([at for at, _ in there], [one[1] for _, one in there], linestyle="", marker="_", markersize=6, color=INK)
    axes.set_ylim(0, 1.06 * max((one[1] for _, one in there), default=1.0))
    axes.set_ylabel("first token\nafter (s)", fontsize=7.5)


def keys(more: bool) -> list[Any]:
    told: list[Any] = [
        Line2D([], [], label="bound of the theorem", **BOUND),
        Patch(label="cache in use", **FULL),
        Line2D([], [], label="batch: sequences", **BATCH),
        Line2D([], [], color=SOFT, marker="o", markersize=3.5, markerfacecolor=INK, label="first token: p50 to p99"),
    ]
    if more:
        told.insert(0, Patch(label="all clients: 10 % to 90 %, median", **GROUND))
    return told
