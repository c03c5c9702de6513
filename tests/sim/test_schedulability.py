"""Schedulability analysis beside published values, and beside the simulator."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.cli.program import fairq
from tests.sim.timelines import misses, simulate

from fairq.core.errors import ConfigError
from fairq.sim import analysis
from fairq.sim.analysis import Periodic

Triple = tuple[int, int, int]
"""(C, D, T)"""


def tasks(*triples: Triple) -> list[Periodic]:
    return [Periodic(id=f"T{n}", wcet=c, deadline=d, period=t) for n, (c, d, t) in enumerate(triples, 1)]


def implicit(*pairs: tuple[int, int]) -> list[Periodic]:
    return tasks(*((c, t, t) for c, t in pairs))


def simulated(given_: list[Periodic], policy: str, **options: Any) -> dict[str, Any]:
    rows = [
        {"id": t.id, "wcet": t.wcet, "period": t.period, "deadline": t.deadline}
        | {"locks": [{"resource": name, "at": start, "for": end - start} for name, start, end in t.sections]}
        for t in given_
    ]
    return simulate(policy, rows, **options)


def test_liu_and_laylands_bound() -> None:
    values = [round(analysis.liu_layland(n), 6) for n in range(1, 11)]
    assert values == [1.0, 0.828427, 0.779763, 0.756828, 0.743492, 0.734772, 0.728627, 0.724062, 0.720538, 0.717735]


def test_the_bounds_are_tested_exactly() -> None:
    assert analysis.within_liu_layland(implicit((1, 2), (1, 4)))
    assert not analysis.within_liu_layland(implicit((1, 2), (1, 2)))
    edge = implicit((1, 2), (1, 3))  # U = 5/6 = 0.8333 > 0.8284, and (3/2)(4/3) = 2 exactly
    assert not analysis.within_liu_layland(edge)
    assert analysis.within_hyperbolic(edge)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(2, 4), (4, 10)], [2, 8]),
        ([(2, 5), (4, 7)], [2, None]),
        ([(3, 7), (3, 12), (5, 20)], [3, 6, 20]),
        ([(1, 4), (2, 6), (3, 12)], [1, 3, 10]),
        ([(1, 4), (1, 5), (3, 9)], [1, 2, 7]),
        ([(20, 100), (40, 150), (100, 350)], [20, 60, 240]),
        ([(40, 100), (40, 150), (100, 350)], [40, 80, 300]),
        ([(5, 20), (20, 50), (35, 80)], [5, 30, None]),
    ],
)
def test_response_times(pairs: list[tuple[int, int]], expected: list[int | None]) -> None:
    assert [one.response for one in analysis.response_times(implicit(*pairs))] == expected


def test_the_iteration_is_the_published_one() -> None:
    third = analysis.response_times(implicit((3, 7), (3, 12), (5, 20)))[2]
    assert third.iterates == (5, 11, 14, 17, 20)
    fails = analysis.response_times(implicit((5, 20), (20, 50), (35, 80)))[2]
    assert fails.iterates == (35, 65, 95, 100)


def test_deadlines_beyond_periods_need_more_than_the_first_job() -> None:
    """Lehoczky 1990: C = 26, 62; T = 70, 100. The worst response of the second task is its fifth job's, 118."""
    found = analysis.response_times(tasks((26, 70, 70), (62, 200, 100)))
    assert found[1].response == 118
    run = simulated(tasks((26, 70, 70), (62, 200, 100)), "rm")
    responses = [one["response"] for one in run["jobs"] if one["task"] == "T2"]
    assert max(responses) == 118


@pytest.mark.parametrize(
    ("triples", "values"),
    [
        ([(1, 4, 6), (2, 6, 8), (3, 5, 10)], {4: 1, 5: 4, 6: 6, 10: 7}),
        ([(1, 2, 4), (2, 4, 5), (5, 8, 15)], {2: 1, 4: 3, 6: 4, 8: 9}),
        ([(2, 2, 10), (2, 2, 10)], {2: 4}),
        ([(1, 4, 4), (2, 9, 6), (2, 6, 8), (2, 12, 16)], {4: 1, 6: 3, 8: 4, 12: 9, 16: 14, 24: 20}),
    ],
)
def test_processor_demand(triples: list[Triple], values: dict[int, int]) -> None:
    assert {t: analysis.demand(tasks(*triples), t) for t in values} == values


