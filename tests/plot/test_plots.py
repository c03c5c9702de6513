"""Pictures show what the runs did, to everybody."""

import re
import sys
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from typer.testing import CliRunner

from fairq.cli.sim import app
from fairq.core.errors import ConfigError
from fairq.plot import figure, save
from fairq.plot.cpu import away, holds
from fairq.plot.link import poured
from fairq.plot.style import COLOURS, INK, looks
from fairq.sim.cpu.run import CpuRun
from fairq.sim.link.run import LinkRun
from fairq.sim.link.scenario import LinkScenario
from fairq.sim.scenario import Run, Scenario, build, load

GALLERY = Path(__file__).parents[2] / "examples" / "scenarios"


def run_of(name: str, *specs: str) -> tuple[Scenario, list[Run]]:
    scenario = load(GALLERY / f"{name}.yaml", specs)
    return scenario, [scenario.run(spec) for spec in scenario.policies]


def bars(axes: Any) -> dict[str, list[tuple[float, float]]]:
    """row name -> (start, end) of its thick bars, in order"""
    names = [label.get_text() for label in axes.get_yticklabels()]
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for collection in axes.collections:
        if not isinstance(collection, PolyCollection):
            continue
        for path in collection.get_paths():
            (x0, y0), (x1, y1) = path.vertices.min(axis=0), path.vertices.max(axis=0)
            if y1 - y0 > 0.5:
                found[names[round((y0 + y1) / 2)]].append((float(x0), float(x1)))
    return {name: sorted(spans) for name, spans in found.items()}


# What they show
def test_a_gantt_shows_the_articles_schedule() -> None:
    drawn = figure(*run_of("cpu/lab", "srtf", "rr:quantum=2"))
    assert bars(drawn.axes[0]) == {"A": [(0, 1), (9, 15)], "B": [(1, 2), (3, 6)], "C": [(2, 3)], "D": [(6, 9)]}
    assert bars(drawn.axes[2])["A"] == [(0, 2), (5, 7), (11, 13), (14, 15)]
    assert "waiting 2.75" in drawn.axes[0].get_title(loc="right")


def test_a_gantt_shows_who_held_the_mutex_on_mars() -> None:
    """ASI/MET runs from 0 to 2, the medium task to 22, ASI/MET to 24 where it lets go."""
    _, (none, inheritance) = run_of("cpu/pathfinder", "priority:protocol=none", "priority:protocol=inheritance")
    assert isinstance(none, CpuRun)
    assert isinstance(inheritance, CpuRun)
    low, high, _ = none.lives
    assert list(holds(low, none)) == [("mutex", 0, 24)]
    assert list(holds(high, none)) == [("mutex", 24, 25)]
    assert list(away(high, none)) == [(1, 24, False)]
    assert list(holds(inheritance.lives[0], inheritance)) == [("mutex", 0, 4)]


def test_a_gantt_shows_the_inherited_priority_and_the_level() -> None:
    protocols = ("none", "inheritance", "immediate-ceiling")
    drawn = figure(*run_of("cpu/pathfinder", *(f"priority:protocol={name}" for name in protocols)))
    ran_at = [[text.get_text() for text in axes.texts if text.get_text().isdigit()] for axes in drawn.axes[::2]]
    assert sorted(ran_at[0]) == ["1", "1", "1", "5", "9"]
    assert sorted(ran_at[1]) == ["1", "1", "5", "9", "9"]  # ASI/MET holds what bc_dist waits for
    assert sorted(ran_at[2]) == ["1", "5", "9", "9"]  # from the moment that it locks
    levels = figure(*run_of("cpu/mlfq-learns", "mlfq:quantum=10")).axes[0].texts
    assert [text.get_text() for text in levels] == ["0", "1", "2", "0", "1", "2"]


def test_sleeping_is_not_being_blocked() -> None:
    sleeper = build({"layer": "cpu", "tasks": [{"id": "s", "bursts": [2, 3, 4]}, {"id": "t", "burst": 4}]}).run("fcfs")
    assert isinstance(sleeper, CpuRun)
    assert list(away(sleeper.lives[0], sleeper)) == [(2, 5, True)]


def test_a_missed_deadline_is_marked_and_counted() -> None:
    drawn = figure(*run_of("cpu/rm-misses-edf-holds", "rm", "edf"))
    crosses = [[line for line in axes.lines if line.get_marker() == "X"] for axes in drawn.axes]
    assert [len(found) for found in crosses] == [1, 0, 0, 0]
    assert list(crosses[0][0].get_xdata()) == [7]


