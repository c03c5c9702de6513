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
    for name in ("fairq", "azure", "mooncake", "sharegpt", "vtc-arena", "vtc-results", "vllm-timings"):
        assert name in result.out
