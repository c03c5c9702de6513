"""A gateway in this process before scripted upstreams, with everything it decided at hand.

async with world(slots=1) as w:
    reply = await w.post("/v1/chat/completions", chat("hello", max_tokens=5))
    await w.idle()                      # every request over, every slot free, the core's invariants hold
    [ended] = w.ended                   # the one record of each request
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import httpx
import yaml

from fairq.core import snapshot
from fairq.core.commands import Dispatch, Ended
from fairq.core.events import Refused
from fairq.core.lifecycle import Outcome
from fairq.core.lines import decode
from fairq.gateway.config import parse
from fairq.gateway.dispatcher import Record
from fairq.gateway.gateway import Gateway
from fairq.gateway.pool import Pool
from fairq.testing.clock import eventually
from fairq.testing.upstream import ScriptedUpstream

CHAT = "/v1/chat/completions"


def chat(text: str = "hello", **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **fields}


def run(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Make a plain test of a coroutine, with its fixtures and parameters; half a minute is an eternity here."""

    @wraps(test)
    def plain(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 30))

    return plain


class Lines:
    """A recorder that keeps the decoded lines."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def open(self, pool: Pool) -> None: ...

    def record(self, pool: str) -> Record:
        return lambda lines: self.all.extend(map(decode, lines.splitlines()))

    async def close(self) -> None: ...


@dataclass
class World:
    gateway: Gateway
    upstreams: list[ScriptedUpstream]
    client: httpx.AsyncClient
    lines: Lines
    url: str
    logged: list[Ended | Refused] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)  # as logged, by request
    complaints: list[str] = field(default_factory=list)  # what an operator reads

    @property
    def upstream(self) -> ScriptedUpstream:
        return self.upstreams[0]

    @property
    def pool(self) -> Pool:
        return self.gateway.first_pool

    def of(self, kind: type) -> list[Any]:
        return [line for line in self.lines.all if isinstance(line, kind)]

    @property
    def ended(self) -> list[Ended]:
        return self.of(Ended)

    @property
    def dispatched(self) -> list[Dispatch]:
        return self.of(Dispatch)

    @property
    def refused(self) -> list[Refused]:
        return self.of(Refused)

    def outcome(self, id_: str) -> Outcome:
        [record] = [record for record in (*self.ended, *self.refused) if record.id == id_]
        return record.outcome

    async def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        return await self.client.post(path, json=body, headers={k.replace("_", "-"): v for k, v in headers.items()})

    def later(self, path: str, body: Any, **headers: str) -> "asyncio.Task[httpx.Response]":
        return asyncio.create_task(self.post(path, body, **headers))

    async def waiting(self, count: int) -> None:
        """Until so many requests wait."""
        await eventually(lambda: self.pool.scheduler.policy.waiting() == count)

    async def running(self, count: int) -> None:
        """Until so many requests hold a slot."""
        await eventually(lambda: self.inflight == count)

    @property
    def inflight(self) -> int:
        return sum(upstream.inflight for upstream in self.pool.scheduler.upstreams.values())

    async def idle(self, seconds: float = 5.0) -> None:
        """Until nothing lives; then every gauge must be back at zero and every request have one outcome."""
        pools = self.gateway.pools.values()
        await eventually(lambda: not any(pool.scheduler.jobs for pool in pools), "nothing lives", seconds)
        for pool in pools:
            snapshot.validate(pool.scheduler)
            assert all(upstream.inflight == 0 for upstream in pool.scheduler.upstreams.values())
            assert pool.admission.requests == pool.admission.bytes == 0
            assert not pool.dispatcher.calls
        ids = [record.id for record in (*self.ended, *self.refused)]
        assert len(ids) == len(set(ids)), "a request ended twice"


@asynccontextmanager
async def world(
    config: str = "", *, upstreams: int = 1, slots: int = 4, pool: str = "", pools: Sequence[str] = ()
) -> AsyncIterator[World]:
    """`config`: YAML beside `pools`; `pool`: YAML of the one pool beside its upstreams, each with `slots`.

    `pools`: YAML of several pools instead, p0, p1, ..., with one upstream each.
    """
    async with scripted(len(pools) or upstreams, slots) as (servers, listed):
        made = [{"name": f"p{i}", "upstreams": [listed[i]]} | yaml.safe_load(text) for i, text in enumerate(pools)]
        given = yaml.safe_load(config) or {}
        given |= {"listen": {"port": 0}, "pools": made or [{"upstreams": listed} | (yaml.safe_load(pool) or {})]}
        lines = Lines()
        logged: list[Ended | Refused] = []
        failures: dict[str, str] = {}
        complaints: list[str] = []

        def log(pool: str, record: Ended | Refused, failure: str) -> None:
            logged.append(record)
            if failure:
                failures[record.id] = failure

        gateway = Gateway(parse(json.dumps(given)), lines, log, complaints.append)
        await gateway.start()
        url = f"http://127.0.0.1:{gateway.server.port}"
        try:
            async with httpx.AsyncClient(base_url=url, timeout=20, limits=httpx.Limits(max_connections=2000)) as client:
                yield World(gateway, servers, client, lines, url, logged, failures, complaints)
        finally:
            await end(gateway)


@asynccontextmanager
async def scripted(count: int, slots: int) -> AsyncIterator[tuple[list[ScriptedUpstream], list[dict[str, Any]]]]:
    """Upstreams u0, u1, ..., and what a configuration says of them."""
    servers = [ScriptedUpstream() for _ in range(count)]
    try:
        for server in servers:
            await server.start()
        yield servers, [{"name": f"u{i}", "url": each.url, "max_inflight": slots} for i, each in enumerate(servers)]
    finally:
        for server in servers:
            await server.stop()


async def end(gateway: Gateway) -> None:
    """Drain without patience: what a test left running is of no interest."""
    timeouts = gateway.config.timeouts.model_copy(update={"drain": 0.05})
    gateway.config = gateway.config.model_copy(update={"timeouts": timeouts})
    await gateway.drain()


async def read_stream(response: httpx.Response) -> list[str]:
    return [line async for line in response.aiter_lines() if line]
