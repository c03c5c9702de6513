"""A disk that refuses the ledger is seen in the console while it does, whether it was connected before or not."""

import errno
from pathlib import Path
from typing import Any

from tests.console.desk import Desk, desk
from tests.console.test_console_metrics import samples, value
from tests.gateway.harness import run

from fairq.ledger.disk import Disk
from fairq.testing.clock import eventually


class Filling(Disk):
    """A disk that can be full."""

    def __init__(self, *, full: bool) -> None:
        self.full = full

    def write(self, file: int, data: bytes | memoryview) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(file, data)


async def told(d: Desk) -> tuple[float, str, bool]:
    """(the gauge, /api/state's complaint, whether the page shows it)."""
    complaint = (await d.state())["complaint"]
    shown = "No space left on device" in (await d.get("/")).text
    return value(await samples(d), "fairq_ledger_recording", pool="default"), complaint, shown


async def until(d: Desk, recording: bool) -> None:
    await eventually(lambda: bool(d.live.unrecorded) is not recording, "the console was told", within=10)


@run
async def test_a_disk_that_fills_up_is_seen_until_there_is_space_again(tmp_path: Path) -> None:
    disk = Filling(full=False)
    async with desk(tmp_path, disk=disk) as d:
        assert await told(d) == (1, "", False)
        disk.full = True
        await d.chat("a")
        await until(d, recording=False)
        gauge, complaint, shown = await told(d)
        assert (gauge, shown) == (0, True)
        assert "default: No space left on device; serving goes on unrecorded" in complaint
        disk.full = False
        await until(d, recording=True)
        assert await told(d) == (1, "", False)
        await d.folded()
        found: list[Any] = await samples(d)
        assert value(found, "fairq_ledger_gaps_total") == 1
        assert value(found, "fairq_ledger_lost_lines_total") > 0


@run
async def test_a_console_that_connects_later_is_told_too(tmp_path: Path) -> None:
    disk = Filling(full=True)
    async with desk(tmp_path, disk=disk) as d:
        await until(d, recording=False)
        gauge, complaint, shown = await told(d)
        assert (gauge, "No space left" in complaint, shown) == (0, True, True)
        disk.full = False
        await until(d, recording=True)
        assert await told(d) == (1, "", False)
