"""The child process of `start_engines`: settings as JSON in the first argument, ends when standard input does."""

from __future__ import annotations

import asyncio
import sys

import msgspec

from fairq.core.errors import FairqError
from fairq.engines.process import new_event_loop, serve
from fairq.engines.settings import EngineSettings


async def _until_parent_ends(settings: EngineSettings) -> None:
    stopped = asyncio.Event()

    class Parent(asyncio.Protocol):
        def connection_lost(self, error: Exception | None) -> None:
            stopped.set()

    await asyncio.get_running_loop().connect_read_pipe(Parent, sys.stdin)
    await serve(settings, announce, stopped)


def announce(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.flush()


def main() -> None:
    try:
        settings = msgspec.json.decode(sys.argv[1], type=EngineSettings)
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_until_parent_ends(settings))
    except (FairqError, msgspec.DecodeError, OSError) as wrong:
        sys.exit(f"fairq: simulated engine: {wrong}")


if __name__ == "__main__":
    main()
