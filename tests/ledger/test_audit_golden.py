"""The router example of the article (section 8), recorded, audited and replayed; and what tampering brings up."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.recording import (
    audit,
    check_of,
    replay,
    router_example,
    violated,
    write_segment,
)

ORDER = "ABBCBBCABBCBCA"  # of the article's lab


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return router_example().save(tmp_path / "pool")


def test_the_articles_order_audits_clean_and_replays_identically(example: Path) -> None:
    run = router_example()
    report, result = audit(example), replay(example)
    assert "".join(run.order) == ORDER
    assert report.ok
    assert violated(report) == set()
    assert report.decisions == 14
    assert report.outcomes == {"completed": 14}
    assert (report.living, report.cut_off) == (0, 0)
    assert result.identical
    assert result.decisions == 2 * 14  # a Dispatch and an Ended each
    assert result.events == 14 + 1 + 14


def test_meters_stay_in_the_articles_band(example: Path) -> None:
    """V <= M <= V + c, c = 8: A is charged 8 while it still waits, so the bound is reached and not passed."""
    band = check_of(audit(example), "band")
    assert (band.worst, band.limit, band.margin) == (8, 8, 0)
    assert band.held == 13  # after the last decision nobody waits


def test_pairs_stay_within_twice_the_largest_cost(example: Path) -> None:
    report = audit(example)
    pairs = {pair.tenants: pair for pair in report.pairs}
    assert pairs.keys() == {("A", "B"), ("A", "C"), ("B", "C")}
    assert check_of(report, "pairs").limit == 16
    # While A and B both wait: A 8, then B 2 2 2 2, A 8, B 2 2 2. The widest stretch is the first A alone.
    assert pairs["A", "B"].gap == 8
    assert pairs["A", "B"].charged == (16, 14)
    assert pairs["A", "B"].actual == (16, 14)


def tampered(example: Path, change: Callable[[list[dict[str, Any]]], None]) -> Path:
    """The same ledger with other lines."""
    (segment,) = example.glob("*.jsonl")
    lines = [json.loads(line) for line in segment.read_bytes().splitlines()]
    change(lines)
    return write_segment(example, 1, [json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines])


def nth(lines: list[dict[str, Any]], kind: str, n: int) -> int:
    return [i for i, line in enumerate(lines) if line["is"] == kind][n]


def test_a_swapped_decision_is_caught(example: Path) -> None:
    def swap(lines: list[dict[str, Any]]) -> None:
        """From the second dispatch on, A's next request takes the place of B's first one, and the other way round."""
        names = {line["id"]: line for line in lines if line["is"] == "Dispatch"}
        first = next(id_ for id_ in names if id_.startswith("B"))
        second = [id_ for id_ in names if id_.startswith("A")][1]
        for line in lines:
            if line.get("id") in (first, second):
                line["id"] = second if line["id"] == first else first
                if line["is"] in ("Dispatch", "Ended"):
                    line["tenant"] = line["id"][0]

    path = tampered(example, swap)
    assert "least meter first" in violated(audit(path))
    assert not replay(path).identical


def test_a_changed_charge_is_caught(example: Path) -> None:
    def change(lines: list[dict[str, Any]]) -> None:
        line = lines[nth(lines, "Dispatch", 3)]
        ended = next(other for other in lines if other["is"] == "Ended" and other["id"] == line["id"])
        line["charge"] = ended["charge"] = line["charge"] - 1

    path = tampered(example, change)
    assert violated(audit(path)) >= {"charges", "least meter first"}  # later tags do not fit it any more
    result = replay(path)
    assert result.difference is not None
    assert '"charge":3' in result.difference.recorded
    assert '"charge":4' in result.difference.replayed


def test_a_missing_outcome_is_caught(example: Path) -> None:
    path = tampered(example, lambda lines: lines.pop(nth(lines, "Ended", 4)))
    report = audit(path)
    assert "one outcome each" in violated(report)
    assert report.living == 1
    assert not replay(path).identical


def test_a_second_outcome_is_caught(example: Path) -> None:
    def double(lines: list[dict[str, Any]]) -> None:
        at = nth(lines, "Ended", 4)
        lines.insert(at, dict(lines[at]))

    path = tampered(example, double)
    assert "one outcome each" in violated(audit(path))
    assert not replay(path).identical


def test_another_outcome_than_its_cause_is_caught(example: Path) -> None:
    path = tampered(example, lambda lines: lines[nth(lines, "Ended", 2)].update(outcome="expired"))
    assert "one outcome each" in violated(audit(path))


def test_an_idle_slot_is_caught(example: Path) -> None:
    path = tampered(example, lambda lines: lines.pop(nth(lines, "Dispatch", 5)))
    report = audit(path)
    assert "work conservation" in violated(report)
    assert "slots are free while" in check_of(report, "work conservation").first
    assert not replay(path).identical


def test_a_second_dispatch_of_one_request_is_caught(example: Path) -> None:
    def again(lines: list[dict[str, Any]]) -> None:
        at = nth(lines, "Dispatch", 6)
        lines.insert(at + 1, dict(lines[at]))

    assert violated(audit(tampered(example, again))) >= {"one outcome each", "slots"}


def test_a_removed_event_leaves_a_gap_in_the_numbers(example: Path) -> None:
    path = tampered(example, lambda lines: lines.pop(nth(lines, "Admitted", 2)))
    assert "sequence" in violated(audit(path))
    result = replay(path)
    assert result.difference is not None
    assert "cannot follow" in result.difference.text


def test_a_request_that_overtakes_its_own_tenant_is_caught(example: Path) -> None:
    def overtake(lines: list[dict[str, Any]]) -> None:
        first, second = [line["id"] for line in lines if line["is"] == "Dispatch" and line["tenant"] == "B"][:2]
        for line in lines:
            if line.get("id") in (first, second):
                line["id"] = second if line["id"] == first else first

    assert "fifo" in violated(audit(tampered(example, overtake)))


def test_actual_cost_that_the_usage_does_not_give_is_caught(example: Path) -> None:
    path = tampered(example, lambda lines: lines[nth(lines, "Ended", 0)].update(actual=1))
    assert "usage" in violated(audit(path))


@pytest.mark.parametrize("place", range(12))
def test_no_damage_makes_the_audit_fall_over(example: Path, place: int) -> None:
    """Lines that are well formed and make no sense: every one is judged, none raises."""

    def damage(lines: list[dict[str, Any]]) -> None:
        at = 1 + place * (len(lines) - 2) // 12
        del lines[at + 1]
        lines[at : at + 1] = [
            dict(lines[at], seq=lines[at]["seq"] + 5),
            {"is": "Finished", "seq": 3, "time": 1, "id": "nobody", "outcome": "completed"},
            {
                "is": "Dispatch",
                "seq": 3,
                "time": 1,
                "id": "A1",
                "tenant": "Z",
                "upstream": "x",
                "estimate": 0,
                "charge": 0,
            }
            | {"input_tokens": 0, "output_tokens": 0, "why": {"code": "?", "values": {"meter": "x"}}},
            {"is": "Reject", "seq": 3, "time": 1, "id": "B5", "outcome": "expired"},
            {"is": "UpstreamRemoved", "seq": 4, "time": 0, "upstream": "u"},
            {"is": "Reconfigured", "seq": 4, "time": 0, "flows": [], "default_flow": {"id": ""}}
            | {"wait_for_upstream": 0, "cost": {}},
            {"is": "AttemptFailed", "seq": 9, "time": 0, "id": "A1", "outcome": "failed-connect"},
        ]

    path = tampered(example, damage)
    assert {"sequence", "one outcome each"} <= violated(audit(path))
    assert not replay(path).identical
