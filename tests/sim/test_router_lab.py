"""The router layer is the lab of the article, section 8: its order at every kind of boundary, and its numbers."""

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.program import fairq
from tests.oracle import JointService

from fairq.sim.router.run import RouterRun
from fairq.sim.router.scenario import RouterScenario

DEFAULT = ["--tenant", "A:cost=8,count=3", "--tenant", "B:cost=2,count=7", "--tenant", "C:cost=4,count=4,join=3"]


def command(*arguments: str) -> list[dict[str, Any]]:
    result = fairq("sim", "router", *arguments, "--json")
    assert result.status == 0, result.err
    document = json.loads(result.out)
    assert document["layer"] == "router"
    runs: list[dict[str, Any]] = document["runs"]
    return runs


def run(spec: str, *tenants: dict[str, Any]) -> dict[str, Any]:
    return RouterRun(RouterScenario.model_validate({"tenants": tenants}), spec).as_json()


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("fifo", "AAABBBBBBBCCCC"),
        ("request-rr", "ABABCABCBCBCBB"),
        ("shortest", "BBBBBBBCCCCAAA"),
        ("sfq", "ABBCBBCABBCBCA"),
    ],
)
def test_the_default_of_the_lab_is_dispatched_in_this_order(policy: str, order: str) -> None:
    (told,) = command(*DEFAULT, "--policy", policy)
    assert "".join(told["order"]) == order


def test_virtual_time_at_each_dispatch_and_the_final_reset_noted_in_the_last_one() -> None:
    (told,) = command(*DEFAULT, "--policy", "sfq")
    times = [step["virtual_time"] for step in told["steps"]]
    assert times == ["0", "0", "2", "2", "4", "6", "6", "8", "8", "10", "10", "12", "14", "16"]
    assert told["final_virtual_time"] == "24"
    assert [step["reset"] for step in told["steps"]] == [None] * 13 + ["24"]


def test_a_join_at_a_busy_boundary_stands_in_the_dispatch_of_that_time() -> None:
    (told,) = command(*DEFAULT, "--policy", "sfq")
    first, fourth = told["steps"][0], told["steps"][3]
    shown = {key: value for key, value in first.items() if key != "why"}
    assert shown == {
        "kind": "dispatch",
        "time": 0,
        "joined": ["A", "B"],
        "tenant": "A",
        "cost": 8,
        "virtual_time": "0",
        "meters": {"A": "8", "B": "0"},
        "reset": None,
    }
    # C joins at V = 2, level with the flow in service, and wins over B, whose meter is 4.
    assert (fourth["joined"], fourth["tenant"], fourth["virtual_time"]) == (["C"], "C", "2")
    assert fourth["meters"] == {"A": "8", "B": "4", "C": "6"}


def test_the_idle_reset_precedes_a_join_of_the_same_instant() -> None:
    """A's last dispatch at time 1 empties everything; B joins at 2, after the reset to 16 and so at 16, not at 8."""
    told = run("sfq", {"id": "A", "cost": 8, "count": 2}, {"id": "B", "cost": 3, "count": 1, "join": 2})
    idle = told["steps"][2]
    assert (idle["kind"], idle["time"], idle["reset"], idle["joined"]) == ("idle", 2, "16", ["B"])
    assert idle["meters"] == {"A": "16", "B": "16"}
    last = told["steps"][3]
    assert (last["time"], last["joined"], last["virtual_time"], last["reset"]) == (2, [], "16", "19")


def test_an_idle_router_jumps_to_the_next_arrival_in_a_step_of_its_own() -> None:
    told = run("sfq", {"id": "A", "cost": 8, "count": 1}, {"id": "B", "cost": 3, "count": 1, "join": 50})
    assert [(step["kind"], step["time"]) for step in told["steps"]] == [("dispatch", 0), ("idle", 50), ("dispatch", 50)]
    assert told["steps"][1]["virtual_time"] == "8"


def test_a_run_that_begins_idle_begins_with_an_idle_step() -> None:
    told = run("sfq", {"id": "A", "cost": 8, "count": 1, "join": 5})
    assert [(step["kind"], step["time"]) for step in told["steps"]] == [("idle", 5), ("dispatch", 5)]
    assert told["steps"][0]["reset"] == "0"


