"""The tests of the CPU layer can fail: each mistake in tests/bad/cpu.py is caught, by the tests named here."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.bad import cpu
from tests.locks import test_agreed_schedules as agreed
from tests.locks import test_protocols as protocols
from tests.sim import test_cpu_classics as classics
from tests.sim import test_mlfq_ostep as mlfq
from tests.sim import test_proportional_share as shares
from tests.sim import test_real_time as real_time
from tests.sim.timelines import job

from fairq.core.policy import Policy
from fairq.locks import PROTOCOLS, Protocol
from fairq.policies import POLICIES

Test = Callable[[], Any]
LAB_RR2 = ("rr:quantum=2", "A0-2 B2-4 C4-5 A5-7 D7-9 B9-11 A11-13 D13-14 A14-15", 5.75, 1.5)
ADV2 = ("resources-adv2", "1..33.142.133221", "1..1433.1332221")
HEAVY = [job("A", 0, 1000, weight=8, slice=1), *(job(name, 0, 1000, slice=6) for name in "BCDE")]


def example(test: Any, *values: Any) -> Test:
    """A property on one example, so that a failure is not looked for or shrunk."""
    return lambda: test.hypothesis.inner_test(*values)


@pytest.mark.parametrize(
    ("bad", "test"),
    [
        (cpu.ExpiredFirst, lambda: classics.test_the_articles_lab(*LAB_RR2)),
        (cpu.ExpiredFirst, example(classics.test_round_robin_is_the_articles_loop, [(0, 7), (2, 4)], 2)),
        (
            cpu.ForgetsProgress,
            example(classics.test_no_schedule_at_all_has_a_smaller_flow_time_than_srtf, [(0, 4), (2, 3)]),
        ),
        (
            cpu.RelativeDeadlines,
            example(real_time.test_edf_misses_nothing_up_to_full_utilisation, [(2, 5), (4, 7)], []),
        ),
        (cpu.ResetsOnSleep, mlfq.test_sleeping_just_before_the_quantum_ends_pays_only_without_the_allotment),
        (
            cpu.ResetsOnSleep,
            example(mlfq.test_a_job_gets_no_more_than_its_allotment_at_a_level, mlfq.jobs((0, 20, 2)), "3", ""),
        ),
        (
            cpu.NeverBoosts,
            example(mlfq.test_between_two_boosts_a_job_that_is_there_has_been_on_top, mlfq.jobs((0, 30, 0)), 10),
        ),
        (cpu.KeepsItsPass, shares.test_a_client_that_was_away_claims_nothing_for_it_and_forfeits_nothing),
        (cpu.AnyoneEligible, example(shares.test_lags_stay_within_the_longest_request, HEAVY, "form=1995", 1)),
        (cpu.AnyoneEligible, example(shares.test_nobody_is_chosen_who_is_ahead_of_its_share, HEAVY, "form=linux")),
        (cpu.NoLagKept, shares.test_a_sleeper_comes_back_with_the_lag_it_left_with),
    ],
)
def test_a_wrong_policy_fails(monkeypatch: pytest.MonkeyPatch, bad: type[Policy], test: Test) -> None:
    monkeypatch.setitem(POLICIES, bad.name, bad)
    with pytest.raises(AssertionError):
        test()


def test_a_lottery_that_is_off_by_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, "lottery", cpu.OffByOne)
    with pytest.raises(AssertionError):
        shares.test_the_cumulative_sum_must_exceed_the_draw(monkeypatch)


@pytest.mark.parametrize(
    ("bad", "test"),
    [
        (cpu.CeilingThatIsInheritance, lambda: protocols.test_opposite_orders_cannot_deadlock_with_ceilings("ceiling")),
        (cpu.CeilingThatIsInheritance, protocols.test_chained_blocking_under_inheritance_and_none_under_the_ceiling),
        (cpu.OneLink, protocols.test_inheritance_blocks_through_a_chain),
        (cpu.NeverGivesBack, lambda: agreed.test_boost_back_and_boost_again(*ADV2)),
    ],
)
def test_a_wrong_protocol_fails(monkeypatch: pytest.MonkeyPatch, bad: type[Protocol], test: Test) -> None:
    monkeypatch.setitem(PROTOCOLS, bad.name, bad)
    with pytest.raises(AssertionError):
        test()
