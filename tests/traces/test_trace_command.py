from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.program import fairq

DATA = Path(__file__).parents[2] / "data"
ARENA = str(DATA / "vtc_real_trace.csv")


def test_describe_prints_what_a_person_wants_to_know() -> None:
    result = fairq("trace", "describe", ARENA)
    assert result.status == 0
    assert "1,500 requests in 600.00 s, 2.50 requests/s" in result.out
    assert "tenant (trace)" in result.out
    assert len([line for line in result.out.splitlines() if line[:2].strip().isdecimal()]) >= 27


def test_describe_as_json_repeats_the_rule_that_made_the_tenants() -> None:
    shared = str(DATA / "heads" / "sharegpt.jsonl")
    result = fairq("trace", "describe", shared, "--tenants-by", "prefix:4", "--json")
    found = json.loads(result.out)
    assert found["trace"] == "sharegpt.jsonl"
    assert (found["format"], found["tenants_by"], found["block_tokens"]) == ("sharegpt", "prefix:4", 16)
    assert sum(client["requests"] for client in found["clients"].values()) == found["requests"] == 60
    assert found["blocks"]["total"] >= found["blocks"]["unique"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv"], "fairq trace describe: nowhere.csv: cannot be read: No such file or directory"),
        (
            [ARENA, "--tenants-by", "moon:2"],
            "fairq trace describe: --tenants-by = 'moon:2': must be trace, one",
        ),
        ([str(DATA / "README.md")], "fairq trace describe: README.md:1: unknown trace format with # Recorded traffic"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments: list[str], message: str) -> None:
    result = fairq("trace", "describe", *arguments)
    assert result.status == 2
    assert result.err.startswith(message)
    assert result.err.count("\n") == 1
    assert result.out == ""


def test_formats_names_every_format() -> None:
    result = fairq("trace", "formats")
    assert result.status == 0
    for name in ("fairq", "azure", "mooncake", "sharegpt", "vtc-arena", "vtc-results", "vllm-timings", "vllm-stamps"):
        assert name in result.out


def test_a_workload_is_made_and_described(tmp_path: Path) -> None:
    out = tmp_path / "overload.csv"
    assert fairq("trace", "make", "vtc-overload", "--out", str(out)).status == 0
    found = json.loads(fairq("trace", "describe", str(out), "--json").out)
    assert {name: client["requests"] for name, client in found["clients"].items()} == {"1": 1080, "0": 540}


def test_converting_keeps_the_prefix_blocks(tmp_path: Path) -> None:
    out = tmp_path / "shared.csv"
    shared = str(DATA / "heads" / "sharegpt.jsonl")
    assert fairq("trace", "convert", shared, "--tenants-by", "hash:3", "--out", str(out)).status == 0
    before = json.loads(fairq("trace", "describe", shared, "--tenants-by", "hash:3", "--json").out)
    after = json.loads(fairq("trace", "describe", str(out), "--json").out)
    for key in ("blocks", "clients", "requests", "input_tokens", "output_tokens"):
        assert after[key] == before[key]


def test_an_unknown_workload_is_one_line_and_status_2(tmp_path: Path) -> None:
    result = fairq("trace", "make", "poison", "--out", str(tmp_path / "x.csv"))
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "did you mean poisson" in result.err
    assert not (tmp_path / "x.csv").exists()
