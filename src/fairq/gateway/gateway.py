"""The gateway: an HTTP server whose requests wait in pools. Routes, readiness, reload, shutdown."""

import asyncio
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from itertools import count
from typing import Protocol

import msgspec
from pydantic_core import PydanticCustomError

from fairq.core import events as ev
from fairq.core.commands import Ended
from fairq.core.errors import ConfigError, FairqError, UnknownName
from fairq.core.lifecycle import Outcome
from fairq.gateway import config_values, models
from fairq.gateway.config import Config
from fairq.gateway.config_names import is_tenant_id
from fairq.gateway.config_reload import Change, changes
from fairq.gateway.config_sections import Endpoint
from fairq.gateway.dispatcher import Record
from fairq.gateway.http1.exchange import Exchange
from fairq.gateway.http1.headers import Headers
from fairq.gateway.http1.server import Server
from fairq.gateway.identity import Refusal
from fairq.gateway.intake import BUILT_IN, Intake
from fairq.gateway.pool import Pool
from fairq.gateway.reading import given_id, new_id
from fairq.gateway.replies import error_reply, protocol_error
from fairq.gateway.tenants import AutoTenants, Identifier

JSON = [(b"content-type", b"application/json")]
LAST_WORDS = 1.0  # seconds in which clients may take the error that ends their response when a drain is over


class Recorder(Protocol):
    """Where the lines of pools go: the ledger, or nowhere."""

    def open(self, pool: Pool) -> None:
        """Before the pool's first event."""

    def record(self, pool: str) -> Record: ...

    async def close(self) -> None: ...


class Unrecorded:
    """Nowhere."""

    def open(self, pool: Pool) -> None: ...

    def record(self, pool: str) -> Record:
        return lambda lines: None

    async def close(self) -> None: ...