def test_tags_are_exact_rationals() -> None:
    told = run(
        "sfq", {"id": "A", "cost": 7, "count": 1, "weight": "2"}, {"id": "B", "cost": 1, "count": 2, "weight": 3}
    )
    assert told["steps"][0]["meters"] == {"A": "7/2", "B": "0"}
    assert told["steps"][2]["meters"] == {"A": "7/2", "B": "2/3"}
    assert told["final_virtual_time"] == "7/2"


def test_service_is_compared_per_interval_of_joint_backlog_from_a_baseline_of_zero() -> None:
    """Counted by hand from ABBCBBCABBCBCA: B's last waits until 11, A's until 13."""
    (told,) = command(*DEFAULT, "--policy", "sfq")
    assert [(entry["tenants"], entry["from"], entry["to"]) for entry in told["fairness"]] == [
        (["A", "B"], 0, 3),
        (["A", "B", "C"], 3, 12),
        (["A", "C"], 12, 13),
        (["A"], 13, 14),
    ]
    assert told["fairness"][0]["normalized_service"] == {"A": "8", "B": "4"}
    assert told["fairness"][1]["normalized_service"] == {"A": "8", "B": "10", "C": "12"}
    assert told["fairness"][0]["jain"] == 144 / (2 * 80)


def test_equal_costs_are_index_one_and_one_who_gets_all_is_one_half() -> None:
    """The article's box: J(4,4) = 1, J(8,0) = 1/2."""
    even = run("sfq", {"id": "A", "cost": 4, "count": 2}, {"id": "B", "cost": 4, "count": 1, "weight": 1})
    assert even["fairness"][0] | {"jain": 0} == {
        "tenants": ["A", "B"],
        "from": 0,
        "to": 2,
        "normalized_service": {"A": "4", "B": "4"},
        "jain": 0,
        "max_min": 1,
    }
    assert even["fairness"][0]["jain"] == 1
    starved = run("fcfs", {"id": "A", "cost": 8, "count": 1}, {"id": "B", "cost": 4, "count": 1})
    assert starved["fairness"][0]["jain"] == 0.5
    assert starved["fairness"][0]["max_min"] == 0


def test_a_tenant_that_comes_back_keeps_its_debt() -> None:
    """A is charged 100 and leaves; V stays 0 while B waits; A comes back at 100 and waits for B to get there."""
    a = {"id": "A", "batches": [{"count": 1, "cost": 100}, {"count": 1, "cost": 1, "join": 2}]}
    told = run("sfq", a, {"id": "B", "cost": 10, "count": 12})
    assert told["steps"][2]["meters"]["A"] == "100"
    assert "".join(told["order"]) == "A" + "B" * 10 + "A" + "B" * 2


def test_credit_is_a_burst_right_of_that_size_and_no_more() -> None:
    """A is away until 10, when V is 18 and B's meter 20. Credit 4 lets it go first for two more requests of 2."""
    tenants = ({"id": "A", "cost": 2, "count": 6, "join": 10}, {"id": "B", "cost": 2, "count": 20})
    without, with_credit = run("sfq", *tenants), run("sfq:credit=4", *tenants)
    assert "".join(without["order"][10:18]) == "AABABABA"
    assert "".join(with_credit["order"][10:18]) == "AAAABABA"


def test_a_policy_without_virtual_time_says_so() -> None:
    told = run("fcfs", {"id": "A", "cost": 8, "count": 1})
    assert (told["final_virtual_time"], told["steps"][0]["meters"]) == (None, {})


def test_the_recorded_trace_has_a_step_for_each_step_of_the_run() -> None:
    scenario = RouterScenario.model_validate(
        {"tenants": [{"id": "A", "cost": 8, "count": 2}, {"id": "B", "cost": 2, "count": 3, "join": 9}]}
    )
    recorded = RouterRun(scenario, "sfq", "events")
    told = recorded.as_json()
    steps = list(recorded.trace().steps())
    assert [(step.kind, step.time) for step in steps] == [(step["kind"], step["time"]) for step in told["steps"]]
    assert [step.what.get("tenant") for step in steps] == ["A", "A", None, "B", "B", "B"]
    assert steps[2].queues == {"B": ["B#1", "B#2", "B#3"]}
    assert steps[-1].show["virtual_time"] == 22


