"""A router: a row for each tenant with its dispatches in logical time, and what each was given while they waited."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairq.plot.shares import Charge, draw_service
from fairq.plot.style import INK, SOFT, Look, Panel, caption, legend, looks, patches, rows, sheet, whole
from fairq.sim.router.run import RouterRun
from fairq.sim.router.scenario import RouterScenario

MOST_ROWS = 16
MOST_DISPATCHES = 120  # in a picture
MOST_COSTS, MOST_TAGS = 40, 24  # written on bars, and above them
TAGS = {"meter": "M", "finish": "F", "round": "round"}  # of the decision's reason


def draw(scenario: RouterScenario, runs: Sequence[RouterRun]) -> Figure:
    tenants = [tenant.id for tenant in scenario.tenants][:MOST_ROWS]
    found = looks(tenants)
    parts = [Panel(0.33 * len(tenants) + 0.15), Panel(1.25, 0.24)]
    figure, panels = sheet(scenario.title, parts * len(runs), tenants, keys=4 + len(tenants))
    for index, run in enumerate(runs):
        axes, below = panels[2 * index], panels[2 * index + 1]
        steps = [step for step in run.as_json()["steps"] if step["kind"] == "dispatch"]
        until = steps[:MOST_DISPATCHES][-1]["time"] + 1
        dispatches(axes, run, steps, tenants, found, until)
        weights = run.weights()
        charges = [
            Charge(step["time"], step["time"] + 1, step["tenant"], step["cost"] / weights[step["tenant"]])
            for step in steps
        ]
        draw_service(below, run.intervals, charges, found, "cost / weight", at_once=True)
        for one in (axes, below):
            one.set_xlim(0, until)
            whole(one)
        axes.tick_params(labelbottom=False)
    panels[-1].set_xlabel("logical time (dispatches)")
    told = [Line2D([], [], marker=6, linestyle="", color=SOFT, label="requests join")]
    longest = max(len(run.order) for run in runs)
    if longest <= MOST_COSTS:
        decided = ", above them what decided: M meter, F finish tag" if longest <= MOST_TAGS else ""
        told.append(Line2D([], [], linestyle="", label=f"on bars the cost{decided}"))
    legend(figure, [*patches(found), *told])
    return figure


def dispatches(
    axes: Axes,
    run: RouterRun,
    steps: Sequence[dict[str, Any]],
    tenants: list[str],
    found: Mapping[str, Look],
    until: int,
) -> None:
    rows(axes, tenants)
    row = {tenant: index for index, tenant in enumerate(tenants)}
    caption(axes, run.label, "" if len(steps) <= MOST_DISPATCHES else f"first {MOST_DISPATCHES} of {len(steps)}")
    bars: dict[str, list[tuple[float, float]]] = {}
    for step in steps[:MOST_DISPATCHES]:
        if step["tenant"] not in row:
            continue
        at, y = step["time"], row[step["tenant"]]
        bars.setdefault(step["tenant"], []).append((at + 0.06, 0.88))
        if len(steps) <= MOST_COSTS:
            axes.text(
                at + 0.5, y, str(step["cost"]), fontsize=7, ha="center", va="center", color=INK,
                bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none"},
            )  # fmt: skip
        tag = step["why"]["values"]
        if len(steps) <= MOST_TAGS and (name := next((key for key in TAGS if key in tag), None)):
            axes.text(at + 0.5, y - 0.43, f"{TAGS[name]} {tag[name]}", fontsize=6.5, ha="center", va="center")
    for name, spans in bars.items():
        axes.broken_barh(spans, (row[name] - 0.3, 0.6), **found[name].bar)
    for tenant in run.scenario.tenants:
        for batch in tenant.joins():
            if tenant.id in row and batch.join < until:
                axes.plot([batch.join], [row[tenant.id] + 0.44], marker=6, markersize=4, color=SOFT, clip_on=False)
