"""Ctrl-C, SIGTERM and kill -9: no traceback, an exit status that says what happened, and no child left behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.load.test_load_replay import scripted, together

from fairq.testing.clock import eventually
from fairq.testing.replies import Hang
from fairq.testing.upstream import ScriptedUpstream

PROGRAM = [sys.executable, "-c", "import sys; from fairq.cli import main; sys.argv[0] = 'fairq'; main()"]
SERVE = ["serve", "--port", "0", "--console-port", "0", "--ledger"]
LONG = ["sim", "cpu", "--task", "A:0:9000000", "--task", "B:0:9000000", "--policy", "rr:quantum=1", "--json"]


@contextmanager
def started(*arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive its test."""
    pipe = subprocess.PIPE
    with subprocess.Popen([*PROGRAM, *map(str, arguments)], stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def lives(pid: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def served(process: subprocess.Popen[bytes]) -> list[int]:
    """Wait until it greets; its children."""
    assert process.stdout is not None
    for line in process.stdout:
        if b"fairq audit" in line:
            break
    until(lambda: len(children(process.pid)) == 2, "the simulated servers and the console are there")
    return children(process.pid)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -9)])
def test_serve_leaves_no_child_behind(tmp_path: Path, number: int, status: int) -> None:
    with started(*SERVE, tmp_path / "ledger") as process:
        found = served(process)
        process.send_signal(number)
        assert process.wait(20) == status
        until(lambda: not any(map(lives, found)), "the children are gone")
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    assert (tmp_path / "ledger").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_engine_ends_in_good_order(number: int) -> None:
    with started("engine", "--port", "0") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["simulated"] is True
        process.send_signal(number)
        _, complaint = process.communicate(timeout=20)
    assert (process.returncode, complaint) == (0, b"")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)])
def test_a_simulation_is_broken_off_in_silence(number: int, status: int) -> None:
    with started(*LONG) as process:
        until(lambda: busy(process.pid), "the simulation runs")
        assert process.poll() is None
        process.send_signal(number)
        out, complaint = process.communicate(timeout=20)
    assert (process.returncode, out, complaint) == (status, b"", b"")


def busy(pid: int) -> bool:
    """It has used more time than loading takes."""
    used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11]
    return int(used) / os.sysconf("SC_CLK_TCK") > 1.5


@scripted
async def test_load_tells_what_it_measured_and_what_ended_it(upstream: ScriptedUpstream, folder: Path) -> None:
    upstream.default = [Hang()]
    for number in (signal.SIGTERM, signal.SIGINT):
        before = upstream.seen
        arguments = ["load", str(together(folder, 2)), "--target", upstream.url, "--json"]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*PROGRAM, *arguments, stdout=pipe, stderr=pipe)
        await eventually(lambda before=before: upstream.seen == before + 2, within=20)
        process.send_signal(number)
        out, complaint = await asyncio.wait_for(process.communicate(), 20)
        assert process.returncode == 128 + number
        assert json.loads(out)["total"]["outcomes"] == {"interrupted": 2}
        assert b"Traceback" not in complaint
