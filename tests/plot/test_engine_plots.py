"""Pictures of engines and fleets against what the requests themselves tell."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from tests.cli.program import fairq

import fairq as library
from fairq.plot import figure, save
from fairq.plot.engine import MOST_LINES, MOST_RUNS
from fairq.plot.grown import grown
from fairq.plot.style import short
from fairq.sim.engine.run import EngineRun
from fairq.sim.scenario import build

FLOOD = {
    "layer": "engine",
    "requests": [
        {"client": "loud", "prompt": 200, "output": 100, "count": 60, "every": "0.2"},
        {"client": "quiet", "prompt": 200, "output": 100, "count": 12, "every": "1"},
    ],
    "policies": ["fcfs", "vtc"],
    "pool_tokens": 2_000,
}


def runs_of(given: dict[str, Any]) -> list[EngineRun]:
    scenario = build(given)
    return [scenario.run(spec) for spec in scenario.policies]


def drawn(given: dict[str, Any]) -> tuple[Figure, list[EngineRun]]:
    runs = runs_of(given)
    return figure(runs[0].scenario, runs), runs


def labels(axes: Any) -> str:
    return axes.get_title(loc="left") + axes.get_title(loc="right") + axes.get_ylabel()


def test_service_grows_as_the_requests_were_served() -> None:
    """One request: its prompt at the admission, its answer evenly from the first token to the last; by weight."""
    (run,) = runs_of(
        {
            "layer": "engine",
            "requests": [{"client": "a", "at": 1, "prompt": 100, "output": 51}],
            "clients": [{"id": "a", "weight": 2}],
        }
    )
    (call,) = run.calls
    assert call.first is not None
    assert call.finish is not None
    half = (call.first + call.finish) // 2
    (line,) = grown(run, ["a"], [0, call.first, half, call.finish, 2 * call.finish])
    assert list(line) == pytest.approx([0, 50, 50 + 51 / 2, 50 + 51, 50 + 51], abs=0.01)


def test_an_engine_shows_what_each_policy_does_to_those_who_wait() -> None:
    """FCFS lets the loud client run away; VTC keeps both together, below the bound that is drawn."""
    picture, (_, vtc) = drawn(FLOOD)
    served, apart, filled, waits, fair_served, fair_apart, _, fair_waits = picture.axes[:8]
    assert (labels(served)[:4], labels(fair_served)[:3]) == ("fcfs", "vtc")
    tops = [max(line.get_ydata()) for line in (apart.lines[0], fair_apart.lines[0])]
    assert tops[0] > 2 * tops[1] > 0
    gap = next(bound for bound in vtc.bounds if bound.name == "vtc-gap")
    assert gap.limit is not None
    assert tops[1] <= gap.limit
    assert [float(line.get_ydata()[0]) for line in fair_apart.lines[1:]] == [gap.limit]  # type: ignore[index]
    assert "no bound is known" in labels(apart)
    assert len(apart.lines) == 1
    quiet = [axes.lines[0].get_ydata()[1] for axes in (waits, fair_waits)]  # the median of the one that asks for less
    told = [run.clients()["quiet"]["ttft"]["p50"] for run in runs_of(FLOOD)]
    assert quiet == told
    assert served.get_ylim() == fair_served.get_ylim()
    assert apart.get_ylim() == fair_apart.get_ylim()
    assert filled.get_ylabel() == "cache (%)"


def test_where_the_theorem_says_nothing_no_bound_is_drawn_and_the_reason_is() -> None:
    picture, (run,) = drawn(FLOOD | {"policies": ["vtc"], "head": "skip"})
    assert run.bounds
    apart = picture.axes[1]
    assert "no bound: a head that does not fit is passed over" in labels(apart)
    assert len(apart.lines) == 1


@pytest.mark.parametrize("policy", ["vtc:cost=a10g", "vtc:output=4"])
def test_a_bound_in_other_units_than_what_is_drawn_is_not_drawn(policy: str) -> None:
    picture, (run,) = drawn(FLOOD | {"policies": [policy]})
    assert all(bound.holds for bound in run.bounds)
    assert "no bound: it is about other costs" in labels(picture.axes[1])
    assert len(picture.axes[1].lines) == 1


def test_names_that_are_too_long_keep_their_ends() -> None:
    assert short("team/alice", 10) == "team/alice"
    assert short("org/team/alice", 8) == "…m/alice"
    assert short("営業部第一課", 8) == "…第一課"


def test_the_cache_and_the_batch_are_as_full_as_the_run_says() -> None:
    """What is drawn, over all of the time, is what the measures say on average."""
    picture, (run, _) = drawn(FLOOD | {"occupancy": True})
    (_, one), *_ = run.filled()
    filled, times = one.filled(), (np.diff(np.array([start for start, _, _ in one.kv.points()])) / run.engine.now)
    assert sum(mean for _, mean, _ in one.kv.points()) * times[0] / one.engine.limits.blocks == pytest.approx(
        filled.kv_mean
    )
    sequences = next(axes for axes in picture.axes if axes.get_ylabel() == "batch").lines[0]
    heights = np.asarray(sequences.get_ydata(), dtype=float)
    assert heights.max() <= filled.batch_max
    assert heights[:-1].sum() * times[0] == pytest.approx(filled.batch_mean, rel=0.01)


def test_a_thousand_clients_fit_into_a_picture(tmp_path: Path) -> None:
    """The largest have lines and all of them a band; waits stand in groups; and the file stays small."""
    given = {"layer": "engine", "workload": "poisson:rate=40,clients=1000,duration=60,input=32,output=8"}
    scenario = build(given | {"policies": ["vtc"], "preset": "rtx4090-llama3.1-8b"})
    runs = [scenario.run("vtc")]
    assert len(runs[0].weights()) > 800
    path = tmp_path / "many.svg"
    save(scenario, runs, path)
    assert path.stat().st_size < 300_000
    text = path.read_text()
    assert len(set(re.findall(r">c\d+<", text))) == MOST_LINES
    assert re.search(r"largest \d+ of \d+ clients", text)
    assert re.search(r"clients in groups of \d+", text)
    assert "all clients: 10 % to 90 %" in text


def test_more_runs_than_fit_are_said_to_be_left_out() -> None:
    result = library.run(FLOOD | {"policies": ["fcfs"]}, sweep={"seed": range(MOST_RUNS + 2)})
    assert f"first {MOST_RUNS} of {MOST_RUNS + 2} runs" in labels(result.figure().axes[0])


def test_a_sweep_over_the_quantum_is_fairness_against_locality() -> None:
    given = {
        "layer": "engine",
        "workload": "shared-prefix:rate=8,duration=15,clients=4,prefix=1024",
        "preset": "rtx4090-llama3.1-8b",
        "pool_tokens": 9_000,
        "prefix_cache": True,
        "reserve": "limit",
    }
    quanta = [1, 1_000, 100_000]
    result = library.run(given, "dlpm", "lpm", sweep={"quantum": quanta, "seed": [1, 2]})
    picture = result.figure()
    plane, apart, hits, _ = picture.axes
    assert "means of 2 runs" in labels(plane)
    shown = {text.get_text() for text in plane.texts}
    assert shown == {"1", "1,000", "100,000", "lpm"}
    means = [
        100 * np.mean([run.cache_hit_ratio for run in result.runs if run.params.get("quantum") == size])  # type: ignore[attr-defined]
        for size in quanta
    ]
    assert list(hits.lines[0].get_ydata()) == pytest.approx(means)
    assert list(plane.lines[0].get_xdata()) == pytest.approx(means)
    low, high = apart.get_ylim()
    assert all(low < float(y) < high for line in apart.lines for y in line.get_ydata())
    bound = [float(y) for y in apart.lines[-1].get_ydata()]
    assert bound[2] - bound[0] == pytest.approx(2 * (100_000 - 1), rel=0.2)  # 2(U + Q); U by what ran together


def test_a_fleet_has_a_picture_by_the_command(tmp_path: Path) -> None:
    path = tmp_path / "fleet.svg"
    command = ["sim", "fleet", "--workload", "poisson:duration=10", "--engines", "2", "--policy", "vtc"]
    said = fairq(*command, "--plot", str(path))
    assert said.status == 0, said.err
    assert "no bound: the theorem is about one engine" in path.read_text()
