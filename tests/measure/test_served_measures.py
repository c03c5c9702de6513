"""Measures of links, routers and clusters: worked by hand, and beside independent programs."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle import max_min

import fairq
from fairq.measure import cluster
from fairq.measure.cluster import Held
from fairq.measure.fairness import Interval, max_min_fair, max_min_index
from fairq.measure.served import Served, is_work_conserving, measure, shares, starvation


def job(flow: str, arrival: int, start: int | None, finish: int, time: int | None = None) -> Served:
    took = finish - (start or 0) if time is None else time
    return Served(flow=flow, arrival=arrival, start=start, finish=finish, time=took, amount=took)


# A comes at 0 and takes 4, B at 1 and takes 2, A again at 2 and takes 2; nothing from 8 on until B at 10.
RUN = [job("A", 0, 0, 4), job("B", 1, 4, 6), job("A", 2, 6, 8), job("B", 10, 10, 12)]


def test_times_of_one_job() -> None:
    stalled = Served(flow="A", arrival=2, start=5, finish=12, time=4, amount=8)
    assert (stalled.turnaround, stalled.response, stalled.waiting) == (10, 3, 6)  # it stood still for 3 under way


def test_a_whole_run() -> None:
    found = measure(RUN)
    assert found.jobs == 4
    assert found.turnaround is not None
    assert (found.turnaround.mean, found.turnaround.max) == ((4 + 5 + 6 + 2) / 4, 6)
    assert found.waiting is not None
    assert found.response is not None
    assert (found.waiting.mean, found.waiting.max) == ((0 + 3 + 4 + 0) / 4, 4)
    assert found.response == found.waiting  # nothing stood still
    assert (found.throughput, found.utilisation) == (10 / 12, 10 / 12)
    assert found.starvation == 3  # B from 1 to 4
    assert found.work_conserving


def test_nothing_was_sent() -> None:
    found = measure([])
    assert (found.jobs, found.turnaround, found.throughput, found.utilisation) == (0, None, 0, 0)
    assert found.work_conserving


def test_a_flow_does_not_starve_behind_its_own_jobs() -> None:
    """A's second job waits for its first from 0 to 9, then for B's, from 9 to 11."""
    assert starvation([job("A", 0, 0, 9), job("B", 8, 9, 11), job("A", 0, 11, 12)]) == 2
    assert starvation([job("A", 0, 5, 9, time=4), job("A", 7, 9, 10)]) == 5
    assert starvation([job("A", 5, 5, 6), job("A", 0, 6, 7)]) == 5  # the one that came first was passed over
    assert starvation([job("A", 0, None, 9)]) == 0


def test_an_idle_server_beside_a_waiting_job_is_noticed() -> None:
    assert not is_work_conserving([job("A", 0, 0, 2), job("A", 1, 3, 4)], lambda time: time)
    assert not is_work_conserving([job("A", 0, 1, 2)], lambda time: time)
    assert is_work_conserving([job("A", 0, 0, 2), job("A", 3, 3, 4)], lambda time: time)


def test_what_a_stall_takes_is_not_idleness() -> None:
    def worked(time: Any) -> Any:
        return time if time <= 2 else max(2, time - 3)  # it stands still from 2 to 5

    assert is_work_conserving([job("A", 0, 0, 2), job("A", 1, 5, 6)], worked)
    assert not is_work_conserving([job("A", 0, 0, 2), job("A", 1, 6, 7)], worked)


def test_service_is_counted_while_both_wait() -> None:
    """B is chosen at 4 and waits no more then; A is charged twice before, in the eyes of an order of choices."""
    found = shares([job("A", 0, 0, 4), job("B", 1, 4, 6), job("A", 1, 6, 8)], {"A": 2, "B": 1})
    assert [(one.start, one.end, one.service) for one in found] == [
        (0, 0, {"A": 2}),
        (1, 4, {"A": 0, "B": 2}),
        (4, 6, {"A": 1}),
    ]


def test_a_fluid_gives_each_its_weight() -> None:
    """A (weight 2) and B share a link of rate 1 until A's 4 are sent, at 6; then B has it alone."""
    found = shares([job("A", 0, None, 6, time=4), job("B", 0, None, 10, time=6)], {"A": 2, "B": 1})
    assert [(one.start, one.end, one.service) for one in found] == [(0, 6, {"A": 2, "B": 2}), (6, 10, {"B": 4})]


