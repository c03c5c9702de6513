"""The lab's addresses: its pages and its API. Who may ask is decided by whoever mounts them."""

import asyncio
from collections.abc import Callable
from functools import cache
from math import nan
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from fairq.lab import catalogue
from fairq.lab.bundle import STATIC, NotBuilt, page
from fairq.lab.crew import Crew
from fairq.lab.files import LONGEST_WINDOW
from fairq.lab.openapi import document
from fairq.lab.worker import RECENT, Window, failure
from fairq.ledger.segment import folder_of

RUN = "/api/lab/run"
RECORDED = "/api/lab/recent"
MAX_ORDER = 32 << 20  # bytes, of files and what base64 adds to them
COMPRESSED = 1 << 12  # answers from this size on
FOREVER = {"cache-control": "public, max-age=31536000, immutable"}


class Lab:
    """`live`: is there a dashboard at / too? `ledger`: the directory of the gateway's, None while it is not known"""

    def __init__(self, live: bool = False, ledger: Callable[[], Path | None] = lambda: None) -> None:
        self.live, self.ledger = live, ledger
        self.crew = Crew()
        self._warming: asyncio.Task[None] | None = None

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/lab/static/{name}", self.static),
            Route("/lab", self.page),
            Route("/lab/{page}", self.page),
            Route("/api/lab/policies", told(lambda: catalogue.policies())),
            Route("/api/lab/scenarios", told(lambda: catalogue.scenarios())),
            Route("/api/lab/openapi.json", told(document)),
            Route(RUN, self.run, methods=["POST"]),
            *([Route(RECORDED, self.recent)] if self.live else []),
        ]

    async def page(self, request: Request) -> Response:
        if self._warming is None:  # what the page asks for next
            self._warming = asyncio.create_task(self._warm())
        try:
            return Response(page(self.live), media_type="text/html")
        except NotBuilt as error:
            return Response(f"{error}\n", 503, media_type="text/plain")

    async def _warm(self) -> None:
        await asyncio.to_thread(lambda: (catalogue.scenarios(), catalogue.policies()))

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if not STATIC.is_dir() or name not in {path.name for path in STATIC.iterdir()}:
            return reply(*failure(404, "unknown_path", f"there is nothing at /static/{name[:256]}"))
        packed = STATIC / f"{name}.gz"
        headers = dict(FOREVER) if "-" in name else {}
        if packed.is_file() and "gzip" in request.headers.get("accept-encoding", ""):
            headers |= {"content-encoding": "gzip", "vary": "accept-encoding"}
            kind = "text/javascript" if name.endswith(".js") else "text/css"
            return FileResponse(packed, headers=headers, media_type=kind)
        return FileResponse(STATIC / name, headers=headers)

    async def run(self, request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return reply(*failure(415, "wrong_type", "the body must be application/json"))
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_ORDER:
                return reply(
                    *failure(413, "too_large", f"files: at most {MAX_ORDER * 3 >> 22} MB can be opened at once")
                )
        try:
            order = bytes(msgspec.json.format(bytes(body), indent=-1))  # on one line
        except msgspec.DecodeError as error:
            return reply(*failure(400, "wrong_body", f"the body is not valid JSON: {error}"))
        status, answer = await self.crew.answer(order, again=True)
        return reply(status, answer, request)

    async def recent(self, request: Request) -> Response:
        """The last seconds of one of the gateway's pools, as a recording that was opened."""
        given = request.query_params
        try:
            seconds = float(given.get("seconds", "30"))
        except ValueError:
            seconds = nan
        if not 0 < seconds <= LONGEST_WINDOW:
            return reply(*failure(400, "wrong_query", f"seconds must be from 0 to {LONGEST_WINDOW:g}"))
        ledger = self.ledger()
        if ledger is None:
            return reply(
                *failure(503, "no_ledger", "the ledger's directory is not known until the gateway has connected")
            )
        folder = ledger / folder_of(given.get("pool", ""))
        if not given.get("pool") or not folder.is_dir():
            return reply(*failure(404, "unknown_pool", f"no pool {given.get('pool', '')[:256]!r} has a ledger"))
        window = msgspec.json.encode(Window(str(folder), seconds))
        return reply(*await self.crew.answer(RECENT + window), request)


def told(value: Callable[[], object]) -> Callable[[Request], Response]:
    """An endpoint that always says the same."""

    @cache
    def body() -> bytes:
        return msgspec.json.encode(value())

    def endpoint(request: Request) -> Response:
        return reply(200, body(), request)

    return endpoint


def reply(status: int, body: bytes, request: Request | None = None) -> Response:
    """JSON; compressed where it is worth it and the reader can."""
    headers = {}
    if request and len(body) >= COMPRESSED and "gzip" in request.headers.get("accept-encoding", ""):
        import gzip

        body = gzip.compress(body, 4)
        headers = {"content-encoding": "gzip", "vary": "accept-encoding"}
    return Response(body, status, headers, media_type="application/json")