def test_a_link_shows_every_packet_when_it_was_sent() -> None:
    drawn = figure(*run_of("link/fluid-and-packets", "wfq"))
    assert bars(drawn.axes[0]) == {"f1": [(3, 4), (4, 5), (5, 7), (11, 13)], "f2": [(0, 3), (7, 9), (9, 11)]}
    diamonds = {float(at) for line in drawn.axes[0].lines if line.get_marker() == "D" for at in line.get_xdata()}
    assert diamonds == {3, 5, 9, 13, 11}  # the finishes in GPS


def test_a_picture_of_drr_counts_the_visits_that_sent_nothing() -> None:
    """Quantum 100, by hand: 50 goes at the third visit, 200 at the fourth; then ten send nothing, until f1 has 500."""
    drawn = figure(*run_of("link/drr-small-quantum", "drr:quantum=100"))
    first = min((text for text in drawn.axes[0].texts if text.get_position()[1] == 1), key=lambda t: t.get_position())
    assert (first.get_position()[0], first.get_text()) == (500, "skip 10")  # f1's 500, sent from 250 to 750
    assert "on bars: skip: visits in vain" in legend_of(drawn)
    assert "on bars" not in legend_of(figure(*run_of("link/lying-lengths", "sfq")))  # there is no room for them


def legend_of(drawn: Figure) -> str:
    return "\n".join(text.get_text() for legend in drawn.legends for text in legend.get_texts())


def test_what_is_fair_does_not_depend_on_what_was_said() -> None:
    """Two flows of twenty packets of 10, served at once: the first packets of both are over at 20."""
    drawn = figure(*run_of("link/lying-lengths", "sfq"))
    diamonds = [list(line.get_xdata()) for line in drawn.axes[0].lines if line.get_marker() == "D"]
    assert diamonds == [[*range(20, 401, 20)]] * 2


@pytest.mark.parametrize("name", ["fluid-and-packets", "eights-and-twos", "wf2q-burst", "stalled-link"])
def test_the_drawn_fluid_has_served_each_packet_when_gps_ends_it(name: str) -> None:
    scenario = load(GALLERY / "link" / f"{name}.yaml")
    assert isinstance(scenario, LinkScenario)
    fluid = LinkRun(scenario, "gps")
    curves, sent = poured(fluid), dict.fromkeys((flow.id for flow in scenario.all_flows()), 0)
    for job, _, finish in fluid.departures:
        sent[job.flow] += job.size or 0
        times, sizes = zip(*curves[job.flow], strict=True)
        assert np.interp(float(fluid.time(finish)), times, sizes) == pytest.approx(sent[job.flow])


def test_a_router_shows_order_and_service_of_each_joint_interval() -> None:
    drawn = figure(*run_of("router/lab", "sfq"))
    order = sorted((start, tenant) for tenant, spans in bars(drawn.axes[0]).items() for start, _ in spans)
    assert "".join(tenant for _, tenant in order) == "ABBCBBCABBCBCA"
    meters = [text.get_text() for text in drawn.axes[0].texts if text.get_text().startswith("M ")]
    assert meters == [f"M {meter}" for meter in (0, 0, 2, 2, 4, 6, 6, 8, 8, 10, 10, 12, 14, 16)]
    assert [text.get_text() for text in drawn.axes[1].texts if "Jain" in text.get_text()] == [
        "Jain 0.90",
        "Jain 0.97",
        "Jain 0.50",
    ]
    ends = [(float(line.get_xdata()[-1]), float(line.get_ydata()[-1])) for line in drawn.axes[1].lines[:2]]
    assert ends == [(3, 8), (3, 4)]


def test_a_cluster_shows_dominant_shares() -> None:
    drawn = figure(*run_of("cluster/drf-paper", "drf"))
    assert [float(line.get_ydata()[-1]) for line in drawn.axes[0].lines] == pytest.approx([2 / 3, 2 / 3])


@pytest.mark.parametrize("name", ["cpu/deadlock", "cpu/waking-sleeper", "cpu/quantum-too-small", "router/departments"])
def test_every_kind_of_scenario_is_drawn(name: str, tmp_path: Path) -> None:
    scenario, runs = run_of(name)
    save(scenario, runs[:2], tmp_path / "it.svg")
    text = (tmp_path / "it.svg").read_text()
    assert scenario.title in text
    assert all(run.spec in text for run in runs[:2])


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(GALLERY.glob("*/*.yaml")), ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_the_whole_gallery_is_drawn(file: Path, tmp_path: Path) -> None:
    scenario, runs = run_of(f"{file.parent.name}/{file.stem}")
    save(scenario, runs, tmp_path / "it.svg")
    text = (tmp_path / "it.svg").read_text()
    assert all(run.spec in text for run in runs)


