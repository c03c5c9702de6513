"""A supervised child: started again when it dies, never left behind."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.gateway.harness import run

from fairq.gateway import child
from fairq.gateway.child import Child
from fairq.testing.clock import eventually

READS_TO_THE_END = """
import os, sys
open(sys.argv[1], "a").write(f"{os.getpid()} {os.environ['X']}\\n")
sys.stdin.read()
"""


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(child, "LONGEST_PAUSE", 0.04)


def pids(log: Path) -> list[int]:
    return [int(line.split()[0]) for line in log.read_text().splitlines()] if log.exists() else []


@run
async def test_a_child_that_dies_is_started_again_and_one_that_is_stopped_is_not(tmp_path: Path) -> None:
    log = tmp_path / "pids"
    complaints: list[str] = []
    kept = Child(["-c", READS_TO_THE_END, str(log)], {"X": "given"}, complaints.append)
    kept.start()
    await eventually(lambda: len(pids(log)) == 1)
    os.kill(pids(log)[0], signal.SIGKILL)
    await eventually(lambda: len(pids(log)) == 2)
    assert log.read_text().split()[3] == "given"
    assert len(complaints) == 1
    assert "ended with status -9; starting it again" in complaints[0]
    await kept.stop()
    assert not any(map(lives, pids(log)))
    await kept.stop()


@run
async def test_a_child_whose_parent_dies_ends_too(tmp_path: Path) -> None:
    """However it dies: the child reads the end of its standard input."""
    log = tmp_path / "pids"
    parent = (
        "import asyncio, sys, time\n"
        "from fairq.gateway.child import Child\n"
        "async def main():\n"
        f"    Child(['-c', {READS_TO_THE_END!r}, sys.argv[1]], {{'X': ''}}, print).start()\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", parent, str(log))
    await eventually(lambda: pids(log), within=15)
    process.kill()
    await process.wait()
    await eventually(lambda: not lives(pids(log)[0]))


@run
async def test_a_child_that_cannot_be_started_is_tried_again() -> None:
    complaints: list[str] = []
    kept = Child(["-c", "pass"], {}, complaints.append, files=[987654])
    kept.start()
    await eventually(lambda: len(complaints) >= 3)
    await kept.stop()
    assert all("starting it again in" in complaint for complaint in complaints)
