"""The console's HTTP application: routes, bodies, errors. Who may ask is `guard`'s part."""

import asyncio
import re
import time
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from fairq.console import answers, events, state, views
from fairq.console.guard import Access, Guard, Refusal
from fairq.console.heaviest import OTHER
from fairq.console.link import Link, Unavailable
from fairq.console.live import Live
from fairq.console.metrics import Families
from fairq.console.openapi import document
from fairq.console.page import page
from fairq.console.snapshot import snapshot
from fairq.core.lines import encode
from fairq.lab.routes import Lab
from fairq.ledger.explain import explain
from fairq.ledger.reader import pools_in
from fairq.ledger.segment import LedgerError
from fairq.ledger.words import sentences

SHOWN_TENANTS, MOST_TENANTS = 100, 10_000
MAX_READERS = 64  # of the event stream
SUMMARY_SECONDS = 0.25
FOLD_SECONDS = 2.0  # how long the answer to a change waits until the change is seen in the ledger stream
WEIGHT = r"^(?=[0-9.]*[1-9])[0-9]{1,12}(\.[0-9]{1,9}|/0{0,11}[1-9][0-9]{0,11})?$"  # 3, 0.25, 7/2; not 0, not 1/0
STATIC = Path(__file__).parent / "static"
TENANT = re.compile(r"[A-Za-z0-9._@:+/-]{1,128}")
REQUEST = re.compile(r"[!-~]{1,128}")


class TenantPatch(Struct, forbid_unknown_fields=True):
    """`weight`: a positive number, 3, 1.5 or "3/2". Both last until the next reload of the configuration."""

    weight: Annotated[float, Meta(ge=1e-9, le=1e12)] | Annotated[str, Meta(pattern=WEIGHT)] | UnsetType = UNSET
    paused: bool | UnsetType = UNSET


class UpstreamPatch(Struct, forbid_unknown_fields=True):
    """`draining`: true sends no more requests there; running ones end as they do."""

    draining: bool


