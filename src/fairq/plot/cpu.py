"""A CPU run: a row for each task, and below it how many were ready and did not run."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from fairq.core.policy import Unit
from fairq.measure.cpu import Span, waiting_times
from fairq.plot.shares import Charge, draw_service
from fairq.plot.style import ALARM, INK, LOST, PALE, SOFT, Look, Panel, caption, legend, looks, rows, sheet, whole
from fairq.policies import POLICIES
from fairq.sim.cpu.live import Live
from fairq.sim.cpu.run import CpuRun
from fairq.sim.cpu.scenario import CpuScenario
from fairq.sim.trace import Step

MOST_ROWS = 24
MOST_SLICES = 100  # in a picture; what comes later is left out, and said to be
MOST_MARKED = 2000  # ticks of a run whose levels or priorities are written down
NUMBERS = {  # written on bars
    "mlfq": "on bars: the level (0 is the top)",
    "priority": "on bars: the priority it runs at",
}
WAIT: dict[str, Any] = {"facecolor": PALE, "edgecolor": SOFT, "linewidth": 0.4}
BLOCKED: dict[str, Any] = {"facecolor": "white", "edgecolor": ALARM, "linewidth": 0.6, "hatch": "xxxxx"}


class Held(NamedTuple):
    resource: str
    start: int
    end: int


def draw(scenario: CpuScenario, runs: Sequence[CpuRun]) -> Figure:
    tasks = [task.id for task in scenario.tasks][:MOST_ROWS]
    found = looks(tasks)
    until = min(max(seen(run) for run in runs), max(run.end for run in runs))
    proportional = [run for run in runs if POLICIES[run.policy].unit is Unit.NORMALIZED]
    due = any(task.deadline or task.period for task in scenario.tasks)
    locks = any(task.locks for task in scenario.tasks)
    chart = (0.5 if locks else 0.38 if due else 0.27) * len(tasks) + 0.15
    parts = [Panel(chart), Panel(0.3, 0.1)]
    shown = [panel for run in runs for panel in (*parts, *([Panel(1.3, 0.5)] if run in proportional else []))]
    figure, panels = sheet(scenario.title, shown, tasks, keys=8)
    told: dict[str, Any] = {}
    rest = iter(panels)
    for run in runs:
        axes, strip = next(rest), next(rest)
        told |= gantt(axes, run, tasks, found, until)
        ready(strip, run, until)
        for one in (axes, strip):
            one.set_xlim(0, until)
            whole(one)
        axes.tick_params(labelbottom=False)
        if run in proportional:
            draw_service(next(rest), run.fairness(), list(charges(run)), found, "ticks / weight")
    panels[-1].set_xlabel("time (ticks)")
    legend(figure, list(told.values()))
    return figure


def charges(run: CpuRun) -> Iterator[Charge]:
    """Ticks over the task's first weight, as `run.fairness()` counts."""
    weights = run.weights()
    for line in run.timelines:
        for task, start, end, state in line:
            if state == "run" and task is not None:
                yield Charge(start, end, task, (end - start) / weights[task])


def seen(run: CpuRun) -> int:
    """Up to when a picture can show it."""
    starts = sorted(start for line in run.timelines for _, start, _, state in line if state == "run")
    return starts[MOST_SLICES] if len(starts) > MOST_SLICES else run.end


def figures(run: CpuRun, until: int) -> str:
    """The run's means, and what of it is shown."""
    found = run.measures
    means = {"turnaround": found.turnaround, "waiting": found.waiting, "response": found.response}
    parts = [f"{key} {summary.mean:.4g}" for key, summary in means.items() if summary]
    if any(live.deadline is not None for live in run.lives):
        parts.append(f"{found.misses} missed")
    if run.deadlock:
        parts.append(f"DEADLOCK at {run.deadlock[0]}")
    if until < run.end:
        parts.append(f"first {until} of {run.end} ticks")
    return "  ·  ".join(parts)


