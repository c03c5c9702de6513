"""Every `fairq sim` command takes the same options, tells its runs alike, and says what is wrong in one line."""

import re
from pathlib import Path

import polars
import pytest
from tests.cli.program import fairq

INLINE = {
    "cpu": ["--task", "A:0:7", "--task", "B:1:4"],
    "link": ["--packet", "A:0:8:count=3", "--packet", "B:0:2:count=7"],
    "router": ["--tenant", "A:cost=8,count=3", "--tenant", "B:cost=2,count=7"],
    "cluster": ["--capacity", "cpu=9", "--user", "A:cpu=1,tasks=5", "--user", "B:cpu=3,tasks=2"],
    "engine": ["--request", "A:0:20:9:count=3", "--request", "B:0:20:30"],
    "fleet": ["--request", "A:0:20:9:count=3", "--request", "B:0:20:30"],
}
POLICY = {"cpu": "rr", "link": "sfq", "router": "sfq", "cluster": "drf", "engine": "vtc", "fleet": "vtc"}


@pytest.mark.parametrize("layer", INLINE)
def test_a_sweep_of_any_layer_goes_into_one_file_and_is_not_done_twice(layer: str, tmp_path: Path) -> None:
    path = tmp_path / "study.parquet"
    command = ["sim", layer, *INLINE[layer], "--policy", POLICY[layer], "--results", path, "--jobs", "1"]
    said = fairq(*command, "--sweep", "seed=1,2")
    assert (said.status, said.err.strip()) == (0, ""), said.err
    first = polars.read_parquet(path)
    assert first["seed"].to_list() == [1, 2]
    assert first["policy"].to_list() == [POLICY[layer]] * 2
    again = fairq(*command, "--sweep", "seed=1,2,3")
    assert again.status == 0
    assert polars.read_parquet(path)["seed"].to_list() == [1, 2, 3]
    assert POLICY[layer] in said.out


@pytest.mark.parametrize("layer", INLINE)
def test_every_command_has_the_options_that_tell_of_runs(layer: str) -> None:
    told = fairq("sim", layer, "--help").out
    for option in ("sweep", "results", "jobs", "backend", "json", "measures", "csv", "parquet", "plot", "perfetto"):
        assert f"--{option}" in told


@pytest.mark.parametrize("layer", ["engine", "fleet"])
def test_a_fleet_takes_what_an_engine_takes(layer: str) -> None:
    """The same requests and the same rules, by the same names."""
    rules = {
        "preset": "rtx4090-llama3.1-8b",
        "pool-tokens": 4096,
        "block-tokens": 16,
        "watermark": 1,
        "max-sequences": 8,
        "step-tokens": 512,
        "prefill": "chunked",
        "admit-every": 0,
        "reserve": "limit",
        "preemption": "swap",
        "victim": "latest",
        "head": "skip",
        "prefix-tokens": 64,
    }
    options = [part for key, value in rules.items() for part in (f"--{key}", str(value))]
    asked = ["--request", "A:0:200:30:count=4", "--client", "A:weight=2", "--prefix-cache", "--occupancy", "--json"]
    said = fairq("sim", layer, *asked, *options)
    assert said.status == 0, said.err
    (run,) = said.json["runs"]
    assert run["clients"]["A"]["served"] == 4
    filled = run["occupancy"] if layer == "engine" else run["engines"][0]["occupancy"]
    assert 0 < filled["kv"]["max"] <= 1


