"""The oracles are right: textbook values, and the conditions that define the answer."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle import FluidLink, fluid_drf, max_min

RATIONALS = st.fractions(min_value=0, max_value=50, max_denominator=6)
WEIGHTS = st.fractions(min_value=Fraction(1, 6), max_value=9, max_denominator=6)


def test_four_sources_of_equal_right_share_a_link_of_ten() -> None:
    """Keshav, An Engineering Approach to Computer Networking, chapter 9: demands 2, 2.6, 4, 5."""
    demands: dict[str, Fraction | int] = {"a": 2, "b": Fraction(26, 10), "c": 4, "d": 5}
    shares = max_min(10, demands, dict.fromkeys(demands, 1))
    assert shares == {"a": 2, "b": Fraction(26, 10), "c": Fraction(27, 10), "d": Fraction(27, 10)}


def test_four_sources_of_unequal_weight_share_a_link_of_sixteen() -> None:
    """The weighted example of the same chapter: demands 4, 2, 10, 4 and weights 2.5, 4, 0.5, 1."""
    weights: dict[str, Fraction | int] = {"a": Fraction(5, 2), "b": 4, "c": Fraction(1, 2), "d": 1}
    assert max_min(16, {"a": 4, "b": 2, "c": 10, "d": 4}, weights) == {"a": 4, "b": 2, "c": 6, "d": 4}


def test_more_than_enough_meets_every_demand() -> None:
    assert max_min(100, {"a": 4, "b": 0}, {"a": 1, "b": 3}) == {"a": 4, "b": 0}


@settings(max_examples=80, deadline=None)
@given(capacity=RATIONALS, flows=st.dictionaries(st.sampled_from("abcdef"), st.tuples(RATIONALS, WEIGHTS), min_size=1))
def test_nobody_could_get_more_except_from_someone_who_has_less(
    capacity: Fraction, flows: dict[str, tuple[Fraction, Fraction]]
) -> None:
    demands = {name: demand for name, (demand, _) in flows.items()}
    weights = {name: weight for name, (_, weight) in flows.items()}
    shares = max_min(capacity, demands, weights)
    assert all(0 <= shares[name] <= demands[name] for name in flows)
    assert sum(shares.values()) == min(capacity, sum(demands.values()))
    levels = {name: shares[name] / weights[name] for name in flows}
    for name in flows:
        if shares[name] < demands[name]:
            assert levels[name] == max(levels.values())


PG93 = [(1, "1", 1), (2, "1", 1), (3, "1", 2), (11, "1", 2), (0, "2", 3), (5, "2", 2), (9, "2", 2)]


def test_fluid_ends_the_packets_of_parekh_and_gallagers_figure_3_when_they_say() -> None:
    assert FluidLink(PG93, {"1": 1, "2": 1}).finish == [3, 5, 9, 13, 5, 9, 11]
    assert FluidLink(PG93, {"1": 1, "2": 2}).finish == [4, 5, 9, 13, 4, 8, 11]


PACKETS = st.lists(st.tuples(st.integers(0, 20), st.sampled_from("abc"), st.integers(1, 6)), min_size=1, max_size=9)
THREE = st.fixed_dictionaries(dict.fromkeys("abc", WEIGHTS))


@settings(max_examples=60, deadline=None)
@given(packets=PACKETS, weights=THREE, rate=st.fractions(Fraction(1, 3), 3, max_denominator=3))
def test_fluid_loses_nothing_and_gives_flows_that_have_work_equal_normalized_rates(
    packets: list[tuple[int, str, int]], weights: dict[str, Fraction], rate: Fraction
) -> None:
    packets.sort()
    fluid = FluidLink(packets, weights, rate)
    for flow in "abc":
        own = [index for index, packet in enumerate(packets) if packet[1] == flow]
        sizes = [packets[index][2] for index in own]
        ends = [fluid.finish[index] for index in own]
        # Each packet is over exactly when the flow has been given all up to it, and none begins before it is there.
        assert [fluid.service(flow, end) for end in ends] == [sum(sizes[: n + 1]) for n in range(len(own))]
        assert all(end > packets[index][0] for end, index in zip(ends, own, strict=True))
    for start, end, rates in fluid.pieces:
        busy = {f for (a, f, _), done in zip(packets, fluid.finish, strict=True) if a <= start and done >= end}
        assert rates.keys() == busy
        assert sum(rates.values()) == rate
        assert len({rates[flow] / weights[flow] for flow in rates}) == 1


def test_fluid_drf_divides_the_cluster_of_the_paper() -> None:
    """9 CPU and 18 GB, tasks of <1, 4> and <3, 1>: three and two tasks, two thirds each."""
    demands = {"A": {"cpu": 1, "mem": 4}, "B": {"cpu": 3, "mem": 1}}
    assert fluid_drf({"cpu": 9, "mem": 18}, demands, {"A": 1, "B": 1}) == {"A": 3, "B": 2}


CLUSTERS = st.dictionaries(
    st.sampled_from("abcd"),
    st.tuples(st.fixed_dictionaries(dict.fromkeys("xyz", st.integers(0, 5))), st.integers(1, 4)),
    min_size=1,
).filter(lambda users: all(any(demand.values()) for demand, _ in users.values()))


@settings(max_examples=80, deadline=None)
@given(users=CLUSTERS)
def test_fluid_drf_is_max_min_fair_in_dominant_shares(users: dict[str, tuple[dict[str, int], int]]) -> None:
    """Everybody is held up by a resource that is used up and of which no user of it has a larger share / weight."""
    capacity = dict.fromkeys("xyz", 10)
    demands = {user: demand for user, (demand, _) in users.items()}
    weights: dict[str, Fraction | int] = {user: weight for user, (_, weight) in users.items()}
    tasks = fluid_drf(capacity, demands, weights)
    used = {r: sum(tasks[user] * demands[user][r] for user in users) for r in capacity}
    assert all(used[r] <= capacity[r] for r in capacity)
    level = {user: tasks[user] * max(demands[user].values()) / capacity["x"] / weights[user] for user in users}
    for user in users:
        bottlenecks = [r for r in capacity if demands[user][r] and used[r] == capacity[r]]
        assert any(all(level[other] <= level[user] for other in users if demands[other][r]) for r in bottlenecks)
