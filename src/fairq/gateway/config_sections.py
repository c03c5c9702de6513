"""The sections of a configuration, as types. A field's description is its documentation (docs/configuration.md)."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Strict

from fairq.gateway.config_names import (
    Certificates,
    KeyHash,
    LocalPath,
    ModelName,
    Name,
    Network,
    Origin,
    PlacementName,
    PolicySpec,
    Secret,
    TenantId,
    UrlPath,
)
from fairq.gateway.config_values import Count, Duration, Period, Port, Rate, Rational, Share, Size, Switch, Weight
from fairq.gateway.http1 import limits as http1

_T = TypeVar("_T")
Many = Annotated[tuple[_T, ...], Strict(False)]  # a tuple never changes; YAML and JSON give lists
_SERVER, _CLIENT = http1.Limits(), http1.ClientLimits()  # the transport knows its defaults


def key(default: Any, text: str, *, restart: bool = False, **rules: Any) -> Any:
    """A key with a default. `restart`: a reload cannot change it while requests run."""
    return Field(default=default, description=text, json_schema_extra={"x-restart": True} if restart else None, **rules)


class Section(BaseModel):
    """Strict, immutable, and silent about what it was given: an error must not print a secret."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)


class Listen(Section):
    """Where clients connect."""

    host: Name = key("127.0.0.1", "address to bind; 0.0.0.0 or :: for every interface")
    port: Port = key(8080, "0 takes any free port")


class Console(Section):
    """The second process: metrics, JSON API, status page."""

    enabled: Switch = key(True, "run it as a supervised child")
    host: Name = key("127.0.0.1", "address to bind; off loopback `admin_token` is required")
    port: Port = key(8081, "0 takes any free port")
    admin_token: Secret | None = key(
        None, "needed for every change, and off loopback for everything; without one nothing can be changed"
    )
    hosts: Many[Name] = key((), "further Host names it answers to, such as fairq.example.org (against DNS rebinding)")
    tenants: Count = key(200, "tenants counted on their own, those with most traffic; the others together as `other`")


class Ledger(Section):
    """The record of every event and decision."""

    dir: LocalPath = key(Path("ledger"), "directory, relative to this file", validate_default=True)
    fsync: Duration = key(0.1, "a power failure loses at most this much; 0s syncs at every write")
    rotate_bytes: Size = key(64 << 20, "size at which a segment is closed")
    keep_bytes: Size = key(1 << 30, "of each pool: older segments are removed beyond this total")
    keep_age: Duration = key(
        30 * 86400.0, "segments older than this are removed; those of former pools at the next start"
    )


class Limits(Section):
    """What clients may take from the gateway, before any question of fairness. Rates are bytes per second."""

    head_bytes: Size = key(_SERVER.head_bytes, "request line and headers; beyond: 431")
    header_lines: Count = key(_SERVER.header_lines, "number of headers; beyond: 431")
    body_bytes: Size = key(32 << 20, "request body; beyond: 413")
    connections: Count = key(_SERVER.connections, "client connections at once")
    connections_per_peer: Count = key(_SERVER.connections_per_peer, "of these from one address")
    buffered_bytes: Size = key(_SERVER.buffered_bytes, "request bodies being received, in total")
    buffered_bytes_per_peer: Size = key(_SERVER.buffered_bytes_per_peer, "of these from one address")
    sender_rate: Rate = key(_SERVER.sender_rate, "a body that comes more slowly is cut: 408; 0: no limit")
    reader_rate: Rate = key(_SERVER.reader_rate, "a response read more slowly is cut: `stalled-client`; 0: no limit")


