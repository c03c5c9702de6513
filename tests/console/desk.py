"""A gateway with its ledger and control socket in this process, before scripted upstreams, and a console beside it.

async with desk(tmp_path, slots=1) as d:
    await d.chat("a")
    await d.folded()                    # the console has seen everything
    state = (await d.get("/api/state")).json()
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml
from tests.gateway.harness import CHAT, end, scripted

from fairq.console.api import Console
from fairq.console.guard import Access
from fairq.console.link import Link
from fairq.console.live import Live
from fairq.gateway.config import parse
from fairq.gateway.control import Control
from fairq.gateway.gateway import Gateway
from fairq.gateway.pool import Pool
from fairq.gateway.recording import Recorder
from fairq.ledger.disk import Disk
from fairq.testing.clock import eventually
from fairq.testing.upstream import ScriptedUpstream

TOKEN = "a-token-for-tests"
ADMIN = {"authorization": f"Bearer {TOKEN}"}
HEADER_TENANTS = "identity: {trusted_tenant_headers_from: ['127.0.0.0/8'], max_auto_tenants: 100000}"


@dataclass
class Desk:
    gateway: Gateway
    upstreams: list[ScriptedUpstream]
    control: Control
    link: Link
    live: Live
    console: Console
    api: httpx.AsyncClient
    client: httpx.AsyncClient
    complaints: list[str]

    @property
    def upstream(self) -> ScriptedUpstream:
        return self.upstreams[0]

    @property
    def pool(self) -> Pool:
        return self.gateway.first_pool

    async def chat(self, tenant: str = "a", text: str = "hello", **fields: Any) -> httpx.Response:
        body = {"model": "m", "messages": [{"role": "user", "content": text}], **fields}
        return await self.api.post(CHAT, json=body, headers={"x-fairq-tenant": tenant})

    def later(self, tenant: str = "a", **fields: Any) -> "asyncio.Task[httpx.Response]":
        return asyncio.create_task(self.chat(tenant, **fields))

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.client.get(path, headers={k.replace("_", "-"): v for k, v in headers.items()})

    async def patch(self, path: str, body: Any, **headers: str) -> httpx.Response:
        given = ADMIN | {k.replace("_", "-"): v for k, v in headers.items()}
        return await self.client.patch(path, json=body, headers=given)

    async def state(self) -> Any:
        reply = await self.get("/api/state")
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def waiting(self, count: int) -> None:
        await eventually(lambda: self.pool.scheduler.policy.waiting() == count, f"{count} waiting")

    async def folded(self) -> None:
        """Until the console knows every event there was."""

        def known() -> bool:
            return self.live.connected and all(
                name in self.live.pools and self.live.pools[name].world.seq == pool.scheduler.seq
                for name, pool in self.gateway.pools.items()
            )

        await eventually(known, "the console has folded everything")


@asynccontextmanager
async def desk(
    folder: Path,
    config: str = HEADER_TENANTS,
    *,
    upstreams: int = 1,
    slots: int = 4,
    access: Access | None = None,
    labels: int = 200,
    reload: Callable[[], list[str]] = list,
    disk: Disk | None = None,
) -> AsyncIterator[Desk]:
    async with scripted(upstreams, slots) as (servers, listed):
        given = (yaml.safe_load(config) or {}) | {
            "listen": {"port": 0},
            "ledger": {"dir": str(folder / "ledger"), "fsync": "10s"},
            "pools": [{"upstreams": listed}],
        }
        complaints: list[str] = []
        control: Control | None = None

        def send(pool: str, lines: bytes) -> None:
            if control is not None:
                control.send(pool, lines)

        parsed = parse(json.dumps(given))
        recorder = Recorder(parsed, complaints.append, send, disk)
        gateway = Gateway(parsed, recorder)
        await gateway.start()

        async def reloading() -> list[str]:
            return reload()

        control = Control(gateway, reloading, recorder)
        live = Live(labels)
        link = Link(folder / "control.sock", live, folder / "ledger")
        await control.start(link.path)
        console = Console(live, link, access or Access(token=TOKEN))
        task = asyncio.create_task(link.run())
        transport = httpx.ASGITransport(console.app())
        try:
            async with (
                httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.server.port}", timeout=20) as api,
                httpx.AsyncClient(base_url="http://127.0.0.1", transport=transport) as client,
            ):
                d = Desk(gateway, servers, control, link, live, console, api, client, complaints)
                await d.folded()
                yield d
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await control.close()
            await end(gateway)
