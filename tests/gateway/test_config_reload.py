"""The configuration's hash, and what a reload would change."""

import pytest

from fairq.gateway.config import Config, parse
from fairq.gateway.config_reload import changes
from fairq.gateway.config_sections import Section

BASE = """
pools:
- {name: p, upstreams: [{url: "http://a:1", max_inflight: 4, credential: x}, {url: "http://b:1", max_inflight: 4}]}
tenants: [{id: a, weight: 3, keys: ["sha256:%s"]}, {id: b}]
""" % ("1" * 64)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("weight: 3", "weight: 6/2", True),
        ("credential: x", "credential: y", True),
        ("1" * 64, "2" * 64, True),
        ("{id: b}", "{id: b, models: [m]}", True),
        ("weight: 3", "weight: 4", False),
        ("{id: b}", "{id: b, max_inflight: 1}", False),
        ("{id: b}", "{id: c}", False),
        ("max_inflight: 4}", "max_inflight: 5}", False),
        ("name: p", "name: p, policy: fcfs", False),
        ("name: p", "name: p, settlement: forward", False),
    ],
)
def test_the_hash_covers_what_decisions_depend_on_and_nothing_else(old: str, new: str, same: bool) -> None:
    assert old in BASE
    assert (parse(BASE).hash() == parse(BASE.replace(old, new)).hash()) is same


def test_the_hash_does_not_depend_on_order() -> None:
    one = parse("tenants: [{id: a, weight: 2}, {id: b}]\ncost: {multipliers: {models: {x: 2, y: 3}}}")
    two = parse("cost: {multipliers: {models: {y: 3, x: 2}}}\ntenants: [{id: b}, {weight: 2, id: a}]")
    assert one.hash() == two.hash()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("weight: 3", "weight: 4", [("tenants[a].weight: 3 -> 4", False)]),
        ("{id: b}", "{id: c}", [("tenants[b] removed", False), ("tenants[c] added", False)]),
        ("credential: x", "credential: y", [("pools[p].upstreams[a:1].credential: ********** -> **********", False)]),
        ("name: p", "name: p, policy: fcfs", [("pools[p].policy: sfq -> fcfs", True)]),
        ("name: p", "name: q", [("pools[p] removed", True), ("pools[q] added", True)]),
        (
            "http://b:1",
            "http://c:1",
            [("pools[p].upstreams[b:1] removed", False), ("pools[p].upstreams[c:1] added", False)],
        ),
        (
            "tenants:",
            "listen: {port: 1}\nqueue: {time_to_live: 5s}\ntenants:",
            [("listen.port: 8080 -> 1", True), ("queue.time_to_live: 1m -> 5s", False)],
        ),
        (
            "tenants:",
            "cost: {multipliers: {models: {x: 2}}}\ntenants:",
            [("cost.multipliers.models: {} -> {x: 2}", False)],
        ),
        ("tenants:", "identity: {anonymous: allow}\ntenants:", [("identity.anonymous: unset -> allow", False)]),
    ],
)
def test_a_reload_is_a_list_of_changes(old: str, new: str, expected: list[tuple[str, bool]]) -> None:
    found = changes(parse(BASE), parse(BASE.replace(old, new)))
    assert [(str(change), change.restart) for change in found] == expected


def test_reordering_changes_nothing() -> None:
    assert changes(parse("tenants: [{id: a}, {id: b}]"), parse("tenants: [{id: b}, {id: a}]")) == []


def test_a_configuration_cannot_be_changed_in_place() -> None:
    config: Section = Config()
    with pytest.raises(ValueError, match="frozen"):
        config.listen = None  # type: ignore[attr-defined]