def gantt(axes: Axes, run: CpuRun, tasks: list[str], found: dict[str, Look], until: int) -> dict[str, Any]:
    """Returns what needs a legend, by name."""
    rows(axes, tasks)
    caption(axes, run.label, figures(run, until))
    row = {task: index for index, task in enumerate(tasks)}
    told: dict[str, Any] = {}

    def bars(spans: Sequence[Span], y: float, height: float, **style: Any) -> None:
        inside = [(start, min(end, until) - start) for start, end in spans if start < until and end > start]
        if inside:
            axes.broken_barh(inside, (y - height / 2, height), **style)

    for cpu, line in enumerate(run.timelines):
        for task, start, end, state in line:
            if state == "run" and task in row:
                if len(run.timelines) > 1 and start < until:
                    axes.text(
                        (start + min(end, until)) / 2, row[task], str(cpu), ha="center", va="center", fontsize=7,
                        bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
                    )  # fmt: skip
            elif state in ("switch", "blocked") and start < until:
                axes.axvspan(start, min(end, until), **LOST)
                told["lost"] = Patch(label="switch, or an attempt that failed", **LOST)
    waits = waiting_times(run.stories, run.timelines)
    for live, waiting in zip(run.lives, waits, strict=True):
        y = row.get(live.source.id)
        if y is None or live.release >= until:
            continue
        if waiting:  # under the bars of its service, so that few shapes say it
            bars(joined([*waiting, *((start, end) for start, end, _ in pieces(live, run))]), y, 0.2, **WAIT)
            told["wait"] = Patch(label="ready, does not run", **WAIT)
        for start, end, sleeps in away(live, run):
            if sleeps:
                axes.plot([start, min(end, until)], [y, y], linestyle=":", color=SOFT, linewidth=1.4)
                told["sleep"] = Line2D([], [], linestyle=":", color=SOFT, label="sleeps")
            else:
                bars([(start, end)], y, 0.3, **BLOCKED)
                told["blocked"] = Patch(label="waits for a lock", **BLOCKED)
        if locks := [held for held in holds(live, run) if held.start < until]:
            lines(axes, locks, y, until)
            told["lock"] = Line2D([], [], color=INK, linewidth=2.2, label="holds the locks named before it")
        told |= moments(axes, live, y, until)
    for task, y in row.items():
        bars(ran(run).get(task, []), y, 0.62, **found[task].bar)
    if run.policy in NUMBERS and run.scenario.cpus == 1 and run.end <= MOST_MARKED:
        told |= marks(axes, run, row, until)
    return told


def lines(axes: Axes, locks: Sequence[Held], y: float, until: int) -> None:
    """Locks that are held at the same time, one above the other; named where they begin."""
    starts: dict[int, list[tuple[str, float]]] = {}
    lanes: list[int] = []  # when each lane is free again
    step = min(0.14, 0.36 / len(locks))
    for held in sorted(locks, key=lambda one: (one.start, -one.end)):
        lane = next((index for index, over in enumerate(lanes) if over < held.start), len(lanes))
        lanes[lane : lane + 1] = [held.end]
        at = y - 0.38 - step * lane
        axes.plot([held.start, min(held.end, until)], [at, at], color=INK, linewidth=1.8, solid_capstyle="butt")
        starts.setdefault(held.start, []).append((held.resource, at))
    for start, named in starts.items():
        names, heights = zip(*named, strict=True)
        middle = sum(heights) / len(heights)
        axes.annotate(
            ", ".join(names), (start, middle), (-3, 0), textcoords="offset points", fontsize=7, va="center", ha="right"
        )  # fmt: skip


def joined(spans: Sequence[Span]) -> list[Span]:
    """Those that touch as one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def marks(axes: Axes, run: CpuRun, row: dict[str, int], until: int) -> dict[str, Any]:
    """MLFQ's level, or the priority at which a task runs: its own, aged or inherited."""
    found: list[tuple[str, int, int, str]] = []  # task, start, end, number
    before, shown = 0, dict[str, int]()
    for step in run.trace().steps():
        now, job = int(step.time), str(next(iter(step.what["ran"]), None))
        task = job if job in row else job.rpartition("#")[0]
        if step.why is not None and task in row and before < until:
            number = str(ran_at(run.policy, step, shown.get(job, 0), job))
            if found and found[-1][0] == task and found[-1][2:] == (before, number):
                before = found.pop()[1]
            found.append((task, before, min(now, until), number))
        before, shown = now, step.show.get("priority", {})
    for task, start, end, number in found:
        if (end - start) / until > 0.014 + 0.008 * len(number):
            axes.text(
                (start + end) / 2, row[task], number, ha="center", va="center", fontsize=7,
                bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
            )  # fmt: skip
    return {"number": Line2D([], [], linestyle="", label=NUMBERS[run.policy])}


