"""The configuration: what is read, and what the rest of the gateway gets from it."""

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from fairq.cli import config as config_cli
from fairq.core.errors import ConfigError
from fairq.gateway import config_values as values
from fairq.gateway.config import Config, load, parse
from fairq.gateway.config_check import warnings
from fairq.gateway.config_docs import reference
from fairq.gateway.config_source import InvalidConfig
from fairq.gateway.http1.limits import ClientLimits, Limits

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "fairq.yaml"
ENVIRON = {"FAIRQ_ADMIN_TOKEN": "s3cret-admin-token", "GPU_1_KEY": "s3cret-gpu", "TEAM_B_SALT": "s3cret-salt"}
UPSTREAM = "{url: 'http://a:1', max_inflight: 1}"


# What is read


def test_an_empty_file_is_the_default_configuration() -> None:
    assert parse("# nothing\n") == Config()


def test_the_example_loads_and_says_what_it_shows() -> None:
    config = load(EXAMPLE, ENVIRON)
    assert config.console.admin_token is not None
    assert config.console.admin_token.get_secret_value() == "s3cret-admin-token"
    assert config.terms()["team-b/batch"].weight == Fraction(1, 2)
    assert config.terms()["anonymous"].weight == Fraction(1, 10)
    assert [upstream.label for upstream in config.pools[0].upstreams] == ["127.0.0.1:8000", "127.0.0.1:8001"]
    assert config.cost.multipliers.adapters == {"legal-lora": Fraction(3, 2)}
    assert config.ledger.dir == ROOT / "examples" / "ledger"
    assert config.ledger.keep_age == 30 * 24 * 3600
    assert config.timeouts.first_byte == 600
    assert config.security.cache_salt is True


def keys_of(schema: dict[str, Any]) -> set[str]:
    sections = [schema, *schema["$defs"].values()]
    return {name for section in sections for name in section.get("properties", {})}


def test_the_example_names_every_key() -> None:
    text = EXAMPLE.read_text()
    missing = {key for key in keys_of(Config.model_json_schema()) if not re.search(rf"\b{key}:", text)}
    assert missing == set()


def test_the_documentation_is_the_schema() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    shown = page.partition("<!-- `fairq config schema --markdown` -->\n\n")[2]
    assert shown == reference(), "make it again: fairq config schema --markdown"
    assert all(
        f"`{key}`" in shown
        or f".{key}`" in shown
        or f" {key}\n" in shown
        or f".{key}\n" in shown
        or f" {key}[]\n" in shown
        or f".{key}[]\n" in shown
        for key in keys_of(Config.model_json_schema())
    )


def test_the_documented_example_loads() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    text = page.partition("```yaml\n")[2].partition("```")[0]
    first, second = ("sha256:" + digit * 64 for digit in "12")
    config = parse(text.replace("sha256:...", first, 1).replace("sha256:...", second))
    assert {terms.id: terms.weight for terms in config.terms().values()} == {"team-a": 3, "team-b": 1}


def test_every_key_is_documented() -> None:
    schema = Config.model_json_schema()
    for section in [schema, *schema["$defs"].values()]:
        for name, field in section["properties"].items():
            assert field.get("description") or "$ref" in field or "items" in field, name


@pytest.mark.parametrize(
    ("written", "weight"),
    [
        ("3", Fraction(3)),
        ("1.5", Fraction(3, 2)),
        ('"3/2"', Fraction(3, 2)),
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        ("2.5/5", Fraction(1, 2)),
        ("1000000", Fraction(10**6)),
        ("1e-6", Fraction(1, 10**6)),
    ],
)
def test_weights_are_exact(written: str, weight: Fraction) -> None:
    assert parse(f"tenants: [{{id: a, weight: {written}}}]").terms()["a"].weight == weight


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("250ms", 0.25),
        ("60s", 60),
        ("5m", 300),
        ("2h", 7200),
        ("30d", 2592000),
        ("90", 90),
        ("1.5", 1.5),
        ("1.5 s", 1.5),
    ],
)
def test_durations(written: str, seconds: float) -> None:
    assert parse(f"timeouts: {{drain: {written}}}").timeouts.drain == seconds


@pytest.mark.parametrize(
    ("written", "count"),
    [
        ("65536", 65536),
        ("64KiB", 65536),
        ("64kB", 64000),
        ("64MB", 64 * 10**6),
        ("1GiB", 2**30),
        ("0.5 MiB", 2**19),
        ("9B", 9),
    ],
)
def test_sizes(written: str, count: int) -> None:
    assert parse(f"queue: {{bytes: {written}}}").queue.bytes == count


