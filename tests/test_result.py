"""`fairq.run` and what its Result gives: values of the article's lab, frames, files, reasons."""

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fairq
from fairq.core.errors import ConfigError, UnknownName
from fairq.sim.scenario import build
from fairq.sim.source import InvalidScenario

TASKS = (("A", 0, 7), ("B", 1, 4), ("C", 2, 1), ("D", 4, 3))
LAB = {"layer": "cpu", "tasks": [{"id": i, "arrival": a, "burst": b} for i, a, b in TASKS]}
LINK = {
    "layer": "link",
    "rate": 3,
    "packets": [{"flow": "A", "arrival": 0, "size": 8, "count": 3}, {"flow": "B", "arrival": 0, "size": 2, "count": 7}],
}
ROUTER = {"layer": "router", "tenants": [{"id": "A", "cost": 8, "count": 3}, {"id": "B", "cost": 2, "count": 9}]}
CLUSTER = {
    "layer": "cluster",
    "capacity": {"cpu": 9, "mem": 18},
    "users": [
        {"id": "A", "demand": {"cpu": 1, "mem": 4}, "tasks": 6, "duration": 4},
        {"id": "B", "demand": {"cpu": 3, "mem": 1}, "tasks": 6, "duration": 3},
    ],
}


def test_the_articles_lab() -> None:
    """Its table after FCFS: mean turnaround 9.5, waiting and response 5.75."""
    result = fairq.run(LAB, "fcfs", "srtf")
    assert repr(result) == "<fairq.Result cpu: fcfs, srtf>"
    jobs = [row for row in result.rows("jobs") if row["policy"] == "fcfs"]
    assert [(row["task"], row["completion"], row["turnaround"], row["waiting"], row["response"]) for row in jobs] == [
        *(("A", 7, 7, 0, 0), ("B", 11, 10, 6, 6), ("C", 12, 10, 9, 9), ("D", 15, 11, 8, 8))
    ]
    first, second = result.rows()
    assert (first["turnaround mean"], first["waiting mean"], first["response mean"]) == (9.5, 5.75, 5.75)
    assert second["turnaround mean"] < first["turnaround mean"]
    assert result.as_json()["runs"][0]["mean"] == {"turnaround": 9.5, "waiting": 5.75, "response": 5.75}


def test_policies_stand_side_by_side() -> None:
    table = fairq.run(LAB, "fcfs", "sjf").compare()
    assert table.columns == ["measure", "fcfs", "sjf"]
    waiting = next(row for row in table if row["measure"] == "waiting mean")
    assert (waiting["fcfs"], waiting["sjf"]) == (5.75, 4.75)
    assert "waiting mean" in str(table)
    assert "<td>5.75</td>" in fairq.run(LAB, "fcfs", "sjf")._repr_html_()


def test_a_run_is_found_by_its_policy_or_its_place() -> None:
    result = fairq.run(LAB, "fcfs", "rr:quantum=2")
    assert result["rr:quantum=2"] is result[1]
    assert len(result) == 2
    with pytest.raises(UnknownName, match="did you mean rr:quantum=2"):
        result["rr:quantum=3"]


def test_a_file_a_mapping_and_a_scenario_are_the_same(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(
        "layer: cpu\npolicy: sjf\ntasks:\n"
        + "".join(f"  - {{id: {i}, arrival: {a}, burst: {b}}}\n" for i, a, b in TASKS)
    )
    told = [fairq.run(given, "srtf").as_json() for given in (file, str(file), LAB, build(LAB))]
    assert told[1:] == told[:-1]
    assert fairq.run(file).scenario.policies == ("sjf",)


def test_a_seed_of_its_own() -> None:
    def order(seed: int) -> Any:
        return fairq.run(build(ROUTER), "lottery", seed=seed)[0].as_json()["order"]

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(8)}) > 1


def test_a_sweep_of_policies_and_scenario() -> None:
    result = fairq.run(LAB, "rr", "fcfs", sweep={"quantum": [1, 8], "switch_cost": range(2)})
    assert result.compare().columns == ["measure"] + [
        f"{spec} switch_cost={cost}" for cost in (0, 1) for spec in ("rr:quantum=1", "rr:quantum=8", "fcfs")
    ]
    rows = result.rows("measures")
    assert [row["switches"] for row in rows if row["policy"] != "rr:quantum=1"] == [3, 3, 3, 3]
    assert {row["switch_cost"] for row in result.rows("jobs")} == {"0", "1"}
    last = result["fcfs switch_cost=1"].jobs()[3]
    assert last["completion"] == 15 + 3
    assert result.trace("fcfs switch_cost=1").scenario["switch_cost"] == 1


@pytest.mark.parametrize(
    ("scenario", "policies", "complaint"),
    [
        ({"tasks": []}, (), "layer: missing"),
        (LAB, ("sfj",), "did you mean sjf"),
        (build(LAB), ("rr:quantum=0",), "must be at least 1"),
        ("nowhere.yaml", (), "nowhere.yaml: No such file"),
        ({"layer": "cpu", "tasks": [{"id": "A"}]}, (), "burst: missing"),
    ],
)
def test_what_is_wrong_is_one_line(scenario: Any, policies: tuple[str, ...], complaint: str) -> None:
    with pytest.raises((ConfigError, InvalidScenario), match=complaint) as raised:
        fairq.run(scenario, *policies)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("scenario", [LAB, build(LAB)], ids=["mapping", "scenario"])