class Gateway:
    """
    recorder   takes every event and decision
    log        called with the pool, the record of each request that ended or was refused, and why an attempt failed
    complain   takes what an operator should read, one line each
    """

    # Of the configuration, what every request asks for
    body_bytes: int
    waiting_comments: float  # seconds between two, 0 for none
    adapters: Mapping[str, Fraction]

    def __init__(
        self,
        config: Config,
        recorder: Recorder,
        log: Callable[[str, Ended | ev.Refused, str], None] = lambda pool, record, failure: None,
        complain: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.config, self._recorder, self._log, self._complain = config, recorder, log, complain
        self.draining = False
        self.next_arrival = count(1).__next__
        self._auto = AutoTenants(config.identity.max_auto_tenants, self._is_live, self._forget)
        self.identifier = Identifier(config, self._auto)
        self.pools: dict[str, Pool] = {}
        self._by_model: dict[str, Pool] = {}
        self.server = Server(self, config.server_limits(), protocol_error)
        self._extra: Mapping[str, Endpoint] = {}

    async def start(self) -> None:
        """Pools first, then the listener: the first request finds everything there. Raises OSError."""
        for pool in self.config.pools:
            record, log = self._recorder.record(pool.name), self._logger(pool.name)
            made = Pool(self.config, pool, record, log, self._complain)
            self.pools[pool.name] = made
            self._recorder.open(made)
            made.start()
        self._adopt(self.config)
        try:
            await self.server.start(self.config.listen.host, self.config.listen.port)
        except OSError:
            await self.drain()
            raise

    def __call__(self, exchange: Exchange) -> None:
        """A request's head is complete."""
        method, path = exchange.head.method, exchange.head.path
        if method == b"POST" and path in BUILT_IN:
            Intake(self, exchange, None).begin()
            return
        extra = self._extra.get(path)
        look = LOOKS.get(path) or (_model if path.startswith(models.PATH + "/") else None)
        allowed = b"POST" if path in BUILT_IN else extra.method.encode() if extra is not None else b"GET, HEAD"
        if look is None and path not in BUILT_IN and extra is None:
            self._answer(exchange, 404, *error_reply(404, f"{path[:256]} is not served here", code="unknown_path"))
        elif method == b"OPTIONS":
            self._answer(exchange, 204, [(b"allow", allowed + b", OPTIONS")], b"")
        elif method not in allowed.split(b", "):
            headers, body = error_reply(405, f"{path} takes {allowed.decode()}", code="wrong_method")
            self._answer(exchange, 405, [*headers, (b"allow", allowed)], body)
        elif look is not None:
            self._answer(exchange, *look(self, exchange))
        else:
            Intake(self, exchange, extra).begin()

    @staticmethod
    def _answer(exchange: Exchange, status: int, headers: Headers, body: bytes) -> None:
        id_ = given_id(exchange.head) or new_id()
        exchange.respond(status, [*headers, (b"x-request-id", id_.encode())], body)

    def pool_for(self, model: str) -> Pool | None:
        return self._by_model.get(model) or self._by_model.get("*")

    @property
    def first_pool(self) -> Pool:
        """Whose ledger records what was refused before its pool was known."""
        return next(iter(self.pools.values()))

    def refused(self, pool: Pool, id_: str, tenant: str, outcome: Outcome, status: int) -> None:
        pool.dispatcher.emit(ev.Refused, id=id_, tenant=tenant, outcome=outcome, status=status)
        scheduler = pool.scheduler
        self._log(
            pool.name,
            ev.Refused(seq=scheduler.seq, time=scheduler.now, id=id_, tenant=tenant, outcome=outcome, status=status),
            "",
        )

    # Changes from outside
    def reload(self, config: Config) -> list[Change]:
        """Apply a checked configuration as a whole, or raise FairqError and change nothing."""
        different = changes(self.config, config)
        if fixed := [change for change in different if change.restart]:
            raise FairqError(f"{'; '.join(map(str, fixed))}: needs a restart of the gateway; nothing was changed")
        prepared = [self.pools[pool.name].prepare(config, pool) for pool in config.pools]
        self.config = config
        self.server.limits = config.server_limits()
        self._auto.shrink(config.identity.max_auto_tenants)
        for apply in prepared:
            apply()
        self._adopt(config)
        return different

    def set_weight(self, tenant: str, weight: object) -> None:
        """`weight` as a configuration gives it: a number, or text such as "3/2". Raises ConfigError."""
        self._check_tenant(tenant)
        try:
            exact = config_values.weight(weight)
        except PydanticCustomError as error:
            raise ConfigError("weight", str(weight)[:64], error.message()) from None
        for pool in self.pools.values():
            pool.set_weight(tenant, exact)

    def pause(self, tenant: str, paused: bool) -> None:
        """Raises ConfigError."""
        self._check_tenant(tenant)
        for pool in self.pools.values():
            pool.pause(tenant, paused)

    def drain_upstream(self, pool: str, upstream: str, draining: bool) -> None:
        if pool not in self.pools:
            raise UnknownName("pool", pool, self.pools)
        if upstream not in self.pools[pool].backends:
            raise UnknownName("upstream", upstream, self.pools[pool].backends)
        self.pools[pool].drain_upstream(upstream, draining)

    async def drain(self) -> None:
        """SIGTERM: refuse what waits, let what runs end for `timeouts.drain`, then break off the rest."""
        self.draining = True
        for pool in self.pools.values():
            pool.drain()
        grace = self.config.timeouts.drain
        ended = asyncio.create_task(self.server.drain(grace + LAST_WORDS))
        await asyncio.wait([ended], timeout=grace)
        for pool in self.pools.values():
            pool.cut()
        await ended
        for pool in self.pools.values():
            await pool.close()
        await self._recorder.close()

    # Building blocks
    def _adopt(self, config: Config) -> None:
        self.identifier = Identifier(config, self._auto)
        self._extra = {endpoint.path: endpoint for endpoint in config.endpoints}
        self.body_bytes, self.waiting_comments = config.limits.body_bytes, config.queue.waiting_comments
        self.adapters = config.cost.multipliers.adapters
        self._by_model = {model: self.pools[pool.name] for pool in config.pools for model in pool.models}

    def _is_live(self, tenant: str) -> bool:
        return any(pool.dispatcher.is_live(tenant) for pool in self.pools.values())

    def _forget(self, tenant: str) -> None:
        for pool in self.pools.values():
            pool.forget(tenant)

    @staticmethod
    def _check_tenant(tenant: str) -> None:
        if not is_tenant_id(tenant):
            raise ConfigError("tenant", tenant[:64], "is no tenant's id")

    def _logger(self, pool: str) -> Callable[[Ended, str], None]:
        return partial(self._log, pool)


Answer = tuple[int, Headers, bytes]


def _models(gateway: Gateway, exchange: Exchange) -> Answer:
    identity = gateway.identifier.identify(exchange.headers, exchange.peer[0])
    if isinstance(identity, Refusal):
        return _refusal(identity)
    return 200, JSON, models.listing(models.allowed_models(gateway.pools.values(), identity.tenant))


def _model(gateway: Gateway, exchange: Exchange) -> Answer:
    identity = gateway.identifier.identify(exchange.headers, exchange.peer[0])
    if isinstance(identity, Refusal):
        return _refusal(identity)
    name = models.asked_for(exchange.path)
    if name in models.allowed_models(gateway.pools.values(), identity.tenant):
        return 200, JSON, models.description(name)
    message = f"the model {name[:256]!r} does not exist here"
    return 404, *error_reply(404, message, code="model_not_found", param="model")


def _refusal(refusal: Refusal) -> Answer:
    """Without an outcome: a question about the gateway is no request, and is counted nowhere."""
    headers, body = error_reply(refusal.status, refusal.message, code=refusal.code)
    return refusal.status, [*headers, *refusal.headers], body


def _health(gateway: Gateway, exchange: Exchange) -> Answer:
    """The process lives and answers."""
    return 200, JSON, b'{"status":"ok"}'


def _ready(gateway: Gateway, exchange: Exchange) -> Answer:
    """Requests can be served: not draining, and every pool has an upstream in rotation."""
    dark = [name for name, pool in gateway.pools.items() if not pool.scheduler.is_lit()]
    if gateway.draining or dark:
        why = "draining" if gateway.draining else f"no healthy upstream in pool {', '.join(dark)}"
        return 503, JSON, msgspec.json.encode({"status": "not ready", "reason": why})
    return 200, JSON, b'{"status":"ready"}'


LOOKS: dict[str, Callable[[Gateway, Exchange], Answer]] = {
    models.PATH: _models,
    "/health": _health,
    "/ready": _ready,
}
