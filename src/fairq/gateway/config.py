"""The configuration: one YAML file through strict types.

    config = load(Path("fairq.yaml"))       raises InvalidConfig: every problem, one line each, with file and line
    config = Config.quick(["http://127.0.0.1:8000"], max_inflight=8)
    config = Config()                       no pools: the gateway starts its embedded engine

Errors come in two rounds: what is wrong with single keys first, what is wrong between keys once those are right.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal, Self

import msgspec
from pydantic import ValidationError, model_validator
from pydantic_core import PydanticCustomError

from fairq.core.cost import CostModel
from fairq.core.errors import ConfigError
from fairq.core.job import Flow
from fairq.gateway.config_check import broken_rules, is_loopback
from fairq.gateway.config_names import origin
from fairq.gateway.config_problems import problems_of
from fairq.gateway.config_sections import (
    Console,
    Cost,
    Endpoint,
    Identity,
    Ledger,
    Limits,
    Listen,
    Many,
    Pool,
    Queue,
    Section,
    Security,
    Tenant,
    TenantDefaults,
    Timeouts,
    Upstream,
    key,
)
from fairq.gateway.config_source import InvalidConfig, Problem, Source, show_place
from fairq.gateway.http1.limits import ClientLimits
from fairq.gateway.http1.limits import Limits as ServerLimits

ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a tenant has, its own entry and the defaults put together. `models` None: all."""

    id: str
    weight: Fraction
    max_inflight: int | None
    models: frozenset[str] | None
    queue_requests: int
    queue_bytes: int
    cache_salt: str | None

    def flow(self) -> Flow:
        return Flow(id=self.id, weight=self.weight, max_inflight=self.max_inflight)


