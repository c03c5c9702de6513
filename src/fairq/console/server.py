"""The console process: one event loop that folds, serves and watches, until its parent or an operator ends it."""

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn
from msgspec import Struct

from fairq.console.api import Console
from fairq.console.engines import watch
from fairq.console.guard import Access
from fairq.console.link import Link
from fairq.console.live import LABELS, Live
from fairq.core.errors import CannotListen

SWITCH_SECONDS = 0.001  # how long a thread that renders or explains may keep the folding waiting
CONNECTIONS = 256
GRACE = 2  # seconds that open answers get at the end


class Settings(Struct, frozen=True, kw_only=True):
    """
    path    of the data plane's Unix socket
    listen  an open socket to serve on, or None to bind `access.host`:`port`
    child   end with standard input: it is a pipe of the data plane's
    labels  tenants that are counted on their own
    ledger  its directory, for what was before the console connected; None asks the data plane
    """

    path: Path
    access: Access
    port: int = 0
    listen: int | None = None
    child: bool = False
    labels: int = LABELS
    ledger: Path | None = None


def run(settings: Settings) -> None:
    """Until SIGTERM, SIGINT, or the end of standard input for a child. Raises FairqError."""
    settings.access.check()
    listener = _listener(settings)
    sys.setswitchinterval(SWITCH_SECONDS)
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        runner.run(serve(settings, listener))


async def serve(settings: Settings, listener: socket.socket) -> None:
    live = Live(settings.labels)
    link = Link(settings.path, live, settings.ledger)
    console = Console(live, link, settings.access)
    server = _Server(
        uvicorn.Config(
            console.app(),
            access_log=False,
            log_level="warning",
            lifespan="off",
            proxy_headers=False,
            server_header=False,
            ws="none",
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=GRACE,
        )
    )
    loop = asyncio.get_running_loop()

    def stop() -> None:
        console.closing.set()
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if settings.child:
        await _watch_parent(stop)
    tasks = [loop.create_task(link.run()), loop.create_task(watch(link, live))]
    try:
        await server.serve([listener])
    finally:
        await console.lab.crew.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are ours: they also end the streams."""
        yield


async def _watch_parent(stop: Callable[[], None]) -> None:
    class Parent(asyncio.Protocol):
        def connection_lost(self, error: Exception | None) -> None:
            stop()

    await asyncio.get_running_loop().connect_read_pipe(Parent, sys.stdin)


def _listener(settings: Settings) -> socket.socket:
    if settings.listen is not None:
        return socket.socket(fileno=settings.listen)
    return bind(settings.access.host, settings.port)


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises CannotListen."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise CannotListen("--host", "--port", host, port, error) from None


def address_of(listener: socket.socket) -> str:
    """Its URL."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
