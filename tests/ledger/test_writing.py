"""The writer against disks that are full, dead, slow or lying, and against its own limits."""

import errno
import os
import resource
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.ledger.recording import FAR, Recording, audit, replay, violated

from fairq.core import events as ev
from fairq.core.setup import Setup
from fairq.ledger.disk import Disk
from fairq.ledger.reader import Reader
from fairq.ledger.segment import Head, LedgerError, Opened, folder_of
from fairq.ledger.upkeep import SECOND, Alarm, Upkeep
from fairq.ledger.writer import Writer
from fairq.testing.clock import eventually

BIG = 1 << 40


class Ledger:
    """A writer with a scheduler, as a gateway has them. `now` is both clocks."""

    def __init__(self, root: Path, disk: Disk | None = None, upkeep: Upkeep | None = None, pool: str = "p") -> None:
        self.alarms: list[Alarm] = []
        self.gaps: list[int] = []
        self.sunk: list[bytes] = []
        self.run = Recording(Setup(pool=pool, wait_for_upstream=FAR))
        self.writer = Writer(
            root,
            pool,
            self.run.make_head,
            0,
            alarm=self.alarms.append,
            gap=self._gap,
            sinks=[lambda pool, lines: self.sunk.append(lines)],
            upkeep=upkeep or Upkeep(),
            disk=disk,
        )
        self.run._record = self.writer.append
        self.folder = self.writer.folder

    def _gap(self, lost: int) -> None:
        self.gaps.append(lost)
        self.run.emit(ev.RecordingGap, lost=lost)

    def work(self, requests: int) -> None:
        """Requests that come, run and end; one flush each."""
        if not self.run.scheduler.upstreams:
            self.run.upstream(1)
        for _ in range(requests):
            self.run.admit("t", 3)
            self.run.finish(self.run.running()[0])
            self.flush()

    def flush(self, later: int = 1) -> None:
        self.run.now += later
        self.writer.flush(self.run.now)

    def close(self) -> None:
        self.writer.close(self.run.now)

    def heads(self) -> list[Head]:
        return [line.value for line in Reader(self.folder) if isinstance(line.value, Head)]


class Failing(Disk):
    """Works until told otherwise. `room`: bytes that still fit, None for any."""

    def __init__(self) -> None:
        self.error: int | None = None
        self.sync_error: int | None = None
        self.room: int | None = None
        self.threads: set[int] = set()

    def create(self, path: Path) -> int:
        self._check()
        return super().create(path)

    def write(self, file: int, data: bytes | memoryview) -> int:
        self._check()
        if self.room is None:
            return super().write(file, data)
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = super().write(file, memoryview(data)[: self.room])
        self.room -= done
        return done

    def sync(self, file: int) -> None:
        self.threads.add(threading.get_ident())
        if self.sync_error is not None:
            raise OSError(self.sync_error, os.strerror(self.sync_error))
        super().sync(file)

    def _check(self) -> None:
        if self.error is not None:
            raise OSError(self.error, os.strerror(self.error))


