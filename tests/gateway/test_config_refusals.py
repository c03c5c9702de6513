"""A bad configuration: every rule, said in one line with file, line, key, value and rule; and nothing crashes."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq.gateway.config import Config, load, parse
from fairq.gateway.config_check import warnings
from fairq.gateway.config_source import InvalidConfig

UPSTREAM = "{url: 'http://a:1', max_inflight: 1}"
HASH = "sha256:" + "0" * 64
DURATION = "must be a duration such as 250ms, 60s, 5m, 2h or 30d"
RATIONAL = 'must be a number or a fraction such as 3, 1.5 or "3/2", not negative'
NETWORK = "must be an address or a CIDR block such as 10.0.0.0/8 or ::1"


def refusals(text: str, environ: dict[str, str] | None = None) -> list[str]:
    """The lines with which `text` is refused."""
    with pytest.raises(InvalidConfig) as caught:
        parse(text, "f", environ or {})
    return str(caught.value).splitlines()


# What is refused


@pytest.mark.parametrize(
    ("text", "line"),
    [
        # the file
        ("- 1", "f:1: must be a mapping of keys to values (leave it out for its defaults)"),
        ("queue: {}\nqueue: {}", "f:2: queue: already given on line 1"),
        ("queue: !x {}", "f:1: queue: YAML tags (!name) mean nothing here"),
        ("&a queue: &b [*b]", "f:1: queue[0]: aliases must not repeat themselves without end"),
        ("? [a]\n: 1", "f:1: a key must be a plain word"),
        ("queue: {<<: 3}", "f:1: queue: << takes a mapping or a list of mappings"),
        ("[" * 5000, "f:1: not YAML: exceeded maximum nesting depth"),
        # keys
        ("queue:\n  request: 1", "f:2: queue.request: unknown key; did you mean requests?"),
        (
            "pools:\n- upstreams:\n  - {url: http://a, max_inflight: 1, max_inflght: 2}",
            "f:3: pools[0].upstreams[0].max_inflght: unknown key; did you mean max_inflight?",
        ),
        ("listen: {zzz: 1}", "f:1: listen.zzz: unknown key; known are host, port"),
        ("tenants:\n- weight: 1", "f:2: tenants[0].id: required, but not given"),
        ("queue: 3", "f:1: queue = 3: must be a mapping of keys to values (leave it out for its defaults)"),
        ("tenants: {}", "f:1: tenants = {...}: must be a list"),
        ("cost: {multipliers: {models: 3}}", "f:1: cost.multipliers.models = 3: must be a mapping of names to values"),
        # values
        ("queue: {requests: 1.5}", "f:1: queue.requests = 1.5: must be a whole number"),
        ("queue: {requests: 0}", "f:1: queue.requests = 0: must be at least 1"),
        ("queue: {requests: '5'}", "f:1: queue.requests = '5': must be a whole number"),
        ("listen: {port: 65536}", "f:1: listen.port = 65536: must be at most 65535"),
        (
            "listen: {host: ''}",
            "f:1: listen.host = '': must be 1 to 256 visible ASCII characters without spaces (quote a number)",
        ),
        ("console: {enabled: 3}", "f:1: console.enabled = 3: must be true or false"),
        ("queue: {time_to_live: 5 parsecs}", "f:1: queue.time_to_live = 5 parsecs: " + DURATION),
        ("queue: {time_to_live: 0}", "f:1: queue.time_to_live = 0: must be longer than 0"),
        ("queue: {time_to_live: -1}", "f:1: queue.time_to_live = -1: " + DURATION),
        ("queue: {time_to_live: .inf}", "f:1: queue.time_to_live = .inf: " + DURATION),
        ("queue: {bytes: 0.5B}", "f:1: queue.bytes = 0.5B: must be a size such as 65536, 64KiB, 64MB or 1GiB"),
        ("queue: {bytes: true}", "f:1: queue.bytes = true: must be a size such as 65536, 64KiB, 64MB or 1GiB"),
        ("queue: {bytes: 0}", "f:1: queue.bytes = 0: must be at least 1"),
        ("limits: {head_bytes: 1}", "f:1: limits.head_bytes = 1: must be at least 1KiB: clients send that much"),
        (
            "ledger: {rotate_bytes: 1}",
            "f:1: ledger.rotate_bytes = 1: must be at least 64KiB: each segment begins with the full state",
        ),
        ("cost: {cached_discount: 1.1}", "f:1: cost.cached_discount = 1.1: must be from 0 to 1"),
        ("cost: {alpha: -1}", "f:1: cost.alpha = -1: " + RATIONAL),
        ("cost: {alpha: 1/0}", "f:1: cost.alpha = 1/0: " + RATIONAL),
        ("log: loud", "f:1: log = loud: must be one of 'text', 'json' or 'off'"),
        (
            "tenants: [{id: a b}]",
            "f:1: tenants[0].id = a b: must be 1 to 128 letters, digits or ._@:+/- , beginning and "
            "ending with a letter or digit, and not `other` (quote a number)",
        ),
        (
            "identity: {trusted_tenant_headers_from: [10.0.0.1/8]}",
            "f:1: identity.trusted_tenant_headers_from[0] = 10.0.0.1/8: " + NETWORK + " (host bits are set)",
        ),
        (
            "identity: {trusted_tenant_headers_from: [here]}",
            "f:1: identity.trusted_tenant_headers_from[0] = here: " + NETWORK,
        ),
        ("pools: [{models: []}]", "f:1: pools[0].models = [...]: must not be empty"),
        ("pools: [{policy: fcfz}]", "f:1: pools[0].policy = fcfz: unknown; did you mean fcfs?"),
        ("pools: [{policy: 'sfq:credit=-1'}]", "f:1: pools[0].policy = 'sfq:credit=-1': sfq.credit must be at least 0"),
        ("pools: [{placement: least}]", "f:1: pools[0].placement = least: unknown; did you mean least-loaded?"),
        (
            "security: {allow_fields: [prioritty]}",
            "f:1: security.allow_fields[0] = prioritty: must be one of 'priority', "
            "'vllm_xargs', 'request_id', 'kv_transfer_params' or 'cache_salt'",
        ),
        (
            "endpoints: [{path: /v1/../x}]",
            "f:1: endpoints[0].path = /v1/../x: must be a plain path such as /v1/rerank, "
            "without query, %, //, . or .. and without a final /",
        ),
        ("ledger: {dir: 3}", "f:1: ledger.dir = 3: must be a path"),
        # between keys
        ("pools: [{models: [a]}, {models: [b]}]", "f:1: pools[1].name: another pool is called default"),
        ("pools:\n- {name: a}\n- {name: b}", "f:3: pools[1].models[0]: pool a already serves it"),
        (
            f"pools: [{{upstreams: [{UPSTREAM}, {UPSTREAM}]}}]",
            "f:1: pools[0].upstreams[1].url = 'http://a:1': another upstream is called a:1",
        ),
        ("tenants: [{id: a}, {id: a}]", "f:1: tenants[1].id = a: another tenant is called a"),
        (
            f"tenants:\n- {{id: a, keys: ['{HASH}']}}\n- {{id: b, keys: ['{HASH}']}}",
            "f:3: tenants[1].keys[0]: this key already belongs to tenant a",
        ),
        ("pools: [{models: [m]}]\ntenants: [{id: a, models: [n]}]", "f:2: tenants[0].models[0] = n: no pool serves it"),
        ("cost: {alpha: 0, beta: 0}", "f:1: cost.beta = 0: alpha and beta must not both be 0"),
        ("cost: {context_length: 10}", "f:1: cost.default_output: must be at most cost.context_length"),
        (
            "pools: [{context_length: 10}]",
            "f:1: pools[0].context_length = 10: the predicted output must be at most the context length",
        ),
        ("queue: {max_time_to_live: 1s}", "f:1: queue.time_to_live: must be at most queue.max_time_to_live"),
        ("limits: {connections: 5}", "f:1: limits.connections_per_peer: must be at most limits.connections"),
        ("limits: {body_bytes: 1GiB}", "f:1: limits.body_bytes = 1GiB: must be at most limits.buffered_bytes_per_peer"),
        ("ledger: {keep_bytes: 1MiB}", "f:1: ledger.keep_bytes = 1MiB: must be at least ledger.rotate_bytes"),
        ("console: {port: 8080}", "f:1: console.port = 8080: listen.port is the same"),
        ("console: {host: 0.0.0.0}", "f:1: console.host = 0.0.0.0: off loopback the console needs console.admin_token"),
        ("endpoints: [{path: /a}, {path: /a}]", "f:1: endpoints[1].path = /a: /a is already given"),
        ("endpoints: [{path: /v1/models}]", "f:1: endpoints[0].path = /v1/models: is built in"),
        (
            "endpoints: [{path: /a, method: GET, cost: input}]",
            "f:1: endpoints[0].cost = input: must be fixed: a GET has no body to count",
        ),
    ],
)
def test_each_broken_rule_is_one_line_with_key_value_rule_and_place(text: str, line: str) -> None:
    assert refusals(text) == [line]


def test_what_is_not_yaml_is_one_line_that_does_not_quote_the_file() -> None:
    [line] = refusals("queue: {}\ntimeouts: {drain: 5s")
    assert re.fullmatch(r"f:[23]: not YAML: [a-z ',}{]+", line)
    [line] = refusals("listen: {port: ${PORT}}")
    assert line.endswith("(inside { } or [ ] write '${NAME}' in quotes)")


@pytest.mark.parametrize(
    "weight", ["0", "-1", "0.0", "0/3", "1/0", ".nan", ".inf", "true", "", "two", "1e7", "1e-7", "1/2/3"]
)
def test_a_weight_must_be_positive_and_finite(weight: str) -> None:
    [line] = refusals(f"tenant_defaults: {{weight: {weight}}}")
    assert 'must be a positive number or fraction such as 3, 1.5 or "3/2", from 1/1000000 to 1000000' in line


@pytest.mark.parametrize(
    "url",
    [
        "a:1",
        "ftp://a",
        "http://",
        "http://a:0",
        "http://a:99999",
        "http://a/v1",
        "http://a?x",
        "http://a#x",
        "http:// a",
        "http://a_/../b",
        "http://[::1",
        "",
        "http://a\\b",
        "http://-a",
    ],
)
def test_an_upstream_is_an_origin_and_nothing_more(url: str) -> None:
    [line] = refusals(f"pools: [{{upstreams: [{{url: '{url}', max_inflight: 1}}]}}]")
    assert "must be http://HOST:PORT or https://HOST:PORT, without path, query or credentials" in line


def test_what_a_merge_brought_is_not_shown_as_written_here() -> None:
    text = "tenants:\n- &t {id: a, weight: 2}\n- {id: b, weight: zero,\n   <<: *t}"
    [line] = refusals(text)
    assert line.startswith("f:3: tenants[1].weight = zero: ")


def test_all_problems_are_listed_in_the_order_of_the_file() -> None:
    text = "tenants:\n- {id: 5}\n- {id: a, weight: 0}\nqueue:\n  requests: 0\n  byts: 1\n"
    assert [line.split(" = ")[0].split(": unk")[0] for line in refusals(text)] == [
        "f:2: tenants[0].id",
        "f:3: tenants[1].weight",
        "f:5: queue.requests",
        "f:6: queue.byts",
    ]


def test_an_unset_variable_hides_no_other_mistake() -> None:
    unset = "f:1: console.admin_token = '${A}': environment variable A is not set or empty"
    single = "console: {admin_token: '${A}'}\nqueue: {requests: 0}\nlog: x\n"
    assert [line.split(" = ")[0] for line in refusals(single)] == [
        "f:1: console.admin_token",
        "f:2: queue.requests",
        "f:3: log",
    ]
    between = "console: {admin_token: '${A}', host: 0.0.0.0}\ntenants: [{id: a}, {id: a}]\n"
    assert refusals(between) == [unset, "f:2: tenants[1].id = a: another tenant is called a"]
    assert (
        refusals("listen: {port: '${P}'}\nlog: x")[0]
        == "f:1: listen.port = '${P}': environment variable P is not set or empty"
    )
    assert len(refusals("listen: {port: '${P}'}\nlog: x")) == 2


def test_a_key_given_twice_hides_no_other_mistake() -> None:
    assert refusals("log: text\nlog: off\nqueue: {requests: 0}") == [
        "f:2: log: already given on line 1",
        "f:3: queue.requests = 0: must be at least 1",
    ]


def test_unset_variables_are_all_named() -> None:
    text = "console: {admin_token: '${A}'}\nlisten: {host: 'x${B}y${'}"
    assert refusals(text, {"A": ""}) == [
        "f:1: console.admin_token = '${A}': environment variable A is not set or empty",
        "f:2: listen.host = 'x${B}y${': environment variable B is not set or empty",
        "f:2: listen.host = 'x${B}y${': write ${NAME} for an environment variable, or $${ for the text ${",
    ]


def test_an_unreadable_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"log: \xff")
    for name, rule in (("none", "cannot be read: No such file or directory"), ("latin", "is not UTF-8")):
        with pytest.raises(InvalidConfig) as caught:
            load(tmp_path / name)
        assert str(caught.value) == f"{tmp_path / name}: {rule}"


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="abc:{}[]-,&*!|>'\"#%@<~${} \n\t019.", max_size=60))
def test_no_text_makes_it_crash(text: str) -> None:
    said = ""
    try:
        parse(text, "f", {})
    except InvalidConfig as error:
        said = str(error)
    assert all(re.match(r"f:\d+: .", line) for line in said.splitlines())


NASTY = [
    "null",
    "true",
    "-1",
    "0",
    "1.5",
    "1e400",
    ".nan",
    "99999999999999999999999",
    "''",
    "' '",
    "x",
    "${",
    '"\\0"',
    '"\\u2028"',
    "[]",
    "{}",
    "[null]",
    "[[]]",
    "[1]",
    "{x: 1}",
    "{x: {}}",
    "\n[{}]",
    "[{id: []}]",
    '"1/0"',
    '"9999999999999999s"',
    "/",
    "//",
    "10.0.0.0/33",
    "http://[",
    "http://a:b",
    "sha256:",
    "sfq:",
    "sfq:=",
    '":"',
    '"sfq:credit=1e9"',
    "on",
    "'${X}'",
]


def places(schema: dict[str, Any], section: dict[str, Any], template: str = "%s") -> Iterator[str]:
    """A flow-style text with one %s for every key of the schema."""
    for name, field in section["properties"].items():
        inside = template % f"{{{name}: %s}}"
        yield inside
        target = field.get("$ref") or field.get("items", {}).get("$ref")
        if target:
            entry = "[%s]" if "items" in field else "%s"
            yield from places(schema, schema["$defs"][target.rpartition("/")[2]], inside % entry)


def test_no_value_of_any_key_makes_it_crash() -> None:
    schema = Config.model_json_schema()
    refused = 0
    for place in places(schema, schema):
        for value in NASTY:
            try:
                config = parse(place % value.strip(), "f", {"X": "y"})
            except InvalidConfig as error:
                refused += 1
                said = str(error).splitlines()
                assert said
                assert all(re.match(r"f:1: .+", line) for line in said), said
            else:
                config.hash(), config.terms(), warnings(config), config.model_dump_json()
    assert refused > 2000