@given(st.integers(1, 10**9))
def test_what_is_shown_reads_back(amount: int) -> None:
    assert values.size(values.show_size(amount)) == amount
    assert values.duration(values.show_duration(amount / 1000)) == amount / 1000


def test_yaml_is_read_by_the_rules_of_version_1_2() -> None:
    config = parse("tenants: [{id: no}, {id: 'yes'}]\nqueue: {requests: 010}\nidentity: {forward_client_key: off}")
    assert [tenant.id for tenant in config.tenants] == ["no", "yes"]
    assert config.queue.requests == 10
    assert config.identity.forward_client_key is False


def test_anchors_and_merges_work_and_what_is_beside_a_merge_wins() -> None:
    text = f"pools:\n- name: a\n  models: [m]\n  upstreams: [{UPSTREAM}]\n- &p {{name: b, policy: fcfs}}\ntenants:\n"
    text += "- &t {id: a, weight: 2, max_inflight: 7}\n- {<<: *t, id: b, weight: 3}\n- {id: c, <<: [*t]}\n"
    terms = parse(text).terms()
    assert [(t.id, t.weight, t.max_inflight) for t in terms.values()] == [("a", 2, 7), ("b", 3, 7), ("c", 2, 7)]


def test_the_environment_fills_texts_and_numbers() -> None:
    text = (
        "listen:\n  port: ${PORT}\n  host: ${HOST}\nqueue: {time_to_live: '${TTL}s'}\nconsole: {admin_token: '${T}'}\n"
    )
    config = parse(text, "f", {"PORT": "9000", "HOST": "::1", "TTL": "5", "T": "0123"})
    assert (config.listen.port, config.listen.host, config.queue.time_to_live) == (9000, "::1", 5)
    assert config.console.admin_token is not None
    assert config.console.admin_token.get_secret_value() == "0123"
    assert parse("pools: [{models: ['$${X}']}]").pools[0].models == ("${X}",)


def test_a_ca_file_is_read_relative_to_the_configuration(tmp_path: Path) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.pem")
    (tmp_path / "empty.pem").write_text("nothing\n")
    (tmp_path / "f.yaml").write_text("pools: [{upstreams: [{url: 'https://a', max_inflight: 1, ca: ca.pem}]}]")
    assert load(tmp_path / "f.yaml").pools[0].upstreams[0].ca == tmp_path / "ca.pem"
    for name, rule in (("empty.pem", "holds no PEM certificate"), ("none.pem", "cannot be read: No such file")):
        (tmp_path / "f.yaml").write_text(f"pools: [{{upstreams: [{{url: 'https://a', max_inflight: 1, ca: {name}}}]}}]")
        with pytest.raises(InvalidConfig, match=rf"pools\[0\].upstreams\[0\].ca = {name}: {rule}"):
            load(tmp_path / "f.yaml")


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://a", "http://a:80"),
        ("https://a/", "https://a:443"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("HTTP://A.example:1", "http://a.example:1"),
    ],
)
def test_origins_are_normalised(url: str, origin: str) -> None:
    assert values_of_url(url) == origin


def values_of_url(url: str) -> str:
    return parse(f"pools: [{{upstreams: [{{url: '{url}', max_inflight: 1}}]}}]").pools[0].upstreams[0].url


def test_the_schema_is_a_json_schema_that_accepts_the_example() -> None:
    import jsonschema_rs
    import yaml

    result = CliRunner().invoke(config_cli.app, ["schema"])
    validator = jsonschema_rs.Draft202012Validator(json.loads(result.stdout))
    assert validator.is_valid(yaml.safe_load(EXAMPLE.read_text()))
    assert not validator.is_valid({"queue": {"request": 1}})
    assert not validator.is_valid({"listen": {"port": 70000}})


# Shapes


def test_the_quick_configuration_has_one_pool_and_lets_everybody_in() -> None:
    config = Config.quick(["http://127.0.0.1:8000", "http://127.0.0.1:8001/"], max_inflight=8)
    assert [(u.label, u.max_inflight) for u in config.pools[0].upstreams] == [
        ("127.0.0.1:8000", 8),
        ("127.0.0.1:8001", 8),
    ]
    assert config.pools[0].models == ("*",)
    assert config.anonymous_allowed


@pytest.mark.parametrize(
    ("upstreams", "max_inflight", "line"),
    [
        (["127.0.0.1:8000"], 1, "--upstream = '127.0.0.1:8000': must be http://HOST:PORT or https://HOST:PORT"),
        (["http://a"], 0, "--max-inflight = 0: must be at least 1"),
        (["http://a", "http://a:80"], 1, "--upstream = 'http://a:80': given twice"),
    ],
)
def test_the_quick_configuration_refuses_in_one_line(upstreams: list[str], max_inflight: int, line: str) -> None:
    with pytest.raises(ConfigError, match="^" + re.escape(line)):
        Config.quick(upstreams, max_inflight)