def test_what_was_written_is_read_replayed_and_audited(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.work(20)
    ledger.close()
    result = replay(ledger.folder)
    assert result.identical
    assert result.events == 41
    assert audit(ledger.folder).ok
    assert b"".join(ledger.sunk) == b"".join(line.raw + b"\n" for line in Reader(ledger.folder) if line.number > 1)


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = Ledger(tmp_path / "ledger")
    finally:
        os.umask(before)
    ledger.close()
    (segment,) = ledger.folder.glob("*.jsonl")
    assert stat.S_IMODE(segment.stat().st_mode) == 0o600
    assert stat.S_IMODE(ledger.folder.stat().st_mode) == 0o700


def test_appending_touches_no_file(tmp_path: Path) -> None:
    disk = Failing()
    ledger = Ledger(tmp_path, disk)
    disk.error = errno.EIO  # any call would raise
    ledger.run.upstream(1)
    ledger.run.admit("t", 1)
    assert ledger.writer.recording
    disk.error = None
    ledger.flush()
    ledger.close()
    assert audit(ledger.folder).admitted == 1


def test_rotation_under_load_joins_states_exactly(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, upkeep=Upkeep(rotate_bytes=4096))
    ledger.run.upstream(2)
    for number in range(200):
        ledger.run.admit("abc"[number % 3], 1 + number % 7)
        if number % 2:
            ledger.run.finish(ledger.run.running()[0])
        ledger.flush()
    ledger.close()
    segments = sorted(ledger.folder.glob("*.jsonl"))
    assert len(segments) > 5
    result = replay(ledger.folder)
    assert result.difference is None
    assert result.joints == len(segments) - 1
    assert violated(audit(ledger.folder)) == set()
    assert all(replay(segment).identical for segment in segments)  # each on its own
    assert all(violated(audit(segment)) == set() for segment in segments)


def test_old_segments_go_by_bytes_and_the_current_one_stays(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, upkeep=Upkeep(rotate_bytes=4096, keep_bytes=20_000))
    ledger.work(200)
    ledger.close()
    segments = sorted(ledger.folder.glob("*.jsonl"))
    assert segments[0].name != "00000001.jsonl"
    assert len(segments) > 2
    assert sum(segment.stat().st_size for segment in segments[:-1]) <= 20_000
    assert replay(ledger.folder).identical
    assert audit(ledger.folder).ok


def test_one_segment_is_kept_even_if_it_alone_is_too_large(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, upkeep=Upkeep(rotate_bytes=4096, keep_bytes=0))
    ledger.work(100)
    ledger.close()
    assert len(list(ledger.folder.glob("*.jsonl"))) == 1
    assert audit(ledger.folder).ok


def test_old_segments_go_by_age(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, upkeep=Upkeep(rotate_bytes=4096, keep_age=3600 * SECOND))
    ledger.work(60)
    old = sorted(ledger.folder.glob("*.jsonl"))[:-1]
    assert len(old) > 2
    for segment in old[:2]:  # the writer's wall clock is 10**18 ns and a little
        os.utime(segment, ns=(0, 10**18 - 3601 * SECOND))
    for segment in old[2:]:
        os.utime(segment, ns=(0, 10**18))
    ledger.work(60)
    ledger.close()
    assert [segment.exists() for segment in old] == [False, False] + [True] * (len(old) - 2)


def test_a_quiet_ledger_rotates_so_that_it_can_grow_old(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, upkeep=Upkeep(keep_age=3600 * SECOND))
    ledger.work(1)
    ledger.flush(later=450 * SECOND)
    ledger.close()
    assert [head.opened for head in ledger.heads()] == [Opened.STARTED, Opened.ROTATED]


@pytest.mark.parametrize("room", [0, 1, 100, 300])
def test_a_full_disk_costs_the_record_and_not_the_service(tmp_path: Path, room: int) -> None:
    disk = Failing()
    ledger = Ledger(tmp_path, disk, Upkeep(retry_every=10))
    ledger.work(5)
    disk.room = room
    ledger.work(4)  # the disk is tried again after 10 ns: not yet
    assert ledger.run.scheduler.seq == 19  # 1 + 2 * 9: served all the same
    assert [alarm.recording for alarm in ledger.alarms] == [False]
    assert "No space left" in ledger.alarms[0].text
    assert not ledger.writer.recording
    disk.room = None
    ledger.flush(later=20)
    assert ledger.writer.recording
    assert ledger.gaps == [ledger.writer.lost]
    assert 0 < ledger.writer.lost <= 4 * 4  # Admitted, Dispatch, Finished, Ended
    ledger.work(5)
    ledger.close()
    assert [head.opened for head in ledger.heads()] == [Opened.STARTED, Opened.GAP]
    assert ledger.heads()[1].lost == ledger.writer.lost
    result = replay(ledger.folder)
    assert result.identical
    assert (result.gaps, result.lost) == (1, ledger.writer.lost)
    report = audit(ledger.folder)
    assert violated(report) == set()
    assert (report.gaps, report.living) == (1, 0)
    whole = b"".join(ledger.sunk).count(b"\n")  # the console missed nothing
    assert whole == 1 + 14 * 4 + 1
    assert len(list(Reader(ledger.folder))) == whole + 2 - ledger.writer.lost  # and two heads


def test_a_disk_that_stays_full_is_asked_now_and_then_and_leaves_no_litter(tmp_path: Path) -> None:
    disk = Failing()
    ledger = Ledger(tmp_path, disk, Upkeep(retry_every=10))
    ledger.work(1)
    disk.room = 0
    ledger.work(100)
    ledger.close()
    assert len(ledger.alarms) == 1
    assert len(list(ledger.folder.glob("*.jsonl"))) == 1
    assert ledger.writer.lost == 100 * 4


def test_a_disk_that_is_full_at_the_start_is_no_reason_not_to_serve(tmp_path: Path) -> None:
    disk = Failing()
    disk.room = 10
    ledger = Ledger(tmp_path, disk, Upkeep(retry_every=10))
    ledger.work(1)
    disk.room = None
    ledger.flush(later=20)
    ledger.work(1)
    ledger.close()
    assert [head.opened for head in ledger.heads()] == [Opened.GAP]
    assert audit(ledger.folder).ok


def test_rotation_onto_a_full_disk_goes_on_in_the_old_segment(tmp_path: Path) -> None:
    class NoNewFiles(Failing):
        full = False

        def create(self, path: Path) -> int:
            if self.full:
                raise OSError(errno.EDQUOT, "Disk quota exceeded")
            return super().create(path)

    disk = NoNewFiles()
    ledger = Ledger(tmp_path, disk, Upkeep(rotate_bytes=2000, retry_every=10))
    disk.full = True
    ledger.work(20)
    assert ledger.writer.recording
    assert ledger.writer.lost == 0
    assert all(alarm.recording and "quota" in alarm.text for alarm in ledger.alarms)
    disk.full = False
    ledger.work(20)
    ledger.close()
    assert len(list(ledger.folder.glob("*.jsonl"))) > 1
    assert replay(ledger.folder).identical
    assert audit(ledger.folder).ok


async def wait_for(what: Callable[[], object], name: str) -> None:
    await eventually(what, name)


def eventually_true(what: Callable[[], object], name: str) -> None:
    import asyncio

    asyncio.run(wait_for(what, name))


def test_syncs_are_grouped_and_in_another_thread(tmp_path: Path) -> None:
    disk = Failing()
    ledger = Ledger(tmp_path, disk, Upkeep(sync_every=20_000_000))
    ledger.work(200)
    eventually_true(lambda: ledger.writer.syncs, "a sync")
    ledger.close()
    assert ledger.writer.syncs < 100  # 200 flushes
    assert threading.get_ident() not in disk.threads


def test_a_failed_sync_raises_the_alarm_and_leaves_the_damaged_segment(tmp_path: Path) -> None:
    disk = Failing()
    ledger = Ledger(tmp_path, disk, Upkeep(sync_every=0, retry_every=0))
    disk.sync_error = errno.EIO
    ledger.work(1)

    def alarmed() -> bool:
        ledger.flush()
        return bool(ledger.alarms)

    eventually_true(alarmed, "the alarm")
    disk.sync_error = None
    ledger.work(1)
    ledger.close()
    assert ledger.alarms[0].recording
    assert "damaged" in ledger.alarms[0].text
    assert [head.opened for head in ledger.heads()][:2] == [Opened.STARTED, Opened.ROTATED]
    assert replay(ledger.folder).identical  # what was written is readable in this case


def test_a_real_file_size_limit(tmp_path: Path) -> None:
    """The kernel itself refuses to write on (EFBIG), in the middle of a line."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ledger = Ledger(tmp_path, upkeep=Upkeep(retry_every=10))
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, hard))
        ledger.work(50)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    ledger.flush(later=20)
    ledger.work(1)
    ledger.close()
    assert ledger.writer.lost > 0
    assert not ledger.alarms[0].recording
    result = replay(ledger.folder)
    assert result.identical
    assert any("torn" in note for note in result.notes)
    assert audit(ledger.folder).ok


def test_a_real_full_device(tmp_path: Path) -> None:
    class Full(Disk):
        def create(self, path: Path) -> int:
            return os.open("/dev/full", os.O_WRONLY)

    ledger = Ledger(tmp_path, Full())
    ledger.work(3)
    ledger.close()
    assert "No space left" in ledger.alarms[0].text
    assert ledger.writer.lost == 1 + 3 * 4


def test_two_writers_of_one_ledger_are_refused(tmp_path: Path) -> None:
    first = Ledger(tmp_path)
    with pytest.raises(LedgerError, match="another fairq writes to it"):
        Ledger(tmp_path)
    first.close()
    second = Ledger(tmp_path)
    second.close()
    assert [head.opened for head in second.heads()] == [Opened.STARTED, Opened.STARTED]


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LedgerError, match=r"file: is not a directory"):
        Ledger(tmp_path / "file")


@pytest.mark.parametrize("pool", ["meta-llama/Llama-3", "..", ".", "a b", "日本", "a/../../b", "x\0y"])
def test_a_pools_name_is_one_folder_whatever_it_is(tmp_path: Path, pool: str) -> None:
    name = folder_of(pool)
    assert (tmp_path / name).resolve().parent == tmp_path.resolve()
    ledger = Ledger(tmp_path, pool=pool)
    ledger.close()
    assert ledger.heads()[0].pool == pool


def test_pools_of_different_names_have_different_folders() -> None:
    names = ["a", "A", "a/b", "a%2Fb", "a.b", ".a", "%2Ea"]
    assert len({folder_of(name) for name in names}) == len(names)
