"""The lab's addresses: its pages and its API. Who may ask is decided by whoever mounts them."""

import asyncio
from collections.abc import Callable
from functools import cache

import msgspec
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from fairq.lab import catalogue
from fairq.lab.bundle import STATIC, NotBuilt, page
from fairq.lab.crew import Crew
from fairq.lab.openapi import document
from fairq.lab.worker import failure

RUN = "/api/lab/run"
MAX_ORDER = 1 << 20  # bytes
COMPRESSED = 1 << 12  # answers from this size on
FOREVER = {"cache-control": "public, max-age=31536000, immutable"}


class Lab:
    """`live`: is there a dashboard at / too?"""

    def __init__(self, live: bool = False) -> None:
        self.live = live
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
                return reply(*failure(413, "too_large", f"a body may have {MAX_ORDER} bytes"))
        try:
            order = bytes(msgspec.json.format(bytes(body), indent=-1))  # on one line
        except msgspec.DecodeError as error:
            return reply(*failure(400, "wrong_body", f"the body is not valid JSON: {error}"))
        status, answer = await self.crew.answer(order)
        return reply(status, answer, request)


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