POLICIES = ("gps", "fcfs", "wfq", "wf2q", "scfq", "sfq", "drr:quantum=9", "virtual-clock", "request-rr", "stride")


@st.composite
def links(draw: st.DrawFn) -> dict[str, Any]:
    packets = [
        {"flow": draw(st.sampled_from("ABC")), "arrival": draw(st.integers(0, 30)), "size": draw(st.integers(1, 9))}
        for _ in range(draw(st.integers(1, 12)))
    ]
    flows = [{"id": flow, "weight": draw(st.sampled_from(["1", "2", "1/3"]))} for flow in "ABC"]
    stalls = draw(st.sampled_from([[], [{"at": 5, "for": 4}], [{"at": 0, "for": 1}, {"at": 20, "for": 9}]]))
    return {"layer": "link", "rate": draw(st.sampled_from([1, 3, "2/3"])), "packets": packets} | {
        "flows": flows,
        "stalls": stalls,
    }


@settings(max_examples=40, deadline=None)
@given(links())
def test_every_packet_scheduler_is_work_conserving_and_serves_the_same_total(scenario: dict[str, Any]) -> None:
    """The last packet of a busy period leaves at the same time whoever chooses, so throughput is the same too."""
    runs = fairq.run(scenario, *POLICIES).rows("measures")
    assert all(row["work_conserving"] for row in runs)
    assert len({(row["throughput"], row["utilisation"]) for row in runs}) == 1


@settings(max_examples=40, deadline=None)
@given(links())
def test_a_fluid_is_max_min_fair_over_every_interval(scenario: dict[str, Any]) -> None:
    rows = fairq.run(scenario, "gps").rows("fairness")
    assert {row["max_min"] for row in rows} <= {1, None}
    assert {row["jain"] for row in rows} <= {1, None}


# Max-min fairness
def test_water_filling_by_hand() -> None:
    """10 among demands of 2, 2.6, 4 and 5: the textbook's example, 2, 2.6, 2.7 and 2.7."""
    demands = {"a": 2, "b": Fraction("2.6"), "c": 4, "d": 5}
    fair = max_min_fair(10, demands, dict.fromkeys("abcd", 1))
    assert fair == {"a": 2, "b": Fraction("2.6"), "c": Fraction("2.7"), "d": Fraction("2.7")}


def test_water_filling_with_weights_by_hand() -> None:
    """16 among demands of 4, 2, 10, 4 at weights 5/2, 4, 1/2, 1: 4, 2, 6, 4."""
    weights = {"a": Fraction(5, 2), "b": 4, "c": Fraction(1, 2), "d": 1}
    assert max_min_fair(16, {"a": 4, "b": 2, "c": 10, "d": 4}, weights) == {"a": 4, "b": 2, "c": 6, "d": 4}
    assert max_min_fair(6, {"a": None, "b": 1}, {"a": 1, "b": 5}) == {"a": 5, "b": 1}


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 20), min_size=1),
    st.integers(0, 60),
    st.lists(st.sampled_from([Fraction(1, 2), 1, 3]), min_size=6, max_size=6),
)
def test_no_flow_can_gain_but_at_the_cost_of_a_poorer_one(
    demands: dict[str, int], capacity: int, drawn: list[Fraction]
) -> None:
    """The definition: all is given out that is wanted, and who has not all it wants has the most for its weight."""
    weights = dict(zip("abcdef", drawn, strict=True))
    fair = max_min_fair(capacity, demands, weights)
    assert sum(fair.values()) == min(capacity, sum(demands.values()))
    assert fair == max_min(capacity, demands, weights)
    level = max(Fraction(fair[flow]) / weights[flow] for flow in fair)
    for flow, given_ in fair.items():
        assert given_ == demands[flow] or Fraction(given_) / weights[flow] == level


