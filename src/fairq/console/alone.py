"""The lab alone, behind the console's guard."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fairq.console import answers
from fairq.console.guard import Access, Guard
from fairq.lab.openapi import document
from fairq.lab.routes import Lab, told


def run(access: Access, listener: socket.socket) -> None:
    """Until SIGTERM or SIGINT."""
    settings = uvicorn.Config(
        app(access), access_log=False, log_level="warning", proxy_headers=False, server_header=False, ws="none"
    )
    asyncio.run(uvicorn.Server(settings).serve([listener]))


def app(access: Access) -> Guard:
    lab = Lab()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await lab.crew.close()

    routes = [Route("/", _to_lab), Route("/api/openapi.json", told(document)), *lab.routes()]
    handlers: answers.Handlers = {HTTPException: answers.no_such_thing, Exception: answers.broken}
    return Guard(Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers), access)


def _to_lab(request: Request) -> Response:
    return RedirectResponse("/lab")