class Config(Section):
    """Everything `fairq serve` is told. All keys are optional."""

    listen: Listen = key(Listen(), "where clients connect", restart=True)
    console: Console = key(Console(), "the second process", restart=True)
    ledger: Ledger = key(Ledger(), "the record", restart=True)
    log: Literal["text", "json", "off"] = key("text", "one line per request on standard output", restart=True)
    limits: Limits = key(Limits(), "what clients may take", restart=True)
    timeouts: Timeouts = Timeouts()
    queue: Queue = Queue()
    identity: Identity = Identity()
    security: Security = Security()
    cost: Cost = Cost()
    pools: Many[Pool] = key((), "none: the embedded simulated engine")
    tenant_defaults: TenantDefaults = TenantDefaults()
    tenants: Many[Tenant] = ()
    endpoints: Many[Endpoint] = key((), "paths besides the built-in ones")

    @model_validator(mode="after")
    def _joined_rules(self) -> Self:
        broken = broken_rules(self)
        if broken:
            text = "; ".join(f"{show_place(place)}: {rule}" for place, rule in broken)
            raise PydanticCustomError("joined", "{text}", {"text": text, "broken": broken})
        return self

    @classmethod
    def quick(cls, upstreams: Sequence[str], max_inflight: int) -> Self:
        """`fairq serve --upstream URL --max-inflight N`: one pool, no keys. Raises ConfigError."""
        seen: set[str] = set()
        for url in upstreams:
            try:
                if origin(url) in seen:
                    raise ConfigError("--upstream", url, "given twice")
                seen.add(origin(url))
            except PydanticCustomError as error:
                raise ConfigError("--upstream", "***" if "@" in url else url, error.message()) from None
        if max_inflight < 1:
            raise ConfigError("--max-inflight", max_inflight, "must be at least 1")
        pool = Pool(upstreams=tuple(Upstream(url=url, max_inflight=max_inflight) for url in upstreams))
        return cls(pools=(pool,), identity=Identity(anonymous="allow"))

    @property
    def anonymous_allowed(self) -> bool:
        """The rule of `identity.anonymous`. Removing a tenant's last key never opens the gateway."""
        if self.identity.anonymous is None:
            return not self.tenants and is_loopback(self.listen.host)
        return self.identity.anonymous == "allow"

    def default_terms(self, tenant: str) -> Terms:
        """Of a tenant without an entry."""
        return self._terms(Tenant(id=tenant))

    def terms(self) -> dict[str, Terms]:
        """Of every tenant with an entry, by id."""
        return {tenant.id: self._terms(tenant) for tenant in self.tenants}

    def _terms(self, tenant: Tenant) -> Terms:
        default = self.tenant_defaults
        models = default.models if tenant.models is None else tenant.models
        salt = None
        if tenant.cache_salt is not None:
            salt = tenant.cache_salt.get_secret_value()
        elif self.security.cache_salt:
            # Isolation needs only that tenants differ: a client's own value never reaches an engine.
            salt = hashlib.sha256(b"fairq cache salt " + tenant.id.encode()).hexdigest()
        return Terms(
            id=tenant.id,
            weight=default.weight if tenant.weight is None else tenant.weight,
            max_inflight=default.max_inflight if tenant.max_inflight is None else tenant.max_inflight,
            models=None if "*" in models else frozenset(models),
            queue_requests=tenant.queue.requests or default.queue.requests,
            queue_bytes=tenant.queue.bytes or default.queue.bytes,
            cache_salt=salt,
        )

    def cost_model(self, pool: Pool) -> CostModel:
        """The rates of one pool."""
        cost = self.cost
        return CostModel(
            alpha=cost.alpha,
            beta=cost.beta,
            cached_discount=cost.cached_discount,
            default_output=pool.default_output or cost.default_output,
            context_length=pool.context_length or cost.context_length,
            bytes_per_token=cost.bytes_per_token,
            models=cost.multipliers.models,
            adapters=cost.multipliers.adapters,
            tiers=cost.multipliers.tiers,
        )

    def server_limits(self) -> ServerLimits:
        """What the HTTP server is told."""
        limits, timeouts = self.limits, self.timeouts
        return ServerLimits(
            head_bytes=limits.head_bytes,
            header_lines=limits.header_lines,
            connections=limits.connections,
            connections_per_peer=limits.connections_per_peer,
            buffered_bytes=limits.buffered_bytes,
            buffered_bytes_per_peer=limits.buffered_bytes_per_peer,
            sender_rate=limits.sender_rate,
            reader_rate=limits.reader_rate,
            head_seconds=timeouts.head,
            idle_seconds=timeouts.keep_alive,
            sender_seconds=timeouts.sender,
            reader_seconds=timeouts.reader,
        )

    def client_limits(self) -> ClientLimits:
        """What the connections to upstreams are told."""
        timeouts = self.timeouts
        return ClientLimits(
            connect_seconds=timeouts.connect,
            first_byte_seconds=timeouts.first_byte,
            idle_seconds=timeouts.idle,
            keepalive_seconds=timeouts.upstream_keep_alive,
        )

    def hash(self) -> str:
        """16 hexadecimal digits over what decisions depend on, whatever the order in which it is written.

        Addresses, timeouts, keys and secrets are not part of it.
        """
        relevant = [
            [
                [
                    pool.name,
                    sorted(pool.models),
                    pool.policy,
                    pool.settlement,
                    pool.placement,
                    pool.wait_for_upstream,
                    self.cost_model(pool),
                    sorted((upstream.label, upstream.max_inflight) for upstream in pool.upstreams),
                ]
                for pool in sorted(self.pools, key=lambda pool: pool.name)
            ],
            [[terms.flow(), terms.queue_requests, terms.queue_bytes] for _, terms in sorted(self.terms().items())],
            self.default_terms(ANONYMOUS).flow(),
            [self.queue.requests, self.queue.bytes, self.queue.time_to_live, self.queue.max_time_to_live],
            [[e.path, e.cost, e.units] for e in sorted(self.endpoints, key=lambda e: e.path)],
            self.cost.calibrate,
        ]
        return hashlib.sha256(msgspec.json.encode(relevant, enc_hook=str, order="sorted")).hexdigest()[:16]


def load(path: Path, environ: Mapping[str, str] = os.environ) -> Config:
    """Read a file. Raises InvalidConfig."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidConfig(str(path), [Problem(0, "", None, f"cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError:
        raise InvalidConfig(str(path), [Problem(0, "", None, "is not UTF-8")]) from None
    return parse(text, str(path), environ, path.parent)


def parse(text: str, name: str = "<text>", environ: Mapping[str, str] = os.environ, base: Path | None = None) -> Config:
    """YAML text to a configuration; `base` is what its relative paths start from. Raises InvalidConfig."""
    source = Source(text, name, environ)
    problems = list(source.problems)
    known = {problem.key for problem in problems}  # what stands in for a wrong value may break a rule too
    try:
        config = Config.model_validate(source.value, context={"base": base})
    except ValidationError as error:
        found = (problem for detail in error.errors() for problem in problems_of(detail, source, Config))
        problems += [problem for problem in found if problem.key not in known]
    if problems:
        raise InvalidConfig(name, problems)
    return config