def test_the_index_is_the_worst_offs_part_of_its_due() -> None:
    assert max_min_index({"a": 3, "b": 1}, {"a": 2, "b": 2}) == Fraction(1, 2)
    assert max_min_index({"a": 4, "b": 0}, {"a": 2, "b": 2}) == 0
    assert max_min_index({"a": 0}, {"a": 0}) is None
    interval = Interval(0, 8, {"A": 16, "B": 9})  # weights 1 and 2: 16 and 18 of 34, due 34/3 and 68/3
    assert interval.max_min({"A": 1, "B": 2}) == Fraction(18 * 3, 68)
    assert interval.gap == 7


def test_no_task_is_due_more_than_one_processor() -> None:
    """Two processors, weights 9 and 1: both tasks run all the time, which is all that either can use."""
    tasks = [{"id": "A", "burst": 5, "weight": 9}, {"id": "B", "burst": 5}]
    rows = fairq.run({"layer": "cpu", "cpus": 2, "tasks": tasks}, "stride").rows("fairness")
    assert {row["max_min"] for row in rows} == {1}
    alone = fairq.run({"layer": "cpu", "tasks": tasks}, "fcfs").rows("fairness")
    assert alone[0]["max_min"] == 0


# Clusters
HELD = [
    Held(user="A", demand={"cpu": 2, "mem": 1}, arrival=0, start=0, finish=4),
    Held(user="B", demand={"cpu": 1, "mem": 4}, arrival=0, start=2, finish=6),
    Held(user="A", demand={"cpu": 2, "mem": 1}, arrival=0, start=4),
]


def test_what_was_held() -> None:
    """cpu: 2*4 + 1*4 + 2*4 = 20 of 4*8; mem: 4 + 16 + 4 = 24 of 8*8."""
    found = cluster.measure(HELD, {"cpu": 4, "mem": 8}, 8, work_conserving=True)
    assert (found.started, found.completed) == (3, 2)
    assert found.utilisation == {"cpu": 20 / 32, "mem": 24 / 64}
    assert found.throughput == 2 / 8
    assert found.waiting is not None
    assert (found.waiting.mean, found.waiting.max) == (2, 4)
    assert cluster.measure(HELD, {"cpu": 4, "mem": 8}, 0, work_conserving=True).utilisation is None


def test_dominant_shares_while_both_wait() -> None:
    """A holds half of the cpu throughout; B nothing until 2, then half of the memory until 6."""
    backlogs = [(0, frozenset("AB")), (2, frozenset("AB")), (4, frozenset("B")), (6, frozenset())]
    found = cluster.shares(HELD, backlogs, 8, {"cpu": 4, "mem": 8}, {"A": 1, "B": 2})
    assert [(one.start, one.end, one.service) for one in found] == [
        (0, 4, {"A": 2, "B": Fraction(1, 2)}),
        (4, 6, {"B": Fraction(1, 2)}),
    ]


def test_waiting_for_a_large_task_is_not_work_conserving() -> None:
    """With 3 of 8 each it is A's turn, whose next task needs 3 of the 2 that are left; B's would fit."""
    users = [{"id": "A", "demand": {"cpu": 3}, "tasks": 2}, {"id": "B", "demand": {"cpu": 1}, "tasks": 9}]
    scenario = {"layer": "cluster", "capacity": {"cpu": 8}, "users": users}
    stop, skip = fairq.run(scenario, "drf", "drf:misfit=skip").rows("measures")
    assert (stop["work_conserving"], skip["work_conserving"]) == (False, True)


@pytest.mark.parametrize("policy", ["fcfs", "request-rr", "sfq", "shortest", "drr"])
def test_a_router_never_rests_while_a_request_waits(policy: str) -> None:
    tenants = [{"id": "A", "cost": 8, "count": 3}, {"id": "B", "cost": 2, "count": 4, "join": 9}]
    (row,) = fairq.run({"layer": "router", "tenants": tenants}, policy).rows("measures")
    assert row["work_conserving"]
    assert (row["jobs"], row["throughput"], row["utilisation"]) == (7, 32 / 13, 7 / 13)
