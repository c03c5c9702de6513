"""Who a recorded request is charged to.

Most traces have no tenants. They are then derived by a rule that the user states and that every output
repeats:

    trace      the trace's own client (the default where it has one)
    one        a single tenant `all` (the default elsewhere)
    hash:K     K tenants; a request's place in the trace is hashed into one, so all get about equal traffic
    prefix:K   K tenants; the id of the prompt's first prefix block is hashed into one, so equal beginnings (a
               shared system prompt, a conversation) stay together
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Protocol

import msgspec

from fairq.core.errors import ConfigError
from fairq.traces.request import Request

RULE = "must be trace, one, hash:K or prefix:K with K from 1 to 9999"
Tenant = Callable[[int, Request], str]


class Traffic(Protocol):
    """A trace, or a workload that can be iterated like one."""

    name: str
    clients: bool
    block_tokens: int

    def __iter__(self) -> Iterator[Request]: ...


def default_rule(trace: Traffic) -> str:
    return "trace" if trace.clients else "one"


def tenant_of(rule: str, trace: Traffic) -> Tenant:
    """The function (place in the trace, request) -> tenant. ConfigError for a rule that this trace cannot follow."""
    name, _, digits = rule.partition(":")
    if rule == "one":
        return lambda _, request: "all"
    if rule == "trace":
        if not trace.clients:
            raise ConfigError("--tenants-by", rule, f"{trace.name} does not say who sent a request")
        return lambda _, request: request.client
    if name not in ("hash", "prefix") or not (digits.isdecimal() and 1 <= int(digits) <= 9999):
        raise ConfigError("--tenants-by", rule, RULE)
    if name == "prefix" and not trace.block_tokens:
        raise ConfigError("--tenants-by", rule, f"{trace.name} has no prefix blocks")
    count, width = int(digits), len(str(int(digits) - 1))

    def hashed(place: int, request: Request) -> str:
        key = place if name == "hash" else request.blocks[0] if request.blocks else -1
        number = int.from_bytes(blake2b(str(key).encode(), digest_size=8).digest()) % count
        return f"t{number:0{width}}"

    return hashed


def with_tenants(trace: Traffic, rule: str, requests: Iterable[Request] | None = None) -> Iterator[Request]:
    """The trace's requests (or these of it) with `client` set by the rule."""
    tenant = tenant_of(rule, trace)
    for place, request in enumerate(trace if requests is None else requests):
        yield msgspec.structs.replace(request, client=tenant(place, request))