def ran_at(policy: str, step: Step, shown: int, job: str) -> int:
    """The level, or the priority: when it was chosen, or above that what a lock, taken later, gave it."""
    assert step.why
    told = step.why.values
    if policy == "mlfq":
        return int(told["level"])
    chosen = int(told["priority"]) + int(told.get("raised", 0))
    return max(chosen, shown, int(step.show.get("priority", {}).get(job, chosen)))


def moments(axes: Axes, live: Live, y: float, until: int) -> dict[str, Any]:
    """Its arrival and its deadline."""
    told = {"arrival": Line2D([], [], marker=6, linestyle="", color=INK, label="arrives")}
    axes.plot([live.release], [y + 0.47], marker=6, markersize=4.5, color=INK, clip_on=False)
    due = live.deadline
    if due is None or due > until:
        return told
    late = live.completion is None or live.completion > due
    style: dict[str, Any] = {"marker": "v", "markerfacecolor": "white", "markeredgecolor": INK}
    if late:
        style = {"marker": "X", "markerfacecolor": ALARM, "markeredgecolor": ALARM}
    axes.plot([due], [y - 0.46], markersize=5.5, linestyle="", clip_on=False, zorder=5, **style)
    name = "deadline, missed" if late else "deadline, kept"
    return told | {name: Line2D([], [], linestyle="", label=name, **style)}


def ready(axes: Axes, run: CpuRun, until: int) -> None:
    """How many jobs were ready and did not run, over time."""
    changes: dict[int, int] = {0: 0, until: 0}
    for spans in waiting_times(run.stories, run.timelines):
        for start, end in spans:
            changes[start] = changes.get(start, 0) + 1
            changes[end] = changes.get(end, 0) - 1
    times, counts, count = sorted(changes), [], 0
    for at in times:
        count += changes[at]
        counts.append(count)
    axes.fill_between(times, counts, step="post", color=PALE)
    axes.step(times, counts, where="post", color=SOFT, linewidth=1)
    axes.set_ylim(0, max(*counts, 1) + 0.6)
    axes.set_ylabel("queue", fontsize=7.5, rotation=0, ha="right", va="center")
    whole(axes, "y")
    axes.tick_params(axis="y", labelsize=7)


@lru_cache(maxsize=1)
def ran(run: CpuRun) -> dict[str | None, list[Span]]:
    """Task -> when it ran, in order."""
    found: dict[str | None, list[Span]] = {}
    for line in run.timelines:
        for task, start, end, _ in line:
            found.setdefault(task, []).append((start, end))
    return {task: sorted(spans) for task, spans in found.items()}


def pieces(live: Live, run: CpuRun) -> Iterator[tuple[int, int, int]]:
    """(start, end, its own ticks before) of each stretch in which the job ran."""
    until = run.end if live.completion is None else live.completion
    spans = ran(run).get(live.source.id, [])
    done = 0
    for start, end in spans[max(bisect_left(spans, (live.release, 0)) - 1, 0) :]:
        start, end = max(start, live.release), min(end, until)
        if start >= until:
            return
        if start < end:
            yield start, end, done
            done += end - start


def away(live: Live, run: CpuRun) -> Iterator[tuple[int, int, bool]]:
    """(start, end, is it a sleep of its own?) of each time in which the job was not ready."""
    slept: set[int] = set()
    for start, end in live.away or ():
        done = sum(min(stop, start) - begin for begin, stop, _ in pieces(live, run) if begin < start)
        sleeps = done in live.source.sleeps and done not in slept
        slept.add(done)
        yield start, min(end, run.end), sleeps


def holds(live: Live, run: CpuRun) -> Iterator[Held]:
    """From the first tick that needs the lock to the one that gives it back."""
    for lock in live.source.task.locks:
        last = lock.at + lock.for_
        begin = next((s + lock.at - done for s, e, done in pieces(live, run) if done <= lock.at < done + e - s), None)
        over = next((s + last - done for s, e, done in pieces(live, run) if done < last <= done + e - s), run.end)
        if begin is not None:
            yield Held(lock.resource, begin, over)
