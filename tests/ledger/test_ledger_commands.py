"""`fairq replay`, `audit` and `explain` as a user types them: words, JSON, exit status."""

from pathlib import Path

import pytest
from tests.cli.program import fairq
from tests.ledger.recording import router_example, write_segment


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    (tmp_path / "ledger").mkdir()
    router_example().save(tmp_path / "ledger" / "default")
    return tmp_path / "ledger"


def damage(ledger: Path) -> None:
    """One charge less than it was."""
    segment = ledger / "default" / "00000001.jsonl"
    segment.write_bytes(segment.read_bytes().replace(b'"charge":8', b'"charge":7', 1))


def test_a_good_ledger(ledger: Path) -> None:
    replayed, audited = fairq("replay", ledger), fairq("audit", ledger)
    assert (replayed.status, audited.status) == (0, 0)
    assert "29 events, 28 decisions, 1 segment" in replayed.out
    assert "identical: every decision is what the events lead to" in replayed.out
    assert "clean: every promise held" in audited.out
    assert "Not promised: actual GPU seconds" in audited.out


def test_a_damaged_ledger_exits_1_and_says_where(ledger: Path) -> None:
    damage(ledger)
    replayed, audited = fairq("replay", ledger), fairq("audit", ledger)
    assert (replayed.status, audited.status) == (1, 1)
    assert "DIFFERENT at 00000001.jsonl:" in replayed.out
    assert '"charge":7' in replayed.out
    assert "VIOLATED" in audited.out
    assert "charges" in audited.out
    assert "is charged 7 instead of 8" in audited.out


def test_json_says_the_same(ledger: Path) -> None:
    audited, replayed = fairq("audit", ledger, "--json").json, fairq("replay", ledger, "--json").json
    assert audited["ok"] is True
    (pool,) = audited["pools"]
    assert (pool["policy"], pool["decisions"], pool["outcomes"]) == ("sfq", 14, {"completed": 14})
    band = next(check for check in pool["checks"] if check["name"] == "band")
    assert (band["worst"], band["limit"], band["margin"], band["promised"]) == (8, 8, 0, True)
    assert (replayed["identical"], replayed["pools"][0]["difference"]) == (True, None)
    damage(ledger)
    again = fairq("audit", ledger, "--json")
    assert (again.status, again.json["ok"]) == (1, False)
    difference = fairq("replay", ledger, "--json").json["pools"][0]["difference"]
    assert difference["seq"] == 11


def test_explain_in_words_and_as_json(ledger: Path) -> None:
    told = fairq("explain", ledger, "C11")
    assert told.status == 0
    assert told.out.startswith("C11 of C came at")
    assert "its meter was the least" in told.out
    found = fairq("explain", ledger, "C11", "--json").json
    assert (found["tenant"], found["outcome"], found["charge"]) == ("C", "completed", 4)
    assert found["own"][0]["why"]["code"] == "least-meter"
    assert found["sentences"] == told.out.splitlines()


def test_every_pool_is_audited(ledger: Path) -> None:
    router_example("fcfs").save(ledger / "other")
    assert [pool["policy"] for pool in fairq("audit", ledger, "--json").json["pools"]] == ["sfq", "fcfs"]
    damage(ledger)
    assert fairq("audit", ledger).status == 1
    assert fairq("audit", ledger / "other").status == 0


def test_pairs_can_be_left_out(ledger: Path) -> None:
    assert fairq("audit", ledger, "--pairs", 0, "--json").json["pools"][0]["pairs"] == []


@pytest.mark.parametrize("command", ["replay", "audit", "explain"])
def test_a_bad_path_is_one_line_and_exit_2(tmp_path: Path, command: str) -> None:
    rest = ["x"] if command == "explain" else []
    for path, complaint in ((tmp_path / "no", "No such file"), (tmp_path, "holds no segment")):
        said = fairq(command, path, *rest)
        assert said.status == 2
        assert said.out == ""
        assert said.err.count("\n") == 1
        assert str(path) in said.err
        assert complaint in said.err


@pytest.mark.parametrize("command", ["replay", "audit", "explain"])
def test_a_file_that_is_no_ledger_is_one_line_and_exit_2(tmp_path: Path, command: str) -> None:
    write_segment(tmp_path / "pool", 1, [b'{"id":"x"}\n'])
    said = fairq(command, tmp_path, *(["x"] if command == "explain" else []))
    assert said.status == 2
    assert "00000001.jsonl:1: not a line of a ledger" in said.err
    assert said.err.count("\n") == 1


def test_an_unknown_policy_in_a_ledger_is_one_line_and_exit_2(ledger: Path) -> None:
    segment = ledger / "default" / "00000001.jsonl"
    segment.write_bytes(segment.read_bytes().replace(b'"policy":"sfq"', b'"policy":"sfx"', 1))
    said = fairq("replay", ledger)
    assert said.status == 2
    assert "sfx" in said.err
    assert said.err.count("\n") == 1


def test_an_unknown_request_is_one_line_and_exit_2(ledger: Path) -> None:
    said = fairq("explain", ledger, "nobody")
    assert said.status == 2
    assert "no request nobody" in said.err
