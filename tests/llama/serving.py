"""`fairq` as its users run it: each command a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

FAIRQ = str(Path(sys.executable).with_name("fairq"))


class Serve:
    """`fairq serve` with this configuration, from its greeting to its drained end.

    url, console   where API and console answer, without a path; `console` is empty when there is none
    """

    def __init__(self, config: dict[str, Any], folder: Path) -> None:
        path = folder / "fairq.yaml"  # JSON is YAML
        path.write_text(json.dumps(config))
        self.url = self.console = ""
        self.log = folder / "serve.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen([FAIRQ, "serve", "-c", str(path)], stdout=log, stderr=log)

    def __enter__(self) -> Self:
        deadline = time.monotonic() + 30
        while "Try:" not in (said := self.log.read_text()):
            if time.monotonic() > deadline or self.process.poll() is not None:
                self._stop()
                raise RuntimeError(f"fairq serve did not start: {said[-2000:]}")
            time.sleep(0.02)
        for line in said.splitlines():
            name, _, value = line.strip().partition(" http")
            if name == "fairq serves":
                self.url = f"http{value}".removesuffix("/v1")
            elif name == "console:":
                self.console = f"http{value}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def fairq(*arguments: str | Path) -> str:
    """What a command prints. It may exit with 1, which is its verdict; RuntimeError for anything else."""
    done = subprocess.run([FAIRQ, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(f"fairq {arguments[0]}: status {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def ask(*arguments: str | Path) -> Any:
    """The same with --json, decoded."""
    return json.loads(fairq(*arguments, "--json"))
