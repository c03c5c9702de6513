"""The report in words: what a ratio and a gap can tell, and when they cannot."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest
from tests.load.test_load_tally import ended

from fairq.cli.load_report import show
from fairq.load.call import Result
from fairq.load.console import Charged
from fairq.load.session import Report
from fairq.load.tally import Rates, fairness, tally


def told(capsys: pytest.CaptureFixture[str], results: list[Result], charged: Charged | None = None) -> str:
    rates = Rates(beta=Fraction(1))
    show(
        Report(
            trace="t.csv",
            tenants_by="trace",
            target="http://x",
            model="m",
            speed=1,
            planned=len(results),
            sent=len(results),
            seconds=1,
            interrupted=False,
            late=None,
            tenants=[],
            total=tally("", results, rates),
            details={},
            fairness=fairness(results, rates),
            charged=charged,
        )
    )
    return capsys.readouterr().out


def test_the_bound_stands_beside_the_gap(capsys: pytest.CaptureFixture[str]) -> None:
    """In turn, 10 tokens each, until a has 50 and b 40: 2q is 20, and 40 against 60 would still be fair."""
    text = told(capsys, [ended("ab"[turn % 2], 0, turn + 1) for turn in range(10)])
    [line] = [line for line in text.splitlines() if line.startswith("a / b")]
    assert line.split()[3:] == ["9.0", "50", "40", "1.250", "1.500", "10", "20"]
    assert "2q: twice the largest request" in text
    assert "too short" not in text


def test_a_window_shorter_than_the_bound_is_not_judged(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, [ended("ab"[turn % 2], 0, turn + 1) for turn in range(3)])
    [line] = [line for line in text.splitlines() if line.startswith("a / b")]
    assert "too short" in line
    assert "One pair was backlogged together for too short a time to judge" in text


@pytest.mark.parametrize(
    ("violations", "margin", "sentences"),
    [
        (
            0,
            0.0,
            ["7 decisions: none of them broke its bounds", "left 0.0 cost units to the bound (reached, not crossed"],
        ),
        (0, 3.5, ["left 3.5 cost units to the bound."]),
        (2, -1.0, ["7 decisions: 2 broke its bounds", "The worst went 1.0 cost units beyond."]),
    ],
)
def test_what_the_gateway_says_of_its_bounds(
    capsys: pytest.CaptureFixture[str], violations: int, margin: float, sentences: list[str]
) -> None:
    charged = Charged(
        normalized={}, jain_charged=1, jain_actual=0.5, decisions=7, violations=violations, worst_margin=margin
    )
    text = told(capsys, [ended("a", 0, 1)], charged)
    for sentence in sentences:
        assert sentence in text
    assert "1.0000 of what it charged, 0.5000 of what was used" in text


def test_json_has_the_q_of_the_bound() -> None:
    found = fairness([ended("a", 0, 1, 30), ended("b", 0, 1, 10)], Rates(beta=Fraction(1), weights={"a": Fraction(2)}))
    assert msgspec.to_builtins(found)["largest"] == 15
