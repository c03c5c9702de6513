"""A tree of classes: shares go down it, idle shares to siblings first, and each class is as fair as its policy."""

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle import JointService
from tests.sim.link_oracles import Packet, Sent
from tests.sim.links import PACKETS, WEIGHTS, sent

from fairq.core.errors import ConfigError
from fairq.core.tree import way
from fairq.policies import make, spec_of
from fairq.sim.router.run import RouterRun
from fairq.sim.router.scenario import RouterScenario


def test_the_way_to_a_flow_goes_through_its_classes() -> None:
    assert way("A") == [("", "A"), ("A/", "A")]
    assert way("org/team/u") == [
        ("", "org"),
        ("org/", "org/team"),
        ("org/team/", "org/team/u"),
        ("org/team/u/", "org/team/u"),
    ]


def order(spec: str, *tenants: dict[str, Any]) -> list[str]:
    return RouterRun(RouterScenario.model_validate({"tenants": tenants}), spec).order


def test_two_users_of_one_organisation_share_what_one_of_another_has_alone() -> None:
    served = order(
        "hierarchical",
        *({"id": f"{name}", "cost": 1, "count": 60} for name in ("one/a", "one/b", "two/a")),
    )
    assert [served[:40].count(name) for name in ("one/a", "one/b", "two/a")] == [10, 10, 20]
    assert (
        order("sfq", *({"id": name, "cost": 1, "count": 60} for name in ("one/a", "one/b", "two/a")))[:6]
        == [
            "one/a",
            "one/b",
            "two/a",
        ]
        * 2
    )


def test_an_idle_share_goes_to_siblings_first() -> None:
    """The link-sharing structure: one has 1/2, half of it for each user. b is away: a has 1/2, two still has 1/2."""
    served = order(
        "hierarchical",
        {"id": "one/a", "cost": 1, "count": 60},
        {"id": "one/b", "cost": 1, "count": 30, "join": 40},
        {"id": "two/a", "cost": 1, "count": 90},
    )
    assert [served[:40].count(name) for name in ("one/a", "one/b", "two/a")] == [20, 0, 20]
    assert [served[40:80].count(name) for name in ("one/a", "one/b", "two/a")] == [10, 10, 20]


def test_the_weight_of_a_class_is_that_of_the_flow_of_its_name() -> None:
    """`one` weighs 3; it also has jobs of its own, which are one more child of it."""
    served = order(
        "hierarchical",
        {"id": "one", "cost": 1, "count": 60, "weight": 3},
        {"id": "one/a", "cost": 1, "count": 60, "weight": 2},
        {"id": "two", "cost": 1, "count": 60},
    )
    assert [served[:40].count(name) for name in ("one", "one/a", "two")] == [10, 20, 10]


def test_each_depth_has_its_own_policy() -> None:
    """Organisations by cost, users of one by count."""
    tenants = (
        {"id": "one/a", "cost": 3, "count": 40},
        {"id": "one/b", "cost": 1, "count": 40},
        {"id": "two/a", "cost": 2, "count": 40},
    )
    served = order("hierarchical:nodes=sfq/request-rr", *tenants)[:30]
    one, other = served.count("one/a"), served.count("one/b")
    assert abs(one - other) <= 1
    assert abs(3 * one + other - 2 * served.count("two/a")) <= 3 + 2
    by_cost = order("hierarchical", *tenants)[:36]
    assert abs(3 * by_cost.count("one/a") - by_cost.count("one/b")) <= 4


@settings(max_examples=50, deadline=None)
@given(packets=PACKETS, weights=WEIGHTS)
@pytest.mark.parametrize("node", ["sfq", "scfq", "request-rr", "drr"])
def test_a_tree_without_classes_is_its_root(node: str, packets: list[Packet], weights: dict[str, Fraction]) -> None:
    assert sent(packets, weights, f"hierarchical:nodes={node}") == sent(packets, weights, node)


TREE = ("x/a", "x/b", "y/c", "y/d/e", "y/d/f")
IN_TREE = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from(TREE), st.integers(1, 9)), min_size=1, max_size=30
).map(sorted)
CLASSES = ("x", "y", "x/a", "x/b", "y/c", "y/d", "y/d/e", "y/d/f")
SIBLINGS = [("x", "y"), ("x/a", "x/b"), ("y/c", "y/d"), ("y/d/e", "y/d/f")]


def inside(flow: str, class_: str) -> bool:
    return flow == class_ or flow.startswith(class_ + "/")


