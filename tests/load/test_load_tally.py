"""Numbers out of results: worked by hand, and against cases whose answer is known without computing."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from fairq.core.cost import Usage
from fairq.load.call import Result
from fairq.load.tally import Fairness, Rates, fairness, tally

SECOND = 1_000_000_000


def ended(
    tenant: str, sent: float, wait: float | None, tokens: int = 10, outcome: str = "completed", **more: Any
) -> Result:
    """A request that waits, then runs for a second. `tokens` of output, no input."""
    start = round(sent * SECOND)
    waited = None if wait is None else round(wait * SECOND)
    end = start + (waited or 0) + SECOND
    fields = {"place": 0, "usage": Usage(0, tokens), "end": end} | more
    return Result(tenant=tenant, sent=start, wait=waited, outcome=outcome, **fields)


def shared(*results: Result, **rates: Any) -> Fairness:
    return fairness(results, Rates(beta=Fraction(1), **rates))


def test_a_tenants_line_worked_by_hand() -> None:
    results = [
        ended("a", 0, 2, usage=Usage(100, 11, 40), first=3 * SECOND, last=4 * SECOND, end=5 * SECOND),
        ended("a", 1, 0, usage=Usage(10, 1), first=2 * SECOND, last=2 * SECOND),
        ended("a", 1, 4, 0, "expired"),
    ]
    line = tally("a", results, Rates(weights={"a": Fraction(2)}), charged=7.5)
    assert line.outcomes == {"completed": 2, "expired": 1}
    assert (line.prompt_tokens, line.cached_tokens, line.completion_tokens) == (110, 40, 12)
    assert line.service == (110 + 2 * 12) / 2
    assert (line.weight, line.charged) == (2, 7.5)
    assert line.wait is not None
    assert (line.wait.count, line.wait.mean, line.wait.p50, line.wait.max) == (3, 2, 2, 4)
    assert line.ttft is not None
    assert (line.ttft.count, line.ttft.p50, line.ttft.max) == (2, 1, 3)
    assert line.tpot is not None
    assert (line.tpot.count, line.tpot.mean) == (1, 0.1)  # one token has no gap


def test_tenants_that_take_turns_are_perfectly_fair() -> None:
    """a and b wait from 0 on and are dispatched in turn, one request of 10 tokens each second, 10 times."""
    found = shared(*[ended("ab"[turn % 2], 0, turn + 1) for turn in range(10)])
    assert (found.backlog, found.heaviest) == ("waits", ["a", "b"])
    (pair,) = found.pairs
    assert pair.tenants == ("a", "b")
    assert (pair.service, pair.ratio, pair.gap) == ((50, 40), 1.25, 10)  # b's tenth second: a no longer waits
    assert pair.seconds == 9
    assert found.seconds_heaviest == 9
    assert found.jain_heaviest == pytest.approx(90**2 / (2 * (50**2 + 40**2)))


def test_first_come_first_served_lets_a_crowd_starve_the_other() -> None:
    """a sends 9, b one behind them: while both wait only a is served."""
    found = shared(*[ended("a", 0, place + 1) for place in range(9)], ended("b", 0, 20))
    (pair,) = found.pairs
    assert (pair.service, pair.ratio, pair.gap, pair.seconds) == ((90, 0), None, 90, 9)
    assert found.jain == Fraction(1, 2)


def test_weights_divide_service() -> None:
    results = [ended("a" if turn % 4 else "b", 0, turn + 1) for turn in range(41)]
    (pair,) = shared(*results, weights={"a": Fraction(3)}).pairs
    assert pair.ratio == pytest.approx(1, abs=0.1)


def test_requests_that_did_not_wait_or_were_refused_are_no_backlog() -> None:
    refused = [ended("b", at, None, 0, "refused-queue-full") for at in range(4)]
    found = shared(*[ended("a", at, 0) for at in range(4)], *refused)
    assert (found.intervals, found.sets, found.jain, found.pairs) == (0, 0, None, [])


def test_a_target_that_tells_no_wait_is_judged_by_outstanding_requests() -> None:
    found = shared(ended("a", 0, None), ended("a", 0, None, end=3 * SECOND), ended("b", 0.5, None, end=2 * SECOND))
    assert found.backlog == "outstanding"
    (pair,) = found.pairs
    assert (pair.seconds, pair.service) == (1.5, (10, 10))


def test_who_expired_waited_until_then() -> None:
    results = [ended("a", 0, 5), ended("b", 0, None, 0, "expired", end=4 * SECOND), ended("a", 0, 1)]
    (pair,) = shared(*results).pairs
    assert (pair.seconds, pair.service) == (4, (10, 0))


def test_service_of_intervals_with_the_same_tenants_is_added_up() -> None:
    """a and b wait twice together, apart in time; first a alone is served, then b alone: even in the end."""
    first = [ended("a", 0, 1), ended("b", 0, 1.5, 0)]
    second = [ended("b", 10, 1), ended("a", 10, 1.5, 0)]
    found = shared(*first, *second)
    assert (found.intervals, found.sets, found.jain) == (2, 1, 1)


def test_no_results_are_no_fairness() -> None:
    found = shared()
    assert (found.jain, found.jain_heaviest, found.heaviest, found.pairs) == (None, None, [], [])
