"""Simulated servers in a process of their own, so that their CPU time is not the data plane's."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from fairq.core.errors import CannotListen, FairqError
from fairq.engines.server import SimulatedServer
from fairq.engines.settings import EngineSettings

_START_SECONDS = 30.0
_STOP_SECONDS = 5.0


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed."""
    try:
        import uvloop
    except ImportError:  # Windows, PyPy
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class Announcement(msgspec.Struct):
    """The one line that servers print when all of them answer."""

    simulated: bool
    model: str
    max_sequences: int
    engines: list[str]  # base URLs without /v1


async def serve(settings: EngineSettings, announce: Callable[[bytes], None], stopped: asyncio.Event) -> None:
    """Run the servers until `stopped`; `announce` gets one line of JSON when all are ready.

    Raises CannotListen.
    """
    servers = [SimulatedServer(settings) for _ in range(settings.count)]
    try:
        for index, server in enumerate(servers):
            port = settings.port + index if settings.port else 0
            try:
                await server.start(port)
            except OSError as error:
                raise CannotListen("engine.host", "engine.port", settings.host, port, error) from None
        limit = settings.engine_model().max_sequences
        line = Announcement(True, settings.model, limit, [server.url for server in servers])
        announce(msgspec.json.encode(line) + b"\n")
        await stopped.wait()
    finally:
        for server in servers:
            await server.stop()


@dataclass(slots=True)
class Engines:
    """Simulated servers in a child process. They end with `stop`, or with this process however it ends."""

    urls: list[str]
    model: str
    max_sequences: int  # of each
    process: asyncio.subprocess.Process

    async def stop(self) -> None:
        """End the child and wait for it. Nothing when it is gone."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            await asyncio.wait_for(self.process.wait(), _STOP_SECONDS)
        except TimeoutError:
            await _kill(self.process)


async def start_engines(settings: EngineSettings) -> Engines:
    """Start `settings.count` servers in a child process and wait until they answer.

    FairqError when they do not come up; the child's own message is on standard error.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "fairq.engines",
        msgspec.json.encode(settings).decode(),
        stdin=asyncio.subprocess.PIPE,  # never written: its end tells the child that this process is gone
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the gateway, which may still be draining into these servers
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), _START_SECONDS)
        ready = msgspec.json.decode(line, type=Announcement)
    except (TimeoutError, msgspec.DecodeError):
        await _kill(process)
        raise FairqError("the simulated engines did not start") from None
    return Engines(ready.engines, ready.model, ready.max_sequences, process)


async def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):  # it may have ended by itself just now
        process.kill()
    await process.wait()