def test_a_policy_that_is_given_twice_runs_once_and_it_is_said() -> None:
    said = fairq("sim", "router", *INLINE["router"], "--policy", "sfq", "--policy", "sfq", "--policy", "fcfs", "--json")
    assert [run["policy"] for run in said.json["runs"]] == ["sfq", "fcfs"]
    assert said.err == "--policy sfq: given 2 times, run once\n"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (["--preset", "zz"], "--preset = 'zz': must be one of a10g"),
        (["--sweep", "quantum"], "--sweep = 'quantum': must be KEY=VALUE"),
        (["--sweep", "zz=1"], "--sweep = 'zz': unknown"),
        (["--perfetto", "/no/such/folder/x.json"], "--perfetto = '/no/such/folder/x.json': No such file"),
        (["--policy", "zz"], "--policy zz: unknown"),
        (["--policy", "dlpm:quantum=0"], "--policy dlpm:quantum=0: dlpm.quantum = '0': must be at least 1"),
        (["--pool-tokens", "0"], "--pool-tokens = '0': must be at least 1"),
        (["--request", "A:0:5:1000000000000"], "requests[2].output = '1000000000000': must be at most 10000000"),
        (["--block-tokens", "99999999999"], "--block-tokens = '99999999999': must be at most 65536"),
    ],
)
def test_what_is_wrong_with_an_option_is_one_line_that_names_it(given: list[str], line: str) -> None:
    said = fairq("sim", "engine", *INLINE["engine"], *given)
    assert said.status == 2
    assert said.err.startswith("fairq sim engine: ")
    assert line in said.err
    assert said.err.count("\n") == 1


def test_options_that_would_do_nothing_are_refused(tmp_path: Path) -> None:
    study = ["sim", "router", *INLINE["router"], "--results", tmp_path / "x.parquet"]
    for option in (["--json"], ["--measures"], ["--plot", tmp_path / "x.svg"], ["--csv", "-"]):
        said = fairq(*study, *option)
        assert (said.status, said.out) == (2, "")
        assert said.err == f"fairq sim router: {option[0]}: does not go with --results, which keeps the measures only\n"
    assert fairq("sim", "router", *INLINE["router"], "--jobs", "2").err.endswith("--jobs: goes with --results only\n")
    assert not list(tmp_path.iterdir())


def test_an_unknown_workload_is_named_by_the_option_or_by_the_file(tmp_path: Path) -> None:
    assert "fairq sim fleet: --workload = 'zz': unknown" in fairq("sim", "fleet", "--workload", "zz").err
    file = tmp_path / "x.yaml"
    file.write_text("layer: engine\nworkload: zz\n")
    assert fairq("sim", "engine", file).err.startswith("fairq sim engine: workload = 'zz': unknown")


def test_several_faults_of_a_file_are_one_line(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(
        "layer: engine\nrequests:\n - {client: a, prompt: 1, output: x}\n - {client: a, prompt: y, output: 1}\n"
    )
    said = fairq("sim", "engine", file)
    assert said.status == 2
    assert said.err.count("\n") == 1
    assert "x.yaml:3: requests[0].output = 'x': must be a whole number; x.yaml:4: requests[1].prompt" in said.err


def test_bounds_are_printed_beside_the_worst_or_with_the_reason_why_not() -> None:
    """Each request takes 20 of 64 tokens, so that the fourth waits."""
    command = ["sim", "engine", "--request", "A:0:8:12:count=9", "--request", "B:0:8:12:count=9", "--reserve", "limit"]
    told = fairq(*command, "--pool-tokens", "64", "--block-tokens", "1", "--policy", "vtc", "--policy", "dlpm").out
    assert re.search(r"vtc-gap\W+[\d,]+\W+256\W+holds, at \d+% of it", told)  # 2U = 2 * 2 * 64
    assert "dlpm-debt" in told
    skipped = fairq(*command, "--head", "skip", "--policy", "vtc").out
    assert "not promised: a head that does not fit is passed over" in " ".join(re.split(r"[\s│]+", skipped))
    assert "bounds" not in fairq(*command, "--policy", "fcfs").out


def test_a_fleet_tells_how_full_each_engine_was_when_asked() -> None:
    told = fairq("sim", "fleet", *INLINE["fleet"], "--occupancy").out
    assert re.search(r"e0 .*\d+%", told)
    assert "cache" not in fairq("sim", "fleet", *INLINE["fleet"]).out