def test_a_seed_is_checked_wherever_it_goes(scenario: Any) -> None:
    with pytest.raises((ConfigError, InvalidScenario), match=r"seed = .*-1.*: must be at least 0"):
        fairq.run(scenario, "lottery", seed=-1)


def test_why_is_the_reason_in_force() -> None:
    """SRTF at t = 1 takes B, which has 4 to do, from A, which has 6; at t = 2 the shorter C."""
    result = fairq.run(LAB, "srtf")
    for time, task, left in ((1, "B", 4), (2, "C", 1)):
        step = result.why(time)
        assert step.what["ran"] == [task]
        assert step.why is not None
        assert step.why.values["remaining"] == left
    with pytest.raises(IndexError, match="nothing was decided"):
        result.why(99)
    router = fairq.run(ROUTER, "sfq").why(1)
    assert router.what["tenant"] == "B"  # A's meter is at 8
    assert router.why is not None
    assert router.why.code == "least-meter"


def test_fairness_rows_are_of_joint_backlogs_only() -> None:
    """A=8, B=2 of the article: count-fair gives A four times B's cost, SFQ the same to within a request."""
    rows = fairq.run(ROUTER, "request-rr", "sfq").rows("fairness")
    joint = {(row["policy"], row["flow"]): row["normalized_service"] for row in rows if row["from"] == 0}
    assert (joint[("request-rr", "A")], joint[("request-rr", "B")]) == (24, 4)
    assert abs(joint[("sfq", "A")] - joint[("sfq", "B")]) <= 8


@pytest.mark.parametrize("scenario", [LAB, LINK, ROUTER, CLUSTER], ids=lambda scenario: scenario["layer"])
@pytest.mark.parametrize("kind", ["measures", "jobs", "fairness", "steps"])
def test_frames_and_files_have_every_row(scenario: Any, kind: str, tmp_path: Path) -> None:
    import polars

    policies = ("drf", "drf:misfit=skip") if scenario is CLUSTER else ("fcfs", "stride")
    result = fairq.run(scenario, *policies)
    frame = result.frame(kind)
    rows = result.rows(kind)
    assert frame.height == len(rows) >= 2
    assert frame["policy"].to_list() == [row["policy"] for row in rows]
    result.to_parquet(tmp_path / "rows.parquet", kind)
    assert polars.read_parquet(tmp_path / "rows.parquet").equals(frame)
    result.to_csv(tmp_path / "rows.csv", kind)
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == len(rows) + 1


def test_fractions_are_exact_in_rows_and_csv_and_floats_in_frames(tmp_path: Path) -> None:
    result = fairq.run(LINK, "wfq")
    first = result.rows("jobs")[0]
    assert first["finish"] == Fraction(2, 3)  # size 2 at rate 3
    assert result.frame()["finish"][0] == pytest.approx(2 / 3)
    result.to_csv(tmp_path / "jobs.csv")
    assert ",2/3," in (tmp_path / "jobs.csv").read_text()


@pytest.mark.parametrize("scenario", [LAB, LINK, ROUTER, CLUSTER], ids=lambda scenario: scenario["layer"])
def test_pictures_and_perfetto(scenario: Any, tmp_path: Path) -> None:
    result = fairq.run(scenario, "drf" if scenario is CLUSTER else "fcfs")
    result.to_plot(tmp_path / "runs.svg")
    assert "<svg" in (tmp_path / "runs.svg").read_text()
    result.to_perfetto(tmp_path / "runs.json")
    assert json.loads((tmp_path / "runs.json").read_text())["traceEvents"]


def test_without_polars_there_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ConfigError, match=r"pip install 'fairq\[frame\]'") as raised:
        fairq.run(LAB).frame()
    assert "\n" not in str(raised.value)


def test_names_are_text_in_html() -> None:
    evil = {"layer": "cpu", "tasks": [{"id": "<script>", "burst": 1}]}
    html = fairq.run(evil).table()._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_unknown_kinds_and_attributes() -> None:
    with pytest.raises(UnknownName, match="did you mean jobs"):
        fairq.run(LAB).rows("job")
    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        fairq.rum  # noqa: B018


@pytest.mark.parametrize(
    ("scenario", "flows"), [(LAB, "tasks"), (LINK, "flows"), (ROUTER, "tenants"), (CLUSTER, "users")]
)
def test_the_document_has_fairness_and_measures_of_every_layer(scenario: Any, flows: str) -> None:
    (run,) = fairq.run(scenario, "drf" if scenario is CLUSTER else "fcfs").as_json()["runs"]
    assert run["measures"]["work_conserving"] is True
    assert run["fairness"]
    for interval in run["fairness"]:
        assert interval["normalized_service"].keys() == set(interval[flows])
        assert interval["jain"] is None or 1 / len(interval[flows]) <= interval["jain"] <= 1
        assert interval["max_min"] is None or 0 <= interval["max_min"] <= 1


def test_fairness_that_would_be_longer_than_the_run_is_left_out() -> None:
    """A thousand flows, a thousand changes: a million numbers nobody asked for."""
    packets = [{"flow": f"f{n}", "arrival": 0, "size": 1} for n in range(1000)]
    result = fairq.run({"layer": "link", "packets": packets}, "fcfs")
    assert result.as_json()["runs"][0]["fairness"] is None
    assert len(result[0].fairness()) == 1000  # who asks for it gets it