class Timeouts(Section):
    """How long each phase may take."""

    head: Period = key(_SERVER.head_seconds, "client: from first byte to end of headers")
    keep_alive: Period = key(_SERVER.idle_seconds, "client: between requests")
    sender: Period = key(_SERVER.sender_seconds, "client: `limits.sender_rate` is measured over it")
    reader: Period = key(_SERVER.reader_seconds, "client: `limits.reader_rate` is measured over it")
    connect: Period = key(_CLIENT.connect_seconds, "upstream: name, TCP and TLS")
    first_byte: Period = key(_CLIENT.first_byte_seconds, "upstream: dispatch to first byte")
    idle: Period = key(_CLIENT.idle_seconds, "upstream: between two reads of a response")
    upstream_keep_alive: Period = key(_CLIENT.keepalive_seconds, "upstream: an unused connection is closed after this")
    drain: Duration = key(30.0, "on SIGTERM running requests get this long to end")


class Queue(Section):
    """How much may wait, of all tenants together, and for how long."""

    requests: Count = key(10_000, "waiting requests; beyond: 429 refused-queue-full")
    bytes: Size = key(256 << 20, "bytes of their bodies")
    time_to_live: Period = key(60.0, "a request that waited longer ends as `expired`")
    max_time_to_live: Period = key(600.0, "upper end for a client's own `x-fairq-max-queue-wait` (seconds)")
    waiting_comments: Duration = key(
        0.0, "a stream that waits gets an SSE comment this often; 0s: none. It fixes the status at 200"
    )


class Identity(Section):
    """Who a request is charged to: its key's tenant, else a trusted header's, else `anonymous`."""

    anonymous: Literal["allow", "refuse"] | None = key(
        None,
        "requests without identity: tenant `anonymous`, or 401. Unset: allow only while no "
        "tenant is configured and `listen.host` is loopback",
    )
    trusted_tenant_headers_from: Many[Network] = key(
        (),
        "peers (CIDR) whose `x-fairq-tenant`, `x-llm-d-inference-fairness-id` or "
        "`x-gateway-inference-fairness-id` is believed; from everybody else these are stripped",
    )
    max_auto_tenants: Count = key(1000, "tenants made by trusted headers; idle ones give way")
    forward_client_key: Switch = key(False, "pass the client's key to upstreams without a `credential`")


class Multipliers(Section):
    """Factors of a request's cost. They multiply; names not listed count 1."""

    models: dict[str, Weight] = key({}, "by model name")
    adapters: dict[str, Weight] = key({}, "by LoRA adapter name")
    tiers: dict[str, Weight] = key({}, "by `service_tier`")


class Cost(Section):
    """c(r) = (alpha * input + beta * predicted output) * multipliers, in whole units, at least 1."""

    alpha: Rational = key(Fraction(1), "units per input token")
    beta: Rational = key(Fraction(2), "units per output token")
    cached_discount: Share = key(Fraction(0), "share of alpha that a cached input token saves, 0 to 1")
    default_output: Count = key(256, "predicted output of a tenant and model not seen before, tokens")
    context_length: Count = key(131_072, "of the models, tokens; caps predictions and reported usage")
    bytes_per_token: Weight = key(Fraction(4), "of text, until a tenant's own ratio is known")
    multipliers: Multipliers = Multipliers()
    calibrate: Switch = key(False, "slowly fit alpha and beta to measured times, for future requests")


class Health(Section):
    """The active probe of one upstream. Failing requests count too, answers from 500 on (not 501, 505) among them."""

    path: UrlPath = key("/health", "GET; any answer below 500 is healthy")
    interval: Period = key(5.0, "between two probes")
    timeout: Period = key(2.0, "of one probe")
    failures: Count = key(3, "in a row, requests among them, until it leaves rotation")


class Upstream(Section):
    """One LLM server."""

    url: Origin = Field(description="http://HOST:PORT or https://HOST:PORT, without a path")
    max_inflight: Count = Field(description="slots: how many requests it runs at once")
    name: Name | None = key(None, "in metrics and the ledger; unset: HOST:PORT of the URL")
    credential: Secret | None = key(None, "sent to it as `Authorization: Bearer`")
    ca: Certificates | None = key(None, "PEM file of the CA of its certificate, relative to this file")
    model: ModelName | None = key(None, "replaces the model's name in requests to it")
    health: Health = Health()

    @property
    def label(self) -> str:
        """`name`, or the host and port of its URL."""
        return self.name or self.url.partition("://")[2]


