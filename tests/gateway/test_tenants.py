"""Who a request is charged to, who is refused, and that tenants made by headers stay few and lose nothing."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq.core.lifecycle import Outcome
from fairq.gateway import tenants
from fairq.gateway.config import Config, parse
from fairq.gateway.http1.headers import forwardable, is_alias
from fairq.gateway.identity import (
    BAD_KEY,
    BAD_TENANT,
    NO_KEY,
    TOO_MANY_TENANTS,
    TWO_KEYS,
    TWO_TENANTS,
    Identity,
    Refusal,
)
from fairq.gateway.keys import config_line
from fairq.gateway.tenants import AutoTenants, Identifier, not_forwarded

KEY_A, KEY_B = config_line("key-a"), config_line("key-b")
KEYED = f"tenants: [{{id: a, keys: ['{KEY_A}']}}, {{id: b, keys: ['{KEY_B}']}}]\n"
TRUSTING = "identity: {trusted_tenant_headers_from: [10.0.0.0/8, 'fd00::/8'], anonymous: %s}\n"
PROXY, STRANGER = "10.1.2.3", "192.0.2.7"
BEARER_A = (b"authorization", b"Bearer key-a")
BEARER_B = (b"authorization", b"Bearer key-b")
TENANT_B = (b"x-fairq-tenant", b"b")

Header = tuple[bytes, bytes]


def nobody_lives(_: str) -> bool:
    return False


def identify(config: Config | str, *headers: Header, peer: str = STRANGER) -> Identity | Refusal:
    config = parse(config) if isinstance(config, str) else config
    auto = AutoTenants(config.identity.max_auto_tenants, nobody_lives, lambda tenant: None)
    others = [(b"host", b"x"), (b"content-type", b"application/json")]
    return Identifier(config, auto).identify([*others, *headers], peer)


# Keys


@pytest.mark.parametrize(
    "header",
    [
        BEARER_A,
        (b"authorization", b"bearer   key-a "),
        (b"authorization", b"BEARER key-a"),
        (b"x-api-key", b"key-a"),
    ],
)
def test_a_key_is_its_tenant_in_either_header(header: Header) -> None:
    assert identify(KEYED, header) == Identity("a", "key")


@pytest.mark.parametrize(
    ("headers", "refusal"),
    [
        ([], NO_KEY),
        ([(b"authorization", b"Bearer nobody's")], BAD_KEY),
        ([(b"authorization", b"Bearer ")], BAD_KEY),
        ([(b"authorization", b"Basic a2V5LWE=")], BAD_KEY),
        ([(b"authorization", b"key-a")], BAD_KEY),
        ([(b"x-api-key", b"")], BAD_KEY),
        ([(b"x-api-key", KEY_A.encode())], BAD_KEY),
        ([BEARER_A, (b"x-api-key", b"key-b")], TWO_KEYS),
        ([BEARER_A, (b"x-api-key", b"")], TWO_KEYS),
        ([BEARER_A, BEARER_A], TWO_KEYS),
        ([(b"x-api-key", b"key-a"), (b"x-api-key", b"key-b")], TWO_KEYS),
        ([(b"x_api_key", b"key-a")], NO_KEY),
    ],
)
def test_no_key_a_wrong_one_and_two_are_refused(headers: list[Header], refusal: Refusal) -> None:
    assert identify(KEYED, *headers) is refusal


def test_the_same_key_in_both_headers_is_no_conflict() -> None:
    assert identify(KEYED, BEARER_A, (b"x-api-key", b"key-a")) == Identity("a", "key")


def test_refusals_have_the_statuses_and_headers_of_the_table() -> None:
    assert [(r.outcome, r.status) for r in (NO_KEY, BAD_KEY, TWO_KEYS, TWO_TENANTS, BAD_TENANT, TOO_MANY_TENANTS)] == [
        (Outcome.REFUSED_UNAUTHORIZED, 401),
        (Outcome.REFUSED_UNAUTHORIZED, 401),
        (Outcome.REFUSED_INVALID, 400),
        (Outcome.REFUSED_INVALID, 400),
        (Outcome.REFUSED_INVALID, 400),
        (Outcome.REFUSED_QUEUE_FULL, 429),
    ]
    assert all(dict(refusal.headers)[b"www-authenticate"].startswith(b"Bearer ") for refusal in (NO_KEY, BAD_KEY))
    assert dict(TOO_MANY_TENANTS.headers)[b"retry-after"] == b"1"


# Anonymous


@pytest.mark.parametrize(
    "headers", [[], [(b"authorization", b"Bearer EMPTY")], [(b"x-api-key", b"sk-dummy")], [TENANT_B]]
)
def test_a_keyless_gateway_takes_any_key_as_anonymous(headers: list[Header]) -> None:
    assert identify(Config.quick(["http://a"], 1), *headers) == Identity("anonymous", "anonymous")


def test_where_keys_exist_a_wrong_one_is_never_anonymous() -> None:
    config = KEYED + "identity: {anonymous: allow}"
    assert identify(config) == Identity("anonymous", "anonymous")
    assert identify(config, (b"x-api-key", b"revoked")) is BAD_KEY


# Tenant headers

NAMES = sorted(tenants.TENANT_HEADERS)


@pytest.mark.parametrize("peer", [PROXY, STRANGER])
@pytest.mark.parametrize("name", NAMES)
def test_a_key_wins_over_a_tenant_header(name: bytes, peer: str) -> None:  # D-1
    assert identify(KEYED + TRUSTING % "allow", BEARER_A, (name, b"b"), peer=peer) == Identity("a", "key")
    assert identify(KEYED + TRUSTING % "allow", (name, b"a"), BEARER_B, peer=peer) == Identity("b", "key")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("peer", [PROXY, "::ffff:10.1.2.3", "fd00::1"])
def test_a_trusted_peer_names_the_tenant(name: bytes, peer: str) -> None:
    assert identify(KEYED + TRUSTING % "refuse", (name, b"team/c"), peer=peer) == Identity("team/c", "header")


@pytest.mark.parametrize("peer", [STRANGER, "::1", "::ffff:192.0.2.7", "not an address", ""])
@pytest.mark.parametrize(("anonymous", "expected"), [("allow", Identity("anonymous", "anonymous")), ("refuse", NO_KEY)])
def test_from_anybody_else_a_tenant_header_is_nothing(peer: str, anonymous: str, expected: Identity | Refusal) -> None:
    assert identify(KEYED + TRUSTING % anonymous, TENANT_B, TENANT_B, peer=peer) == expected


def test_by_default_nobody_is_trusted() -> None:
    assert identify(KEYED, TENANT_B, peer="127.0.0.1") is NO_KEY


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([TENANT_B, TENANT_B], TWO_TENANTS),
        ([TENANT_B, (NAMES[1], b"c")], TWO_TENANTS),
        ([TENANT_B, (NAMES[1], b"b")], Identity("b", "header")),
        ([BEARER_A, TENANT_B, TENANT_B], TWO_TENANTS),
        ([(b"x-fairq-tenant", b"")], BAD_TENANT),
        ([(b"x-fairq-tenant", b"a,b")], BAD_TENANT),
        ([(b"x-fairq-tenant", b"other")], BAD_TENANT),  # the label of many in the metrics
        ([(b"x-fairq-tenant", b"a b")], BAD_TENANT),
        ([(b"x-fairq-tenant", "é".encode())], BAD_TENANT),
        ([(b"x-fairq-tenant", b"a" * 129)], BAD_TENANT),
        ([(b"x-fairq-tenant", b"a" * 128)], Identity("a" * 128, "header")),
        ([(b"x_fairq_tenant", b"b")], NO_KEY),
    ],
)
def test_a_tenant_header_is_one_valid_id(headers: list[Header], expected: Identity | Refusal) -> None:
    assert identify(KEYED + TRUSTING % "refuse", *headers, peer=PROXY) == expected


@given(st.ip_addresses(), st.ip_addresses())
def test_trust_is_membership_of_a_network(peer: ipaddress.IPv4Address, other: ipaddress.IPv4Address) -> None:
    network = ipaddress.ip_network((other, 1), strict=False)
    config = parse(f"identity: {{trusted_tenant_headers_from: ['{network}'], anonymous: refuse}}")
    mapped = getattr(peer, "ipv4_mapped", None) or peer
    first_bit_agrees = mapped.version == other.version and mapped.packed[0] >> 7 == other.packed[0] >> 7
    assert (identify(config, TENANT_B, peer=str(peer)) == Identity("b", "header")) == first_bit_agrees


def test_the_memory_of_peers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenants, "MAX_PEERS", 8)
    identifier = Identifier(parse(TRUSTING % "refuse"), AutoTenants(10, nobody_lives, lambda tenant: None))
    for i in range(100):
        assert identifier.identify([TENANT_B], f"10.0.0.{i}") == Identity("b", "header")
        assert identifier.identify([TENANT_B], f"192.0.2.{i}") is NO_KEY
    assert len(identifier._trusted) <= 8


# Automatic tenants


def test_a_hundred_thousand_ids_leave_no_more_than_the_limit() -> None:  # D-6
    forgotten: list[str] = []
    config = parse(TRUSTING.replace("%s}", "refuse, max_auto_tenants: 100}"))
    auto = AutoTenants(100, nobody_lives, forgotten.append)
    identifier = Identifier(config, auto)
    for i in range(100_000):
        identity = identifier.identify([(b"x-fairq-tenant", b"t%d" % i)], PROXY)
        assert isinstance(identity, Identity)
    assert len(auto) == 100
    assert forgotten == [f"t{i}" for i in range(100_000 - 100)]


def test_the_least_recently_seen_idle_tenant_gives_way_and_a_live_one_never() -> None:
    live = {"a"}
    forgotten: list[str] = []
    auto = AutoTenants(3, live.__contains__, forgotten.append)
    assert all(auto.admit(tenant) for tenant in ("a", "b", "c", "b", "d"))
    assert forgotten == ["c"]
    live.update("bd")
    assert not auto.admit("e")
    assert auto.admit("a"), "a live one is always admitted again"
    live.discard("d")
    assert auto.admit("e")
    assert forgotten == ["c", "d"]


def test_a_few_looks_at_live_tenants_and_no_more() -> None:
    looks: list[str] = []

    def live(tenant: str) -> bool:
        looks.append(tenant)
        return tenant != "t900"

    auto = AutoTenants(1000, live, lambda tenant: None)
    for i in range(1000):
        auto.admit(f"t{i}")
    tries = 0
    while not auto.admit("new"):
        tries += 1
        assert len(looks) <= tries * tenants.MAX_PROBES
    assert len(looks) == 901, "each look goes on where the last one ended"


def test_configured_tenants_and_anonymous_are_not_counted() -> None:
    config = parse(KEYED + TRUSTING % "allow")
    auto = AutoTenants(1, lambda tenant: True, lambda tenant: None)
    identifier = Identifier(config, auto)
    for tenant in (b"a", b"b", b"anonymous", b"c"):
        assert isinstance(identifier.identify([(b"x-fairq-tenant", tenant)], PROXY), Identity)
    assert identifier.identify([(b"x-fairq-tenant", b"d")], PROXY) is TOO_MANY_TENANTS
    assert len(auto) == 1


def test_a_smaller_limit_lets_idle_tenants_go_at_once() -> None:
    auto = AutoTenants(10, lambda tenant: tenant == "t0", lambda tenant: None)
    for i in range(10):
        auto.admit(f"t{i}")
    auto.shrink(2)
    assert len(auto) == 2
    assert auto.admit("x")
    assert len(auto) == 2


# What upstreams do not see

SENT: list[Header] = [
    (b"accept", b"*/*"),
    BEARER_A,
    (b"x-api-key", b"key-a"),
    *((name, b"b") for name in NAMES),
    (b"x-session-id", b"1"),
    (b"x-vllm-priority", b"1"),
    (b"x-fairq-max-queue-wait", b"1"),
]


@pytest.mark.parametrize(
    ("text", "own_credential", "seen"),
    [
        ("", False, {b"accept"}),
        ("security: {allow_headers: [x-session-id]}", False, {b"accept", b"x-session-id"}),
        ("identity: {forward_client_key: on}", False, {b"accept", b"authorization", b"x-api-key"}),
        ("identity: {forward_client_key: on}", True, {b"accept"}),
    ],
)
def test_upstreams_see_neither_keys_nor_tenants_nor_steering(text: str, own_credential: bool, seen: set[bytes]) -> None:
    drop = not_forwarded(parse(text), own_credential=own_credential)
    refused = {name for name, _ in SENT if b"_" in name and is_alias(name)}  # by the server, at once
    assert {name for name, _ in forwardable(SENT, drop)} - refused == seen