@pytest.mark.parametrize(
    ("triples", "failure"),
    [
        ([(1, 4, 6), (2, 6, 8), (3, 5, 10)], None),
        ([(1, 2, 4), (2, 4, 5), (5, 8, 15)], (8, 9)),  # although U = 0.983
        ([(2, 2, 10), (2, 2, 10)], (2, 4)),  # although U = 0.4
        ([(1, 4, 4), (2, 9, 6), (2, 6, 8), (2, 12, 16)], None),  # Spuri's set, U = 0.958
    ],
)
def test_the_demand_test_names_the_first_failing_instant(triples: list[Triple], failure: Any) -> None:
    found = analysis.demand_test(tasks(*triples))
    assert (found.feasible, found.first_failure) == (failure is None, failure)


ZHANG_BURNS = tasks(
    *((6000, 18000, 31000), (2000, 9000, 9800), (1000, 12000, 17000), (90, 3000, 4200)),
    *((8, 78, 96), (2, 16, 12), (10, 120, 280), (26, 160, 660)),
)


def test_zhang_and_burns_set_is_feasible() -> None:
    assert round(float(analysis.utilisation(ZHANG_BURNS)), 5) == 0.80299
    points = sorted({t for task in ZHANG_BURNS for t in range(task.deadline, 18_001, task.period)})
    assert len(points) == 1736
    assert all(analysis.demand(ZHANG_BURNS, t) <= t for t in points)
    assert analysis.demand_test(ZHANG_BURNS).feasible


