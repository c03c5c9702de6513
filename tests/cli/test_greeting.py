"""What `fairq serve` prints can be typed: the model exists, and who needs a key is told to give one."""

import json
import re
import shlex

import pytest

from fairq.cli.greeting import greeting
from fairq.gateway.config import Config, parse
from fairq.gateway.keys import config_line

POOL = "pools: [{upstreams: [{url: 'http://a:1', max_inflight: 4}, {url: 'http://b:1', max_inflight: 4}]}]\n"
KEYED = POOL + f"tenants: [{{id: a, keys: ['{config_line('k')}']}}]\n"


def typed(text: str) -> list[str]:
    """The words of the curl command, as a shell reads them."""
    [line] = [line for line in text.splitlines() if "chat/completions" in line]
    return shlex.split(line)


def test_the_command_names_a_model_that_exists() -> None:
    words = typed(greeting(parse(POOL), 80, models=["it's a model", "other"]))
    body = json.loads(words[words.index("-d") + 1])
    assert words[:2] == ["curl", "http://127.0.0.1:80/v1/chat/completions"]
    assert (body["model"], body["max_tokens"]) == ("it's a model", 20)


def test_without_a_model_it_says_how_to_find_one() -> None:
    text = greeting(parse(KEYED), 80, models=[])
    assert "  curl http://127.0.0.1:80/v1/models -H 'authorization: Bearer KEY'" in text.splitlines()
    assert '"MODEL"' in text


@pytest.mark.parametrize(
    ("config", "header"),
    [
        (POOL, None),
        (KEYED, "authorization: Bearer KEY"),
        (KEYED + "identity: {anonymous: allow}", None),
        (KEYED + "identity: {trusted_tenant_headers_from: [127.0.0.1]}", "authorization: Bearer KEY"),
        (POOL + "identity: {trusted_tenant_headers_from: [127.0.0.1], anonymous: refuse}", "x-fairq-tenant: TENANT"),
    ],
)
def test_who_needs_a_key_is_told_to_give_one(config: str, header: str | None) -> None:
    words = typed(greeting(parse(config), 80, models=["m"]))
    given = [words[place + 1] for place, word in enumerate(words) if word == "-H"]
    assert given == ["content-type: application/json", *([header] if header else [])]


def test_what_is_where() -> None:
    text = greeting(parse("listen: {host: '::1'}"), 8080, models=["m"], simulated=2, console_port=8081)
    assert re.findall(r"http://\S+", text)[:2] == ["http://[::1]:8080/v1", "http://127.0.0.1:8081"]
    assert "in front of 2 simulated servers" in text
    assert "pool default: sfq, fixed; 8 slots on a:1, b:1" in greeting(parse(POOL), 80, models=["m"])
    assert "console" not in greeting(Config(), 80, models=["m"])
