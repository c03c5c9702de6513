"""Rules that join several keys, and what is allowed but deserves a warning."""

import ipaddress
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairq.gateway.config_source import Place

if TYPE_CHECKING:
    from fairq.gateway.config import Config

Broken = tuple[Place, str]

TOKEN_LENGTH = 16  # characters; a console answers one wrong guess per second

BUILT_IN = ("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/models", "/health", "/ready")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def broken_rules(config: "Config") -> list[Broken]:
    """Every rule between keys that `config` breaks, with the place of the key to change."""
    return [
        *_names(config),
        *_models(config),
        *_keys(config),
        *_amounts(config),
        *_addresses(config),
        *_endpoints(config),
    ]


def _repeated(given: list[tuple[Place, str]]) -> Iterator[tuple[Place, str, Place]]:
    """(place, text, place before) for each text that stood somewhere before."""
    first: dict[str, Place] = {}
    for place, text in given:
        if text in first:
            yield place, text, first[text]
        else:
            first[text] = place


def _names(config: "Config") -> Iterator[Broken]:
    pools = [(("pools", i, "name"), pool.name) for i, pool in enumerate(config.pools)]
    tenants = [(("tenants", i, "id"), tenant.id) for i, tenant in enumerate(config.tenants)]
    upstreams: list[tuple[Place, str]] = [
        (("pools", i, "upstreams", j, "name" if upstream.name else "url"), upstream.label)
        for i, pool in enumerate(config.pools)
        for j, upstream in enumerate(pool.upstreams)
    ]
    for kind, given in (("pool", pools), ("tenant", tenants), ("upstream", upstreams)):
        for place, name, _ in _repeated(list(given)):
            yield place, f"another {kind} is called {name}"


def _models(config: "Config") -> Iterator[Broken]:
    claims = [
        (("pools", i, "models", j), model) for i, pool in enumerate(config.pools) for j, model in enumerate(pool.models)
    ]
    for place, _, before in _repeated(list(claims)):
        yield place, f"pool {config.pools[int(before[1])].name} already serves it"
    served = {model for pool in config.pools for model in pool.models}
    if not served or "*" in served:
        return
    asked = [(("tenant_defaults", "models", i), model) for i, model in enumerate(config.tenant_defaults.models)]
    for place, model in [
        *asked,
        *(
            (("tenants", i, "models", j), model)
            for i, tenant in enumerate(config.tenants)
            for j, model in enumerate(tenant.models or ())
        ),
    ]:
        if model != "*" and model not in served:
            yield place, "no pool serves it"


def _keys(config: "Config") -> Iterator[Broken]:
    given: list[tuple[Place, str]] = [
        (("tenants", i, "keys", j), key) for i, tenant in enumerate(config.tenants) for j, key in enumerate(tenant.keys)
    ]
    for place, _, before in _repeated(given):
        yield place, f"this key already belongs to tenant {config.tenants[int(before[1])].id}"


def _amounts(config: "Config") -> Iterator[Broken]:
    cost, queue, limits, ledger = config.cost, config.queue, config.limits, config.ledger
    if not cost.alpha and not cost.beta:
        yield ("cost", "beta"), "alpha and beta must not both be 0"
    if cost.default_output > cost.context_length:
        yield ("cost", "default_output"), "must be at most cost.context_length"
    for i, pool in enumerate(config.pools):
        if (pool.default_output or cost.default_output) > (pool.context_length or cost.context_length):
            key = "default_output" if pool.default_output else "context_length"
            yield ("pools", i, key), "the predicted output must be at most the context length"
    if queue.time_to_live > queue.max_time_to_live:
        yield ("queue", "time_to_live"), "must be at most queue.max_time_to_live"
    for key in ("connections", "buffered_bytes"):
        if getattr(limits, f"{key}_per_peer") > getattr(limits, key):
            yield ("limits", f"{key}_per_peer"), f"must be at most limits.{key}"
    if limits.body_bytes > limits.buffered_bytes_per_peer:
        yield ("limits", "body_bytes"), "must be at most limits.buffered_bytes_per_peer"
    if limits.head_bytes < 1024:
        yield ("limits", "head_bytes"), "must be at least 1KiB: clients send that much"
    if ledger.rotate_bytes < 1 << 16:
        yield ("ledger", "rotate_bytes"), "must be at least 64KiB: each segment begins with the full state"
    if ledger.keep_bytes < ledger.rotate_bytes:
        yield ("ledger", "keep_bytes"), "must be at least ledger.rotate_bytes"


def _addresses(config: "Config") -> Iterator[Broken]:
    listen, console = config.listen, config.console
    if not console.enabled:
        return
    if console.port == listen.port != 0 and console.host == listen.host:
        yield ("console", "port"), "listen.port is the same"
    if not is_loopback(console.host) and console.admin_token is None:
        yield ("console", "host"), "off loopback the console needs console.admin_token"


def _endpoints(config: "Config") -> Iterator[Broken]:
    given: list[tuple[Place, str]] = [
        (("endpoints", i, "path"), endpoint.path) for i, endpoint in enumerate(config.endpoints)
    ]
    for place, path, _ in _repeated(given):
        yield place, f"{path} is already given"
    for place, path in given:
        if path in BUILT_IN:
            yield place, "is built in"
    for i, endpoint in enumerate(config.endpoints):
        if endpoint.method == "GET" and endpoint.cost != "fixed":
            yield ("endpoints", i, "cost"), "must be fixed: a GET has no body to count"


def token_warnings(key: str, token: str) -> list[str]:
    """About an admin token that can be guessed. The token itself is not shown."""
    if not token or len(token) >= TOKEN_LENGTH:
        return []
    return [f"{key} has {len(token)} characters and may be guessed; take {TOKEN_LENGTH} or more: openssl rand -hex 16"]


def warnings(config: "Config") -> list[str]:
    """One line for each thing that is allowed and probably not meant."""
    found = []
    keyed = any(tenant.keys for tenant in config.tenants)
    trusted = config.identity.trusted_tenant_headers_from
    if not config.anonymous_allowed and not keyed and not trusted:
        found.append(
            "nobody can enter: no tenant has a key, and identity.anonymous is refused; "
            "see `fairq key new`, or set identity.anonymous: allow"
        )
    if config.anonymous_allowed and not is_loopback(config.listen.host):
        found.append(f"listen.host = {config.listen.host}: whoever reaches it may send requests without a key")
    if config.console.admin_token is not None:
        found += token_warnings("console.admin_token", config.console.admin_token.get_secret_value())
    for block in trusted:
        if block.endswith("/0"):
            found.append(f"identity.trusted_tenant_headers_from = {block}: every peer may name any tenant")
    for pool in config.pools:
        if not pool.upstreams:
            found.append(f"pool {pool.name} has no upstreams: its requests wait, then end with 503")
        for upstream in pool.upstreams:
            host = upstream.url.partition("://")[2].rpartition(":")[0].strip("[]")
            if upstream.credential and upstream.url.startswith("http://") and not is_loopback(host):
                found.append(f"upstream {upstream.label}: its credential crosses the network unencrypted")
    return found