@st.composite
def sets(draw: st.DrawFn) -> list[Periodic]:
    triples = []
    for _ in range(draw(st.integers(1, 4))):
        period = draw(st.sampled_from([3, 4, 5, 6, 8, 10, 12]))
        wcet = draw(st.integers(1, max(1, period // 2)))
        triples.append((wcet, draw(st.integers(wcet, period)), period))
    return tasks(*triples)


@given(sets())
@settings(max_examples=60, deadline=None)
def test_the_demand_test_is_right_about_edf(given_: list[Periodic]) -> None:
    found = analysis.demand_test(given_)
    run = simulated(given_, "edf", horizon=max(found.limit, 1) + 120)
    assert found.feasible is (misses(run) == 0)
    if found.first_failure:
        late = [one["deadline"] for one in run["jobs"] if one["missed"]]
        assert min(late) <= found.first_failure[0]


@given(sets())
@settings(max_examples=60, deadline=None)
def test_response_times_are_right_about_deadline_monotonic(given_: list[Periodic]) -> None:
    ordered = analysis.by_urgency(given_, "deadline")
    assume(len({task.deadline for task in ordered}) == len(ordered))
    run = simulated(ordered, "rm:by=deadline")
    for one in analysis.response_times(ordered):
        late = any(job["missed"] for job in run["jobs"] if job["task"] == one.id)
        assert (one.response is None) is late
        if one.response is None:
            return
        assert max(job["response"] for job in run["jobs"] if job["task"] == one.id) == one.response


@given(sets())
@settings(max_examples=40, deadline=None)
def test_the_bounds_only_ever_promise_what_holds(given_: list[Periodic]) -> None:
    plain = [Periodic(id=t.id, wcet=t.wcet, period=t.period, deadline=t.period) for t in given_]
    feasible = all(one.response is not None for one in analysis.response_times(analysis.by_urgency(plain)))
    if analysis.within_liu_layland(plain):
        assert analysis.within_hyperbolic(plain)
    if analysis.within_hyperbolic(plain):
        assert feasible
    if feasible:
        assert analysis.demand_test(plain).feasible
        assert analysis.utilisation(plain) <= Fraction(1)


LOCKED = [
    Periodic(id="H", wcet=2, period=10, deadline=10, sections=(("r", 0, 1), ("s", 1, 2))),
    Periodic(id="M", wcet=3, period=20, deadline=20, sections=(("r", 0, 2),)),
    Periodic(id="L", wcet=5, period=40, deadline=40, sections=(("s", 0, 4), ("r", 4, 5))),
]


def test_blocking_by_protocol() -> None:
    def found(protocol: str) -> list[int]:
        return [analysis.blocking(LOCKED[:n], LOCKED[n:], protocol) for n in range(1, 4)]

    assert found("ceiling") == found("immediate-ceiling") == [4, 4, 0]
    assert found("inheritance") == [6, 4, 0]  # H: M's r (2) and L's s (4), or r (2) and s (4)
    with pytest.raises(ConfigError, match="no bound"):
        found("none")
    assert [one.response for one in analysis.response_times(LOCKED, "ceiling")] == [6, 9, 10]


def test_the_bounds_with_blocking_look_at_every_task() -> None:
    """C = 4, 3, 4; T = 10, 15, 20; B = 5, 3, 0: sums 0.9, 0.8, 0.8 against 1, 0.828, 0.780: the third is too much."""
    plain = implicit((4, 10), (3, 15), (4, 20))
    assert analysis.loads(plain, [5, 3, 0]) == [Fraction(9, 10), Fraction(4, 5), Fraction(4, 5)]
    assert not analysis.within_liu_layland(plain, [5, 3, 0])
    assert not analysis.within_hyperbolic(plain, [5, 3, 0])  # 1.4 * 1.2 * 1.2 = 2.016
    lighter = implicit((4, 10), (3, 15), (3, 20))
    assert analysis.within_liu_layland(lighter, [5, 3, 0])
    assert not analysis.within_liu_layland(lighter, [7, 3, 0])  # the first alone: 1.1
    assert not analysis.within_hyperbolic(lighter, [7, 3, 0])
    edge = implicit((1, 3), (1, 6))  # (4/3)(1 + 1/6 + 2/6) = 2 exactly, and 1/3 + 1/6 + 2/6 = 0.833 > 0.828
    assert analysis.within_hyperbolic(edge, [0, 2])
    assert not analysis.within_liu_layland(edge, [0, 2])


@given(sets(), st.lists(st.integers(1, 6), min_size=4, max_size=4))
@settings(max_examples=40, deadline=None)
def test_with_blocking_too_the_bounds_only_promise_what_holds(given_: list[Periodic], held: list[int]) -> None:
    """All tasks lock one resource, each for some of its own ticks."""
    locked = analysis.by_urgency(
        [
            Periodic(id=t.id, wcet=t.wcet, period=t.period, deadline=t.period, sections=(("r", 0, min(ticks, t.wcet)),))
            for t, ticks in zip(given_, held, strict=False)
        ]
    )
    responses = analysis.response_times(locked, "ceiling")
    blocked = [one.blocking for one in responses]
    if analysis.within_liu_layland(locked, blocked):
        assert analysis.within_hyperbolic(locked, blocked)
    if analysis.within_hyperbolic(locked, blocked):
        assert all(one.response is not None for one in responses)
        run = simulated(locked, "rm:protocol=ceiling")
        assert not misses(run)


def test_inheritance_is_passed_on_to_what_a_holder_waits_for() -> None:
    """H waits for r, L2 holds r and waits for s, L1 holds s: both sections are in H's way, though H never uses s."""
    chained = [
        Periodic(id="H", wcet=2, period=20, deadline=20, sections=(("r", 0, 1),)),
        Periodic(id="L2", wcet=6, period=40, deadline=40, sections=(("r", 0, 5), ("s", 2, 4))),
        Periodic(id="L1", wcet=6, period=80, deadline=80, sections=(("s", 0, 6),)),
    ]
    assert analysis.blocking(chained[:1], chained[1:], "inheritance") == 5 + 6
    assert analysis.blocking(chained[:1], chained[1:], "ceiling") == 5  # L2 is not let in while s is held
    rows = [
        {"id": "H", "wcet": 2, "period": 20, "offset": 4, "locks": [{"resource": "r", "at": 0, "for": 1}]},
        {"id": "L2", "wcet": 6, "period": 40, "offset": 1}
        | {"locks": [{"resource": "r", "at": 0, "for": 5}, {"resource": "s", "at": 2, "for": 2}]},
        {"id": "L1", "wcet": 6, "period": 80, "locks": [{"resource": "s", "at": 0, "for": 6}]},
    ]
    for protocol, bound in (("inheritance", 13), ("ceiling", 7)):
        run = simulate(f"rm:protocol={protocol}", rows)
        assert max(job["response"] for job in run["jobs"] if job["task"] == "H") <= bound


def test_sections_that_overlap_block_as_one() -> None:
    """L takes s before it lets go of r: H, which uses both, may wait for all five ticks."""
    handed = [
        Periodic(id="H", wcet=2, period=20, deadline=20, sections=(("r", 0, 1), ("s", 1, 2))),
        Periodic(id="L", wcet=7, period=40, deadline=40, sections=(("r", 0, 3), ("s", 2, 5), ("r", 5, 7))),
    ]
    for protocol in ("inheritance", "ceiling", "immediate-ceiling"):
        assert analysis.blocking(handed[:1], handed[1:], protocol) == 5


def test_equally_urgent_tasks_may_wait_for_each_other() -> None:
    """Periods 10 and 10, C = 2 and 5: released a moment after the second, the first is done after 7, not 2."""
    equals = tasks((2, 3, 10), (5, 10, 10), (1, 20, 20))
    assert [one.response for one in analysis.response_times(equals, by="period")] == [None, 7, 8]
    assert [one.response for one in analysis.response_times(equals)] == [2, 7, 8]  # where the order says who goes first


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text("layer: cpu\ntasks:\n  - {id: T1, period: 5, wcet: 2}\n  - {id: T2, period: 7, wcet: 4}\n")
    found = json.loads(fairq("analyze", str(file), "--json").out)
    assert found["utilisation"]["exact"] == "34/35"
    assert found["liu_layland"]["holds"] is False
    assert found["response_times"]["feasible"] is False
    assert found["demand"]["feasible"] is True
    assert found["simulated"]["fixed-priority"] == {
        "until": 35,
        "misses": 1,
        "first_miss": 7,
        "worst_response": {"T1": 2, "T2": 8},
    }
    assert found["simulated"]["edf"]["misses"] == 0
    text = fairq("analyze", str(file)).out
    assert "34/35 = 0.9714" in text
    assert "fixed-priority: 1 misses until 35, the first at t = 7" in text


def test_the_command_with_locks_applies_the_bounds_to_each_task(tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    lock = "locks: [{resource: r, at: 0, for: "
    file.write_text(
        f"layer: cpu\ntasks:\n  - {{id: H, period: 10, wcet: 4, {lock}1}}]}}\n"
        f"  - {{id: L, period: 40, wcet: 8, {lock}5}}]}}\n"
    )
    found = json.loads(fairq("analyze", str(file), "--protocol", "ceiling", "--json").out)
    first, second = found["liu_layland"]["tasks"]
    assert first == {"id": "H", "load": 0.9, "bound": 1.0}  # 4/10 + 5/10
    assert (second["load"], round(second["bound"], 6)) == (0.6, 0.828427)
    assert found["liu_layland"]["holds"] is True
    assert found["hyperbolic"]["holds"] is True
    assert "holds" in fairq("analyze", str(file), "--protocol", "ceiling").out


def test_a_hyperperiod_too_long_to_simulate_is_still_analysed(tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text("layer: cpu\ntasks:\n  - {id: A, period: 999983, wcet: 9}\n  - {id: B, period: 999979, wcet: 9}\n")
    found = json.loads(fairq("analyze", str(file), "--json").out)
    assert found["demand"]["feasible"] is True
    assert "hyperperiod" in found["simulated"]["skipped"]
    found = json.loads(fairq("analyze", str(file), "--horizon", 2_000_000, "--json").out)
    assert found["simulated"]["edf"] == {"until": 2_000_000, "misses": 0, "first_miss": None} | {
        "worst_response": {"A": 18, "B": 9}
    }


def test_what_the_tests_do_not_look_at_is_said(tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text("layer: cpu\nswitch_cost: 1\ntasks:\n  - {id: A, period: 5, wcet: 1}\n  - {id: B, burst: 3}\n")
    found = json.loads(fairq("analyze", str(file), "--json").out)
    assert found["utilisation"]["exact"] == "1/5"
    assert found["hyperbolic"]["product"] == {"exact": "6/5", "value": 1.2}
    assert ["B" in text or "switch_cost = 1" in text for text in found["left_out"]] == [True, True]
    assert "tasks without a period: B" in fairq("analyze", str(file)).out


@pytest.mark.parametrize(
    ("text", "arguments", "part"),
    [
        ("layer: cpu\ntasks: [{id: A, burst: 3}]\n", [], "tasks = 1: there is none with a period"),
        ("layer: cpu\ntasks: [{id: A, period: 5, wcet: 1}]\n", ["--by", "luck"], "--by = 'luck'"),
        ("layer: cpu\ntasks: [{id: A, period: 5, wcet: 1}]\n", ["--protocol", "x"], "--protocol = 'x'"),
        ("layer: cpu\ntasks: [{id: A, period: 5, wcet: 6}]\n", [], "impossible"),
        ("layer: cpu\ncpus: 2\ntasks: [{id: A, period: 5, wcet: 1}]\n", [], "cpus = 2: must be 1"),
        (
            "layer: cpu\ntasks: [{id: A, period: 5, wcet: 1}]\n",
            ["--horizon", "0"],
            "options: horizon = '0': must be at least 1",
        ),
    ],
)
def test_what_cannot_be_analysed_gets_one_line(tmp_path: Path, text: str, arguments: list[str], part: str) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(text)
    done = fairq("analyze", str(file), *arguments)
    assert done.status == 2
    assert part in done.err
    assert len(done.err.splitlines()) == 1