class Console:
    """`closing`: set when the process ends; streams end with it."""

    def __init__(self, live: Live, link: Link, access: Access) -> None:
        self.live, self.link, self.access = live, link, access
        self.lab = Lab(live=True, ledger=lambda: link.ledger)
        self.closing = asyncio.Event()
        self._readers = 0
        self._summed, self._summary_until = b"", 0.0
        self._rendering, self._explaining = asyncio.Lock(), asyncio.Lock()

    def app(self) -> Guard:
        routes = [
            Route("/", self.page),
            Route("/static/{name}", self.static),
            Route("/health", self.health),
            Route("/metrics", self.metrics),
            Route("/api/openapi.json", self.openapi),
            Route("/api/state", self.state),
            Route("/api/tenants", self.tenants),
            Route("/api/tenants/{id:path}", self.tenant, methods=["GET", "PATCH"]),
            Route("/api/upstreams", self.upstreams),
            Route("/api/upstreams/{name:path}", self.change_upstream, methods=["PATCH"]),
            Route("/api/reload", self.reload, methods=["POST"]),
            Route("/api/explain/{id:path}", self.explain),
            Route("/api/events", self.events),
            *self.lab.routes(),
        ]
        handlers: answers.Handlers = {
            Refusal: answers.refused,
            HTTPException: answers.no_such_thing,
            Unavailable: answers.unavailable,
            Exception: answers.broken,
        }
        return Guard(Starlette(routes=routes, exception_handlers=handlers), self.access)

    # Reading
    async def page(self, request: Request) -> Response:
        decisions = {name: list(pool.decisions) for name, pool in self.live.pools.items()}
        return Response(page(state.state_of(self.live, SHOWN_TENANTS), decisions), media_type="text/html")

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in {path.name for path in STATIC.iterdir()}:
            raise HTTPException(404)
        return FileResponse(STATIC / name)

    async def health(self, request: Request) -> Response:
        return answers.json(views.Health("ok", self.live.connected))

    async def metrics(self, request: Request) -> Response:
        render, content_type = choose_encoder(request.headers.get("accept", ""))
        async with self._rendering:
            registry = CollectorRegistry()
            registry.register(Families(snapshot(self.live)))
            text = await asyncio.to_thread(render, registry)
        return Response(text, headers={"content-type": content_type})

    async def openapi(self, request: Request) -> Response:
        return answers.json(await asyncio.to_thread(document))  # it imports the models of all layers

    async def state(self, request: Request) -> Response:
        most = answers.number_of(request, "tenants", SHOWN_TENANTS, 0, MOST_TENANTS)
        return answers.json(state.state_of(self.live, int(most)))

    async def tenants(self, request: Request) -> Response:
        most = answers.number_of(request, "limit", MOST_TENANTS, 1, MOST_TENANTS)
        return answers.json(views.Tenants(state.everywhere(self.live)[: int(most)]))

    async def tenant(self, request: Request) -> Response:
        if request.method == "PATCH":
            return await self._change_tenant(request)
        return answers.json(views.Tenants(self._known_tenant(request.path_params["id"])))

    async def upstreams(self, request: Request) -> Response:
        every = [view for name, pool in self.live.pools.items() for view in state.upstream_views(self.live, name, pool)]
        return answers.json(views.Upstreams(every))

    async def events(self, request: Request) -> Response:
        kinds = frozenset(events.KINDS.values())
        if (asked := request.query_params.get("kinds")) is not None:
            kinds &= (given := frozenset(asked.split(",")))
            if given - kinds:
                raise Refusal(400, "wrong_query", f"kinds must be some of {', '.join(sorted(events.KINDS.values()))}")
        every = answers.number_of(request, "summary", 1.0, 0, 3600)
        back = answers.number_of(request, "back", 0.0, 0, 3600)
        position = self.live.ring.position(request.headers.get("last-event-id"), back)
        if self._readers >= MAX_READERS:
            raise Refusal(503, "too_many_readers", f"{MAX_READERS} read the events already", ((b"retry-after", b"5"),))
        lines = events.stream(
            self.live.ring,
            position,
            kinds=kinds,
            tenant=request.query_params.get("tenant"),
            summary=self._summary,
            every=every,
            closing=self.closing,
        )
        self._readers += 1

        async def counted() -> Any:
            try:
                async for line in lines:
                    yield line
            finally:
                self._readers -= 1

        return StreamingResponse(counted(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    async def explain(self, request: Request) -> Response:
        id_ = request.path_params["id"]
        folder = self.link.ledger
        if folder is None:
            raise Refusal(503, "no_ledger", "the ledger's directory is not known until the data plane has connected")
        found = None
        if REQUEST.fullmatch(id_):
            async with self._explaining:
                try:
                    found = await asyncio.to_thread(_explained, folder, id_)
                except LedgerError as error:
                    raise Refusal(500, "ledger", str(error)) from None
        if found is None:
            raise Refusal(404, "unknown_request", f"the ledger knows no request {id_[:128]!r}")
        return answers.json(found)

    # Changing
    async def _change_tenant(self, request: Request) -> Response:
        id_ = request.path_params["id"]
        patch = await answers.body_of(request, TenantPatch)
        weight = None if patch.weight is UNSET else Fraction(str(patch.weight))
        if weight is None and patch.paused is UNSET:
            raise Refusal(400, "wrong_body", "say what to change: weight, paused")
        self._known_tenant(id_)
        if weight is not None:
            await self._order("weight", tenant=id_, weight=str(weight))
        if patch.paused is not UNSET:
            await self._order("pause", tenant=id_, paused=patch.paused)

        def seen() -> bool:
            found = self._find_tenant(id_)
            return all(
                (weight is None or each.weight == str(weight)) and patch.paused in (UNSET, each.paused)
                for each in found
            )

        await self.live.until(seen, FOLD_SECONDS)
        return answers.json(views.Tenants(self._find_tenant(id_)))

    async def change_upstream(self, request: Request) -> Response:
        patch = await answers.body_of(request, UpstreamPatch)
        pool_name, name = self._known_upstream(request.path_params["name"])
        await self._order("drain", pool=pool_name, upstream=name, draining=patch.draining)

        def seen() -> bool:
            upstream = self.live.pools[pool_name].world.upstreams.get(name)
            return upstream is None or upstream.draining is patch.draining

        await self.live.until(seen, FOLD_SECONDS)
        every = state.upstream_views(self.live, pool_name, self.live.pools[pool_name])
        return answers.json(views.Upstreams([view for view in every if view.name == name]))

    async def reload(self, request: Request) -> Response:
        reply = await self._order("reload")
        return answers.json(views.Reloaded(reply))

    async def _order(self, do: str, **fields: Any) -> list[str]:
        reply = await self.link.order(do, **fields)
        if reply.error:
            raise Refusal(400, "refused", reply.error)
        return reply.changed

    # Building blocks
    def _find_tenant(self, id_: str) -> list[views.TenantView]:
        return state.everywhere(self.live, id_)

    def _known_tenant(self, id_: str) -> list[views.TenantView]:
        found = self._find_tenant(id_) if id_ != OTHER and TENANT.fullmatch(id_) else []
        if not found:
            raise Refusal(404, "unknown_tenant", f"no tenant {id_[:128]!r} is configured or has been seen lately")
        return found

    def _known_upstream(self, path: str) -> tuple[str, str]:
        """(pool, upstream) in POOL/NAME; both may contain slashes."""
        for pool_name, pool in self.live.pools.items():
            name = path.removeprefix(pool_name + "/")
            if name != path and name in pool.world.upstreams:
                return pool_name, name
        raise Refusal(404, "unknown_upstream", f"no upstream {path[:256]!r}; the path is POOL/NAME")

    def _summary(self) -> bytes:
        """The same for all readers for a moment: it costs O(tenants)."""
        now = time.monotonic()
        if now > self._summary_until:
            self._summed, self._summary_until = encode(state.summary_of(self.live)), now + SUMMARY_SECONDS
        return self._summed


def _explained(folder: Path, id_: str) -> views.Explained | None:
    for pool in pools_in(folder):
        try:
            found = explain(pool, id_)
        except LedgerError as error:
            if f"no request {id_}" not in str(error):
                raise
        else:
            return views.Explained(list(sentences(found)), found)
    return None
