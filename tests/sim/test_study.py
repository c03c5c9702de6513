"""Studies: many runs in one Parquet file, none of them twice."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars
import pytest
from tests.cli.program import fairq

from fairq.core.errors import ConfigError
from fairq.sim import study as studies
from fairq.sim.scenario import build
from fairq.sim.study import study
from fairq.sim.sweep import Setting, settings


def setup(seeds: Sequence[int] = (1, 2, 3)) -> list[Setting]:
    scenario = build({"layer": "engine", "workload": "poisson:rate=3,duration=10", "policies": ["fcfs", "vtc"]})
    return settings(scenario, {"seed": [str(seed) for seed in seeds]})


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """(policy, seed) of every run that is really done."""
    done: list[tuple[str, str]] = []
    plain = studies.row_of

    def counted(key: str, setting: Setting) -> tuple[str, dict[str, Any]]:
        done.append((setting[1], setting[2]["seed"]))
        return plain(key, setting)

    monkeypatch.setattr(studies, "row_of", counted)
    return done


def test_each_row_is_what_the_run_itself_measures(tmp_path: Path, ran: list[tuple[str, str]]) -> None:
    file = tmp_path / "out.parquet"
    study(setup(), file, jobs=1)
    rows = polars.read_parquet(file).to_dicts()
    assert [(row["policy"], row["seed"]) for row in rows] == [(p, s) for s in (1, 2, 3) for p in ("fcfs", "vtc")]
    for row, (scenario, spec, _) in zip(rows, setup(), strict=True):
        measured = scenario.run(spec).measured()
        assert {key: row[key] for key in measured} == measured
    assert not file.with_name("out.parquet.part").exists()


def test_a_stopped_study_goes_on_where_it_was(
    tmp_path: Path, ran: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "out.parquet"
    counted = studies.row_of

    def failing(key: str, setting: Setting) -> tuple[str, dict[str, Any]]:
        if len(ran) == 4:
            raise KeyboardInterrupt
        return counted(key, setting)

    with monkeypatch.context() as patch:
        patch.setattr(studies, "row_of", failing)
        with pytest.raises(KeyboardInterrupt):
            study(setup(), file, jobs=1)
    part = file.with_name("out.parquet.part")
    part.write_bytes(part.read_bytes()[:-20])  # the machine stopped while the fourth line was written
    assert not file.exists()
    table = study(setup(), file, jobs=1)
    assert len(ran) == 4 + 3
    assert len(table) == 6
    assert not part.exists()


def test_more_values_later_run_only_the_new_ones(tmp_path: Path, ran: list[tuple[str, str]]) -> None:
    file = tmp_path / "out.parquet"
    study(setup((1, 2)), file, jobs=1)
    study(setup((1, 2, 7)), file, jobs=1)
    assert ran[4:] == [("fcfs", "7"), ("vtc", "7")]
    assert polars.read_parquet(file)["seed"].to_list() == [1, 1, 2, 2, 7, 7]


def test_two_processes_find_what_one_does(tmp_path: Path) -> None:
    one, two = tmp_path / "one.parquet", tmp_path / "two.parquet"
    command = ["sim", "engine", "--workload", "poisson:duration=10", "--policy", "vtc", "--sweep", "seed=1,2,3"]
    for file, jobs in ((one, "1"), (two, "2")):
        result = fairq(*command, "--results", str(file), "--jobs", jobs)
        assert result.status == 0, result.err
        assert "3 runs" in result.out
    assert polars.read_parquet(one).equals(polars.read_parquet(two))


def test_another_file_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "notes.parquet"
    file.write_text("mine")
    with pytest.raises(ConfigError, match="not the result of a study"):
        study(setup((1,)), file, jobs=1)
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    "backend",
    ["loky", "threading", pytest.param("ray", marks=pytest.mark.slow), pytest.param("dask", marks=pytest.mark.slow)],
)
def test_it_does_not_matter_where_runs_are_done(backend: str, tmp_path: Path) -> None:
    """Of Ray and Dask a local cluster of two, where they are installed."""
    pytest.importorskip({"ray": "ray", "dask": "distributed"}.get(backend, "joblib"))
    here = study(setup([1, 2]), tmp_path / "here.parquet", jobs=1)
    there = study(setup([1, 2]), tmp_path / "there.parquet", jobs=2, backend=backend)
    assert there.rows == here.rows


def test_a_backend_that_is_not_installed_is_named(tmp_path: Path) -> None:
    command = ["sim", "engine", "--workload", "poisson:duration=5", "--sweep", "seed=1,2"]
    told = fairq(*command, "--results", str(tmp_path / "x.parquet"), "--backend", "loki")
    assert (told.status, told.err.count("\n")) == (2, 1)
    assert "did you mean loky" in told.err
