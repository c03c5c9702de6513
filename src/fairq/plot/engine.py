"""An engine: what each client has been served over time, and how long its requests waited for their first token."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairq.plot.style import PALE, Look, Panel, caption, end_labels, legend, looks, markers, sheet
from fairq.sim.engine.run import EngineRun
from fairq.sim.engine.scenario import SECOND, EngineScenario

MOST_CLIENTS = 6
MOST_POINTS = 120  # of a client


def draw(scenario: EngineScenario, runs: Sequence[EngineRun]) -> Figure:
    served = runs[0].clients()
    clients = sorted(served, key=lambda client: (-served[client]["service"], client))[:MOST_CLIENTS]
    found = looks(sorted(clients))
    cut = len(served) > len(clients)
    figure, panels = sheet(scenario.title, [Panel(1.5), Panel(1.0, 0.14)] * len(runs), clients, keys=len(clients))
    last = max(call.arrival for run in runs for call in run.calls)
    until = (last or max(run.makespan for run in runs)) / SECOND  # what comes later is the emptying of the queues
    for index, run in enumerate(runs):
        above, below = panels[2 * index], panels[2 * index + 1]
        service(above, run, found, f"largest {len(clients)} of {len(served)} clients  ·  " if cut else "")
        first_tokens(below, run, found)
        for axes in (above, below):
            axes.set_xlim(0, until)
            axes.grid(color=PALE, linewidth=0.6)
            axes.set_axisbelow(True)
        above.tick_params(labelbottom=False)
    panels[-1].set_xlabel("time (s)")
    legend(figure, markers(found))
    return figure


def service(axes: Axes, run: EngineRun, found: Mapping[str, Look], cut: str) -> None:
    difference = "" if run.difference is None else f"  ·  service difference {run.difference.mean:.4g}"
    caption(axes, run.label, f"{cut}{run.throughput:.4g} tokens/s{difference}")
    times = [0.0, *run.service.grid.times()]
    weights = run.weights()
    ends = []
    for client, look in found.items():
        grown = run.service.accumulated().get(client)
        if grown is not None:
            line = [0.0, *(units / float(weights[client]) for units in grown)]
            axes.plot(times, line, marker=look.marker, markersize=4, **look.line)
            ends.append((times[-1], line[-1], client))
    axes.set_ylim(bottom=0)
    axes.set_ylabel("service / weight", fontsize=7.5)
    end_labels(axes, ends)


def first_tokens(axes: Axes, run: EngineRun, found: Mapping[str, Look]) -> None:
    for client, look in found.items():
        waits = [
            (call.arrival / SECOND, (call.first - call.arrival) / SECOND)
            for call in run.calls
            if call.job.flow == client and call.first is not None
        ]
        shown = waits[:: -(-len(waits) // MOST_POINTS) or 1]
        if shown:
            axes.plot(*zip(*shown, strict=True), linestyle="", marker=look.marker, markersize=3, color=look.colour)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("first token\nafter (s)", fontsize=7.5)
