"""A cluster: how dominant shares grow pick by pick, and who holds what of each resource after the last one."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairq.plot.style import PALE, Look, Panel, beside, caption, end_labels, legend, looks, patches, sheet, whole
from fairq.sim.cluster.run import ClusterRun
from fairq.sim.cluster.scenario import ClusterScenario

MOST_USERS = 12
MOST_STEPS = 400  # in a picture


def draw(scenario: ClusterScenario, runs: Sequence[ClusterRun]) -> Figure:
    users = [user.id for user in scenario.users][:MOST_USERS]
    found = looks(users)
    used = 0.24 * len(scenario.capacity) + 0.15
    parts = [Panel(1.5), Panel(used, 0.5)]
    figure, panels = sheet(scenario.title, parts * len(runs), scenario.capacity, keys=len(users))
    for index, run in enumerate(runs):
        shares(panels[2 * index], run, users, found)
        held(panels[2 * index + 1], run, users, found)
    legend(figure, patches(found))
    return figure


def shares(axes: Axes, run: ClusterRun, users: list[str], found: Mapping[str, Look]) -> None:
    tasks = "  ".join(f"{user} {count}" for user, count in run.as_json()["tasks"].items() if user in found)
    steps = run.steps[:MOST_STEPS]
    cut = f"  ·  first {MOST_STEPS} of {len(run.steps)} steps" if len(run.steps) > MOST_STEPS else ""
    caption(axes, run.label, f"tasks after the last pick: {tasks}{cut}")
    timed = any(time for time, *_ in steps)
    axes.set_xlabel("time" if timed else "picks", labelpad=1)
    axes.set_ylabel("dominant share", fontsize=7.5)
    last = []
    for user in users:
        own = [(float(time if timed else n), float(s)) for n, (time, _, who, s) in enumerate(steps, 1) if who == user]
        at_last = {0.0: 0.0} | dict(own)  # of several steps at one time, how things stood after them
        over = float(steps[-1][0] if timed and steps else len(steps))
        line = [*at_last.items(), (over, own[-1][1] if own else 0.0)]
        look = found[user]
        axes.step(*zip(*line, strict=True), where="post", marker=look.marker, markersize=4, **look.line)
        last.append((*line[-1], user))
    axes.set_ylim(0, max(1.0, *(y for _, y, _ in last)) * 1.04)
    axes.grid(axis="y", color=PALE, linewidth=0.6)
    axes.margins(x=0.01)
    whole(axes)
    end_labels(axes, last)


def held(axes: Axes, run: ClusterRun, users: list[str], found: Mapping[str, Look]) -> None:
    room = run.at_last_pick()
    names = list(room.capacity)
    left = dict.fromkeys(names, 0.0)
    for user in users:
        for index, resource in enumerate(names):
            part = room.held.get(user, {}).get(resource, 0) / room.capacity[resource]
            if part:
                axes.barh(index, part, 0.62, left=left[resource], **found[user].bar)
                left[resource] += part
    for index, resource in enumerate(names):
        beside(axes, f"{room.used[resource]} of {room.capacity[resource]}", 1.0, index)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    axes.tick_params(axis="y", length=0)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=PALE, linewidth=0.6)
