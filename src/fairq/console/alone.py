"""The lab alone, behind the console's guard."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fairq.console import answers
from fairq.console.guard import Access, Guard
from fairq.lab.routes import Lab


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

    routes = [Route("/", _to_lab), *lab.routes()]
    return Guard(Starlette(routes=routes, lifespan=lifespan, exception_handlers={Exception: answers.broken}), access)


def _to_lab(request: Request) -> Response:
    return RedirectResponse("/lab")