def test_many_processors_tasks_and_ticks_are_cut_to_what_can_be_read(tmp_path: Path) -> None:
    tasks = [{"id": f"a task with a long name {n}", "burst": 50} for n in range(40)]
    scenario = build({"layer": "cpu", "cpus": 3, "tasks": tasks, "policies": ["rr"]})
    drawn = figure(scenario, [scenario.run("rr")])
    assert len(drawn.axes[0].get_yticks()) == 24
    assert re.search(r"first \d+ of \d+ ticks", drawn.axes[0].get_title(loc="right"))


def test_names_may_be_of_any_kind(tmp_path: Path) -> None:
    names = ["優先度", "a<b&c", "$x_1$", "é" * 40]
    scenario = build({"layer": "cpu", "title": "公平", "tasks": [{"id": name, "burst": 3} for name in names]})
    for path in (tmp_path / "it.svg", tmp_path / "it.png"):
        save(scenario, [scenario.run("rr")], path)
    text = (tmp_path / "it.svg").read_text()
    assert "優先度" in text
    assert "a&lt;b&amp;c" in text
    assert "$x_1$" in text


def test_a_cluster_in_which_nothing_happened_is_an_empty_picture() -> None:
    user = {"id": "A", "demand": {"cpu": 1}, "arrival": 9, "tasks": 1}
    scenario = build({"layer": "cluster", "capacity": {"cpu": 1}, "users": [user], "horizon": 5, "policies": ["drf"]})
    assert figure(scenario, [scenario.run("drf")]).axes


def test_many_jobs_are_drawn_in_time_that_grows_with_the_picture() -> None:
    scenario = build({"layer": "cpu", "tasks": [{"id": "T", "period": 2, "wcet": 1}], "horizon": 40_000})
    run = scenario.run("edf")
    assert "first 200 of 40000 ticks" in figure(scenario, [run]).axes[0].get_title(loc="right")


def test_the_same_runs_make_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        save(*run_of("cluster/drf-paper", "drf"), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


# To whom
def linear(colour: str) -> Any:
    values = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


# Viénot, Brettel, Mollon 1999: linear RGB as people without L or M cones see it.
PROTANOPIA = np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]])
DEUTERANOPIA = np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]])


@pytest.mark.parametrize("seen_as", [np.eye(3), PROTANOPIA, DEUTERANOPIA], ids=["all", "protanopia", "deuteranopia"])
def test_colours_stay_apart_for_every_kind_of_sight(seen_as: Any) -> None:
    for one, other in combinations(COLOURS, 2):
        assert np.linalg.norm(seen_as @ linear(one) - seen_as @ linear(other)) > 0.06


def test_colour_is_never_alone() -> None:
    found = looks(str(n) for n in range(36))
    assert len({(look.colour, look.hatch) for look in found.values()}) == 36
    neighbours = list(found.values())
    assert all(one.hatch != other.hatch for one, other in pairwise(neighbours))
    assert all(look.bar["edgecolor"] == INK for look in neighbours)


def test_text_and_outlines_are_dark_on_white() -> None:
    luminance = float(np.array([0.2126, 0.7152, 0.0722]) @ linear(INK))
    assert 1.05 / (luminance + 0.05) > 7


# What may go wrong
def test_without_matplotlib_there_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, runs = run_of("cluster/drf-paper", "drf")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"matplotlib.*not installed: pip install 'fairq\[plot\]'") as caught:
        figure(scenario, runs)
    assert "\n" not in str(caught.value)


def test_the_command_says_so_before_it_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    endless = ["cpu", "--task", "A:0:100000000", "--task", "B:0:100000000", "--policy", "rr", "--plot"]
    told = CliRunner().invoke(app, [*endless, "it.gif"]).exception
    assert "must end in" in str(told)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = CliRunner().invoke(app, [*endless, str(tmp_path / "it.svg")]).exception
    assert "pip install" in str(told)


@pytest.mark.parametrize("name", ["it.gif", "it", "it.SVG.txt"])
def test_other_kinds_of_files_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"must end in \.svg, \.png, \.pdf"):
        save(*run_of("cluster/drf-paper", "drf"), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        save(*run_of("cluster/drf-paper", "drf"), tmp_path / "nowhere" / "it.svg")