def test_a_tenant_has_its_own_terms_and_else_the_defaults() -> None:
    config = parse(
        "tenant_defaults: {weight: 2, max_inflight: 9, models: [m], queue: {requests: 5}}\n"
        "tenants: [{id: a, weight: 1/2, models: ['*'], queue: {bytes: 7}}]\nsecurity: {cache_salt: on}"
    )
    a, other = config.terms()["a"], config.default_terms("unlisted")
    assert (a.weight, a.max_inflight, a.models, a.queue_requests, a.queue_bytes) == (Fraction(1, 2), 9, None, 5, 7)
    assert (other.weight, other.models, other.queue_bytes) == (2, frozenset({"m"}), 64 << 20)
    assert a.cache_salt != other.cache_salt  # D-7: tenants never share a prefix cache
    assert a.cache_salt == config.terms()["a"].cache_salt
    assert config.terms()["a"].flow().weight == Fraction(1, 2)


def test_a_pool_may_have_its_own_lengths() -> None:
    config = parse(
        "cost: {context_length: 4096, alpha: 1/3}\npools: [{name: a, models: [m], context_length: 512}, {name: b}]"
    )
    first, second = (config.cost_model(pool) for pool in config.pools)
    assert (first.context_length, second.context_length, first.alpha) == (512, 4096, Fraction(1, 3))


def test_the_transport_keeps_its_own_defaults() -> None:
    assert Config().server_limits() == Limits()
    assert Config().client_limits() == ClientLimits()
    config = parse("limits: {reader_rate: 9}\ntimeouts: {first_byte: 9s}")
    assert config.server_limits() == Limits(reader_rate=9)
    assert config.client_limits() == ClientLimits(first_byte_seconds=9)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("", True),
        ("tenants: [{id: a}]", False),  # its last key was revoked: nobody may enter instead
        ("listen: {host: 0.0.0.0}", False),
        ("listen: {host: localhost}", True),
        ("listen: {host: 0.0.0.0}\nidentity: {anonymous: allow}", True),
        ("identity: {anonymous: refuse}", False),
    ],
)
def test_anonymous_requests_enter_by_themselves_only_where_no_key_was_ever_meant(text: str, allowed: bool) -> None:
    assert parse(text).anonymous_allowed is allowed


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("tenants: [{id: a}]", "nobody can enter"),
        ("listen: {host: '::'}\nidentity: {anonymous: allow}", "whoever reaches it may send requests without a key"),
        ("identity: {trusted_tenant_headers_from: ['0.0.0.0/0']}", "every peer may name any tenant"),
        ("console: {admin_token: fifteen-letters}", "console.admin_token has 15 characters and may be guessed"),
        (
            "pools: [{upstreams: [{url: 'http://a', max_inflight: 1, credential: x}]}]",
            "its credential crosses the network",
        ),
    ],
)
def test_what_is_probably_not_meant_is_warned_of(text: str, warning: str) -> None:
    [line] = warnings(parse(text))
    assert warning in line
    assert "fifteen" not in line
    assert warnings(Config()) == []
    assert warnings(parse("console: {admin_token: sixteen-letters-}")) == []


def test_the_example_says_what_to_export_and_the_check_names_what_is_missing() -> None:
    text = EXAMPLE.read_text()
    exported = set(re.findall(r"^#   export (\w+)=", text, re.M))
    assert exported == set(ENVIRON)
    with pytest.raises(InvalidConfig) as refused:
        load(EXAMPLE, {})
    assert {problem.rule for problem in refused.value.problems} == {
        f"environment variable {name} is not set or empty" for name in exported
    }


# The command


def test_config_check_says_good_or_lists_what_is_not(tmp_path: Path) -> None:
    good = CliRunner().invoke(config_cli.app, ["check", str(EXAMPLE)], env=ENVIRON)
    assert (good.exit_code, good.stderr) == (0, "")
    assert "2 pools, 3 upstreams, 3 tenants" in good.stdout
    bad = tmp_path / "bad.yaml"
    bad.write_text("queue: {requests: 0}\nlog: x\n")
    result = CliRunner().invoke(config_cli.app, ["check", str(bad)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert [line.split(" = ")[0] for line in result.stderr.splitlines()] == [
        f"{bad}:1: queue.requests",
        f"{bad}:2: log",
    ]


def test_config_schema_prints_the_documentation() -> None:
    assert CliRunner().invoke(config_cli.app, ["schema", "--markdown"]).stdout == reference() + "\n"
