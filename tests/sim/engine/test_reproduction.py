"""The simulated engine against what others measured, with one set of coefficients for all policies."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from bench.reproduce import ARENA, PREFIXES, Told, arena, cards, hit_ratios, measured, overload

ROOT = Path(__file__).parents[3]
FAIRNESS = ("FCFS", "LCF", "VTC", "VTC(predict, ema)", "VTC(oracle)")
LIMITS = tuple(name for name in ARENA if name.startswith("RPM"))
Table = dict[str, tuple[Told, Told]]


@pytest.fixture(scope="module")
def clients27() -> Table:
    return {name: (theirs, ours) for name, theirs, ours in arena()}


@pytest.fixture(scope="module")
def two_clients() -> Table:
    return {name: (theirs, ours) for name, theirs, ours in overload()}


def test_each_policy_is_fairer_than_the_one_before_it(clients27: Table) -> None:
    for side in (0, 1):  # as they measured, so it is simulated
        means = [clients27[name][side].difference.mean for name in FAIRNESS]
        assert all(worse > better for worse, better in pairwise(means)), means


@pytest.mark.parametrize("name", ARENA)
def test_the_arena_differences_are_the_authors(name: str, clients27: Table) -> None:
    theirs, ours = clients27[name]
    assert ours.difference.mean == pytest.approx(theirs.difference.mean, rel=0.25)
    assert ours.throughput == pytest.approx(theirs.throughput, rel=0.02)
    assert ours.served == pytest.approx(theirs.served, abs=2)


def test_rate_limits_trade_throughput_for_fairness_as_theirs_do(clients27: Table) -> None:
    for side in (0, 1):
        row = [clients27[name][side] for name in LIMITS]
        assert all(
            lower.throughput < higher.throughput and lower.difference.mean < higher.difference.mean
            for lower, higher in pairwise(row)
        )
        vtc = clients27["VTC"][side]
        assert all(one.throughput < vtc.throughput for one in row)


def test_two_overloading_clients_are_shared_between_as_measured(two_clients: Table) -> None:
    means = {name: (theirs.difference.mean, ours.difference.mean) for name, (theirs, ours) in two_clients.items()}
    assert means["FCFS"][1] == pytest.approx(means["FCFS"][0], rel=0.05)
    assert means["VTC"][1] == pytest.approx(means["VTC"][0], rel=0.25)
    assert means["VTC(oracle)"][1] < 2
    assert means["FCFS"][1] > means["VTC"][1] > means["VTC(±50 %)"][1] > means["VTC(oracle)"][1]
    pool = 10_000
    for name, (_, ours) in two_clients.items():
        assert (ours.difference.accumulated < 2 * 2 * pool) == (name != "FCFS")  # the theorem's 2U


def test_vllms_cards_are_met_after_half_of_their_timings() -> None:
    for card, _, told in cards():
        assert told.makespan[0] == pytest.approx(told.makespan[1], rel=0.05), card
        assert told.ttft[0] == pytest.approx(told.ttft[1], rel=0.15), card
        assert told.same_order >= 0.95, card


def test_prefixes_are_found_as_often_as_published() -> None:
    assert {name: round(ours, 4) for name, _, ours in hit_ratios()} == PREFIXES


def test_what_the_authors_measured_is_in_the_data_as_they_left_it() -> None:
    """Throughputs of their table."""
    told = {name: round(measured(theirs).throughput) for name, (_, theirs) in ARENA.items()}
    assert list(told.values()) == [777, 778, 779, 773, 781, 340, 532, 626, 694, 747]


@pytest.mark.slow
def test_the_page_shows_what_the_command_prints() -> None:
    printed = subprocess.run([sys.executable, "-m", "bench", "reproduce"], cwd=ROOT, capture_output=True, text=True)
    assert printed.stdout.strip() in (ROOT / "docs" / "reproduce.md").read_text()
