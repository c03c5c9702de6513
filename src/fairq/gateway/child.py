"""A child process that is kept alive: started again when it dies, stopped by closing its standard input.

A child that reads its standard input to the end notices that its parent is gone however that happened.
"""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0  # seconds before a restart; doubled while it keeps dying at once
SETTLED = 10.0  # a child that lived this long was well


class Child:
    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        complain: Callable[[str], None],
        files: Sequence[int] = (),
    ) -> None:
        """`files`: descriptors that it inherits, each time it is started."""
        self._files = files
        self._command, self._environ, self._complain = command, environ, complain
        self._task: asyncio.Task[None] | None = None
        self.process: asyncio.subprocess.Process | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        process = self.process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(3):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _keep(self) -> None:
        pause = FIRST_PAUSE
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                end = f"ended with status {await self._run()}"
            except OSError as error:  # no memory or descriptors for it at the moment
                end = f"could not be started: {error.strerror or error}"
            if loop.time() - began > SETTLED:
                pause = FIRST_PAUSE
            self._complain(f"{self._command[1]} {end}; starting it again in {pause:g} s")
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _run(self) -> int:
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            env=dict(self._environ),
            pass_fds=self._files,
            start_new_session=True,  # Ctrl-C is for the gateway, which stops its children itself
        )
        return await self.process.wait()
