"""API keys: strong, shown once, kept by hash; many may be one tenant; gone when their line is gone."""

import hashlib
import math
from pathlib import Path

import pytest
from tests.cli.program import fairq

from fairq.gateway.config import Config, parse
from fairq.gateway.keys import config_line, fingerprint, key_table, new_key, tenant_of


def table(config: Config) -> dict[bytes, str]:
    return key_table((tenant.id, tenant.keys) for tenant in config.tenants)


def test_a_fingerprint_is_the_published_sha_256() -> None:
    # FIPS 180-2, appendix B.1
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert config_line("abc") == "sha256:" + known
    assert fingerprint(b"abc").hex() == known


def test_a_key_holds_256_bits_in_characters_that_survive_everywhere() -> None:
    keys = {new_key() for _ in range(200)}
    assert len(keys) == 200
    for key in keys:
        assert key.startswith("fq-")
        assert (len(key) - len("fq-")) * math.log2(64) >= 256
        assert key.replace("-", "a").replace("_", "a").isalnum()


def test_many_keys_are_one_tenant() -> None:  # D-4
    keys = [new_key() for _ in range(50)]
    lines = "".join(f"\n  - {config_line(key)}" for key in keys)
    found = table(parse(f"tenants:\n- id: a\n  keys:{lines}\n- {{id: b, keys: ['{config_line('other')}']}}"))
    assert {tenant_of(found, key.encode()) for key in keys} == {"a"}
    assert tenant_of(found, b"other") == "b"
    assert tenant_of(found, b"") is None
    assert tenant_of(found, config_line("other").encode()) is None, "the hash is not the key"


def test_a_key_is_revoked_by_reloading_without_it() -> None:
    text = f"tenants: [{{id: a, keys: ['{config_line('old')}', '{config_line('new')}']}}]"
    before, after = table(parse(text)), table(parse(text.replace(f"'{config_line('old')}', ", "")))
    assert (tenant_of(before, b"old"), tenant_of(after, b"old"), tenant_of(after, b"new")) == ("a", None, "a")


def test_the_command_prints_a_key_and_the_line_that_admits_it() -> None:
    result = fairq("key", "new", "team-a")
    key, line = result.out.splitlines()
    assert result.status == 0
    assert line == "sha256:" + hashlib.sha256(key.encode()).hexdigest()
    assert key not in result.err
    assert tenant_of(table(parse(f"tenants: [{{id: team-a, keys: ['{line}']}}]")), key.encode()) == "team-a"


@pytest.mark.parametrize(
    ("tenant", "place"),
    [("a", "{}:3: tenants[0].keys"), ("b", "{}:6: tenants[1].keys"), ("c", "{}:1: tenants: a new entry")],
)
def test_the_command_says_where_the_line_goes_and_edits_nothing(tmp_path: Path, tenant: str, place: str) -> None:
    file = tmp_path / "f.yaml"
    text = f"tenants:\n- id: a\n  keys:\n  - {config_line('x')}\n\n- id: b\n  cache_salt: ${{NOT_SET_HERE}}\n"
    file.write_text(text)
    result = fairq("key", "new", tenant, "--config", file)
    assert result.status == 0
    assert place.format(file) in result.err
    assert file.read_text() == text


TENANT_RULE = "must be 1 to 128 letters, digits or ._@:+/- , first and last a letter or digit, and not `other`"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["a b"], f"TENANT = 'a b': {TENANT_RULE}"),
        (["other"], f"TENANT = 'other': {TENANT_RULE}"),
        (["a", "-c", "/does/not/exist"], "--config = '/does/not/exist': cannot be read: No such file or directory"),
    ],
)
def test_the_command_refuses_in_one_line(arguments: list[str], line: str) -> None:
    result = fairq("key", "new", *arguments)
    assert (result.status, result.out, result.err) == (2, "", f"fairq key new: {line}\n")
