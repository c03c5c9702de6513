from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairq.cli.trace import app

DATA = Path(__file__).parents[2] / "data"
ARENA = str(DATA / "vtc_real_trace.csv")


def test_describe_prints_what_a_person_wants_to_know() -> None:
    result = CliRunner().invoke(app, ["describe", ARENA])
    assert result.exit_code == 0
    assert "1,500 requests in 600.00 s, 2.50 requests/s" in result.output
    assert "tenant (trace)" in result.output
    assert len([line for line in result.output.splitlines() if line[:2].strip().isdecimal()]) >= 27


def test_describe_as_json_repeats_the_rule_that_made_the_tenants() -> None:
    shared = str(DATA / "heads" / "sharegpt.jsonl")
    result = CliRunner().invoke(app, ["describe", shared, "--tenants-by", "prefix:4", "--json"])
    found = json.loads(result.output)
    assert found["trace"] == "sharegpt.jsonl"
    assert (found["format"], found["tenants_by"], found["block_tokens"]) == ("sharegpt", "prefix:4", 16)
    assert sum(client["requests"] for client in found["clients"].values()) == found["requests"] == 60
    assert found["blocks"]["total"] >= found["blocks"]["unique"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv"], "fairq: nowhere.csv: cannot be read: No such file or directory"),
        ([ARENA, "--tenants-by", "moon:2"], "fairq: tenants-by = 'moon:2': must be trace, one, hash:K"),
        ([str(DATA / "README.md")], "fairq: README.md:1: unknown trace format with # Recorded traffic"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["describe", *arguments])
    assert result.exit_code == 2
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_formats_names_every_format() -> None:
    result = CliRunner().invoke(app, ["formats"])
    assert result.exit_code == 0
    for name in ("fairq", "azure", "mooncake", "sharegpt", "vtc-arena", "vtc-results", "vllm-timings"):
        assert name in result.output
