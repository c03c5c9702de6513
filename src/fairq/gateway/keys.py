"""API keys: made here, kept by their hash only.

A key is `fq-` and 256 random bits. A key of that strength needs no slow password hash: SHA-256 cannot be inverted and
its input cannot be guessed. Nor does the look-up need constant time: what a dict compares is the hash, an attacker who
could measure it would learn bits of a hash that he cannot steer, and knowing all of it still gives no key.
"""

import hashlib
import secrets
from collections.abc import Iterable, Mapping

PREFIX = "fq-"


def new_key() -> str:
    """A fresh key of 46 characters, safe in headers, URLs and shells."""
    return PREFIX + secrets.token_urlsafe(32)


def fingerprint(key: bytes) -> bytes:
    """The 32 bytes by which a key is known."""
    return hashlib.sha256(key).digest()


def config_line(key: str) -> str:
    """`sha256:...`, what stands in the configuration."""
    return "sha256:" + fingerprint(key.encode()).hex()


def key_table(keys: Iterable[tuple[str, Iterable[str]]]) -> dict[bytes, str]:
    """(tenant, its `sha256:` lines) pairs to fingerprint -> tenant. Many keys may be one tenant."""
    return {bytes.fromhex(line.removeprefix("sha256:")): tenant for tenant, lines in keys for line in lines}


def tenant_of(table: Mapping[bytes, str], key: bytes) -> str | None:
    """Whose key it is; None if nobody's, or no longer."""
    return table.get(fingerprint(key))
