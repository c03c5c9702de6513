"""Secrets of a configuration: never in an error, a repr, a dump, the schema, a warning or a list of changes."""

import json
from pathlib import Path

import pytest

from fairq.gateway.config import Config, load, parse
from fairq.gateway.config_check import warnings
from fairq.gateway.config_reload import changes
from fairq.gateway.config_source import InvalidConfig

SECRET = "hunter2hunter2"
EXAMPLE = Path(__file__).parents[2] / "examples" / "fairq.yaml"


@pytest.mark.parametrize(
    "text",
    [
        "console: {admin_token: '%s x'}",
        "console: {admin_token: [%s]}",
        "console: {admin_tokn: %s}",
        "console: {admin_token: %s\n: ]",
        "tenants: [{id: a, keys: [%s]}]",
        "tenants: [{id: a, cache_salt: {x: %s}}]",
        "pools: [{upstreams: [{url: 'http://me:%s@a', max_inflight: 1}]}]",
        "pools: [{upstreams: [{url: 'http://%s@[a', max_inflight: 1}]}]",
        "pools: [{upstreams: [{url: 'http://a', credential: 'é%s', max_inflight: 1}]}]",
        "listen: {port: '${P}'}",
        "pools: [{upstreams: [{url: 'http://${P}@a', max_inflight: 1}]}]",
        "queue:\n  time_to_live: ${P}",
        "tenants: [{id: a, models: ['${P}']}]\npools: [{models: [m]}]",
    ],
)
def test_a_refusal_never_shows_a_secret(text: str) -> None:
    if "%s" in text:
        text = text % SECRET
    with pytest.raises(InvalidConfig) as caught:
        parse(text, "f", {"P": SECRET})
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value.problems)


def test_nothing_printed_holds_a_secret() -> None:
    config = load(EXAMPLE, {name: "s3cret-" + name for name in ("FAIRQ_ADMIN_TOKEN", "GPU_1_KEY", "TEAM_B_SALT")})
    other = parse("console: {admin_token: s3cret-x}")
    shown = [
        repr(config),
        str(config),
        config.model_dump_json(),
        str(config.model_dump()),
        json.dumps(Config.model_json_schema()),
    ]
    shown += [str(change) for change in changes(other, config)] + warnings(config)
    assert not [text for text in shown if "s3cret" in text]