class Pool(Section):
    """The upstreams that serve the same models. Fairness holds within one pool."""

    name: Name = key("default", "in metrics and the ledger")
    models: Many[ModelName] = key(
        ("*",), 'names it serves, exactly; "*" for every model no other pool names', min_length=1
    )
    policy: PolicySpec = key("sfq", "NAME or NAME:key=value,key=value", restart=True)
    settlement: Literal["fixed", "forward"] = key(
        "fixed",
        "`fixed`: the estimate is final; `forward`: a finished request's error goes onto the next charges, "
        "recommended where tenants are not trusted",
        restart=True,
    )
    placement: PlacementName = key("least-loaded", "which upstream serves", restart=True)
    wait_for_upstream: Duration = key(0.0, "how long a request may wait while no upstream is healthy, before 503")
    context_length: Count | None = key(None, "of its models; unset: `cost.context_length`")
    default_output: Count | None = key(None, "of its models; unset: `cost.default_output`")
    upstreams: Many[Upstream] = key((), "may be empty: it may grow by a reload")


class DefaultQueue(Section):
    """How much of one tenant may wait."""

    requests: Count = key(1000, "waiting requests; beyond: 429 refused-queue-full")
    bytes: Size = key(64 << 20, "bytes of their bodies")


class TenantQueue(Section):
    """How much of this tenant may wait."""

    requests: Count | None = key(None, "waiting requests")
    bytes: Size | None = key(None, "bytes of their bodies")


class TenantDefaults(Section):
    """What a tenant has unless its own entry says otherwise; all of it for `anonymous` and header-made tenants."""

    weight: Weight = key(Fraction(1), "2 means twice the service of 1 while both are backlogged")
    max_inflight: Count | None = key(None, "running requests per pool; unset: no cap")
    models: Many[ModelName] = key(("*",), 'models it may ask for; "*" for all')
    queue: DefaultQueue = DefaultQueue()


class Tenant(Section):
    """One share. What is unset comes from `tenant_defaults`."""

    id: TenantId = Field(description="letters, digits, ._@:+/- ; `anonymous` is the one of requests without identity")
    weight: Weight | None = key(None, '3, 1.5 or "3/2", kept exactly')
    max_inflight: Count | None = key(None, "running requests per pool")
    models: Many[ModelName] | None = key(None, "models it may use; else 403")
    queue: TenantQueue = TenantQueue()
    keys: Many[KeyHash] = key((), "hashes of its API keys, as `fairq key new` prints them; removing one revokes it")
    cache_salt: Secret | None = key(None, "prefix-cache salt; unset: derived if `security.cache_salt`")


class Endpoint(Section):
    """A further path that is passed to upstreams."""

    path: UrlPath = Field(description="exact and normalised, such as /v1/rerank")
    method: Literal["GET", "POST"] = key("POST", "the only one let through")
    cost: Literal["tokens", "input", "fixed"] = key(
        "tokens", "`tokens`: as a completion; `input`: no output is predicted; `fixed`: `units`"
    )
    units: Count = key(1, "cost units of each request, for `fixed`")


class Security(Section):
    """What clients may not do to upstreams and to each other."""

    refuse_remote_images: Switch = key(False, "400 for an `image_url` that is not a data: URL")
    allow_fields: Many[Literal["priority", "vllm_xargs", "request_id", "kv_transfer_params", "cache_salt"]] = key(
        (), "engine-steering fields of a body that clients may set; others are removed"
    )
    allow_headers: Many[Literal["x-vllm-priority", "x-session-id"]] = key(
        (), "engine-steering headers that clients may send; others are removed"
    )
    cache_salt: Switch = key(False, "give each tenant its own prefix-cache salt, replacing the client's")
    show_upstream: Switch = key(False, "say `x-fairq-upstream` in responses")