TENANTS = st.lists(
    st.tuples(
        st.integers(1, 9),
        st.fractions(Fraction(1, 4), 4, max_denominator=4),
        st.lists(st.tuples(st.integers(0, 25), st.integers(1, 6)), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=5,
)


def scenario_of(drawn: list[tuple[int, Fraction, list[tuple[int, int]]]]) -> RouterScenario:
    return RouterScenario.model_validate(
        {
            "tenants": [
                {
                    "id": "ABCDE"[index],
                    "weight": str(weight),
                    "batches": [{"join": join, "count": count, "cost": cost} for join, count in batches],
                }
                for index, (cost, weight, batches) in enumerate(drawn)
            ]
        }
    )


@settings(max_examples=60, deadline=None)
@given(TENANTS, st.sampled_from(["fcfs", "request-rr", "shortest", "sfq", "sjf"]))
def test_no_time_passes_between_dispatches_while_anything_waits(drawn: Any, policy: str) -> None:
    scenario = scenario_of(drawn)
    steps = RouterRun(scenario, policy).as_json()["steps"]
    waiting = dict.fromkeys((tenant.id for tenant in scenario.tenants), 0)
    counts = {tenant.id: {b.join: 0 for b in tenant.joins()} for tenant in scenario.tenants}
    for tenant in scenario.tenants:
        for batch in tenant.joins():
            counts[tenant.id][batch.join] += batch.count
    now = 0
    for step in steps:
        for id_ in step["joined"]:
            waiting[id_] += counts[id_].pop(step["time"])
        if step["kind"] == "idle":
            assert sum(waiting.values()) > 0
            now = step["time"]
            continue
        assert step["time"] == now
        waiting[step["tenant"]] -= 1
        assert waiting[step["tenant"]] >= 0
        now += 1
    assert not any(waiting.values())
    assert not any(counts.values())


@settings(max_examples=100, deadline=None)
@given(TENANTS)
def test_sfq_keeps_meters_in_the_band_and_service_within_two_charges(drawn: Any) -> None:
    """Article 8.4: V <= M_i <= V + q, and |W_i/w_i - W_j/w_j| <= 2q while both wait; q over the busy period."""
    scenario = scenario_of(drawn)
    weights = {tenant.id: tenant.weight for tenant in scenario.tenants}
    told = RouterRun(scenario, "sfq").as_json()
    waiting: dict[str, int] = dict.fromkeys(weights, 0)
    counts = {(t.id, b.join): 0 for t in scenario.tenants for b in t.joins()}
    for tenant in scenario.tenants:
        for batch in tenant.joins():
            counts[tenant.id, batch.join] += batch.count
    joint, q, before = JointService(), Fraction(0), Fraction(0)
    for step in told["steps"]:
        if step["kind"] == "idle":
            joint, q = JointService(), Fraction(0)
        for id_ in step["joined"]:
            if not waiting[id_]:
                joint.joined(id_)
            waiting[id_] += counts[id_, step["time"]]
        if step["kind"] == "idle":
            continue
        served, charge = step["tenant"], Fraction(step["cost"]) / weights[step["tenant"]]
        q = max(q, charge)
        joint.served(served, charge)
        assert joint.widest <= 2 * q
        waiting[served] -= 1
        if not waiting[served]:
            joint.left(served)
        virtual_time = Fraction(step["virtual_time"])
        assert virtual_time >= before
        before = virtual_time
        for id_, meter in step["meters"].items():
            if waiting[id_]:
                assert virtual_time <= Fraction(meter) <= virtual_time + q


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--tenant", "A:cost=0,count=1"], "tenants[0].cost = '0': must be at least 1"),
        (["--tenant", "A:cost=-3,count=1"], "must be at least 1"),
        (["--tenant", "A:cost=1"], "count: missing"),
        (["--tenant", "A:cost=1,count=1,weight=0"], "weight = '0': must be greater than 0"),
        (["--tenant", "A:cost=1,count=1,weight=nan"], "weight = 'nan': must be a number"),
        (["--tenant", "A:cost=1,count=99999999"], "more than 1000000"),
        (["--tenant", "A:cots=1,count=1"], "unknown key; did you mean cost"),
        (["--tenant", "A:cost=1,count=1", "--tenant", "A:cost=1,count=1"], "tenants[1].id = 'A': given twice"),
        (["--tenant", "A:cost=1,count=1", "--policy", "sqf"], "did you mean"),
        (["--tenant", "A:cost=1,count=1", "--policy", "rr"], "needs preemption, which layer router lacks"),
        ([], "tenants: missing"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments: list[str], complaint: str) -> None:
    result = fairq("sim", "router", *arguments)
    assert result.status == 2
    (line,) = result.err.splitlines()
    assert line.startswith("fairq sim router: ")
    assert complaint in line