def gap(packets: Sequence[Packet], weights: dict[str, int], done: Sent, pair: tuple[str, str]) -> Fraction:
    """The largest difference of normalized service of two classes over any interval in which both have packets that
    wait."""
    events = [(Fraction(arrival), 0, index) for index, (arrival, _, _) in enumerate(packets)]
    events += [(start, 1, index) for index, start, _ in done]
    waiting, joint = dict.fromkeys(pair, 0), JointService()
    for _, begins, index in sorted(events):
        for class_ in pair:
            if inside(packets[index][1], class_):
                if begins:
                    joint.served(class_, Fraction(packets[index][2], weights[class_]))
                    waiting[class_] -= 1
                    if not waiting[class_]:
                        joint.left(class_)
                else:
                    if not waiting[class_]:
                        joint.joined(class_)
                    waiting[class_] += 1
    return Fraction(joint.widest)


@settings(max_examples=80, deadline=None)
@given(packets=IN_TREE, weights=st.fixed_dictionaries(dict.fromkeys(CLASSES, st.integers(1, 5))))
def test_siblings_differ_by_at_most_a_packet_of_each_whatever_their_class_gets(
    packets: list[Packet], weights: dict[str, int]
) -> None:
    """SFQ's theorem 1 at every node: what a class is given is a server of varying rate to its children."""
    done = sent(packets, weights, "hierarchical")
    for pair in SIBLINGS:
        sizes = {c: max((size for _, flow, size in packets if inside(flow, c)), default=0) for c in pair}
        assert gap(packets, weights, done, pair) <= sum(Fraction(sizes[c], weights[c]) for c in pair)


def test_flat_sfq_does_not_keep_that_bound_between_classes() -> None:
    packets = [(0, flow, 1) for flow in ("x/a", "x/b", "x/c", "x/d", "y/e") for _ in range(10)]
    weights = dict.fromkeys(["x", "y", "x/a", "x/b", "x/c", "x/d", "y/e"], 1)
    assert gap(packets, weights, sent(packets, weights, "sfq"), ("x", "y")) > 2
    assert gap(packets, weights, sent(packets, weights, "hierarchical"), ("x", "y")) <= 2


def test_a_node_has_parameters_of_its_own() -> None:
    """Deficit round robin below: with a quantum of 3 a visit sends three unit jobs, with 1 one."""
    tenants = [{"id": name, "cost": 1, "count": 6} for name in ("org/a", "org/b")]
    short = [flow[-1] for flow in order("hierarchical:nodes=sfq/drr:quantum=1", *tenants)]
    long = [flow[-1] for flow in order("hierarchical:nodes=sfq/drr:quantum=3", *tenants)]
    assert "".join(short) == "ab" * 6
    assert "".join(long) == "aaabbb" * 2


def test_a_class_that_is_named_has_its_own_policy() -> None:
    """`one` takes turns, whatever its users' jobs cost; `two`, beside it, shares by cost."""
    tenants = [
        {"id": f"{org}/{user}", "cost": cost, "count": 40}
        for org in ("one", "two")
        for user, cost in (("a", 3), ("b", 1))
    ]
    served = order("hierarchical:classes=one=request-rr", *tenants)[:60]
    assert abs(served.count("one/a") - served.count("one/b")) <= 1
    assert abs(3 * served.count("two/a") - served.count("two/b")) <= 3 + 1


def test_a_file_tells_a_tree_as_keys_and_values() -> None:
    given: dict[str, Any] = {"policy": "hierarchical", "nodes": ["sfq", {"policy": "drr", "quantum": 3}]}
    assert spec_of(given) == "hierarchical:nodes=sfq/drr:quantum=3"
    given = {"policy": "hierarchical", "classes": {"org/team": {"policy": "sfq", "credit": 9}, "two": "scfq"}}
    assert spec_of(given) == "hierarchical:classes=org/team=sfq:credit=9;two=scfq"
    scenario = RouterScenario.model_validate(
        {"policies": [given, "sfq"], "tenants": [{"id": "A", "cost": 1, "count": 1}]}
    )
    assert scenario.policies == (spec_of(given), "sfq")
    assert spec_of({"policy": "sfq"}) == "sfq"


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ("nodes=drr/sffq", "did you mean sfq"),
        ("classes=org=sffq", "did you mean sfq"),
        ("nodes=drr:quantum=0", "drr.quantum = '0': must be at least 1"),
        ("nodes=drr:quantum", "NAME:key=value"),
        ("nodes=sfq:quantum=1", "quantum"),
        ("classes=org", "PATH=NODE"),
        ("classes=org//team=sfq", "PATH=NODE"),
        ("classes=org=sfq;org=drr", "each path once"),
    ],
)
def test_a_node_that_cannot_be_is_refused_with_the_rule(spec: str, part: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(part)):
        make(f"hierarchical:{spec}")


def test_a_tree_told_by_keys_needs_the_policys_name() -> None:
    with pytest.raises(ConfigError, match="policy: NAME"):
        spec_of({"nodes": ["sfq"]})
