"""Totals survive: a console that starts late, or again, reads from the ledger what it did not see."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.ledger.recording import FAR, Recording, write_segment

from fairq.console import history
from fairq.console.events import Ring
from fairq.console.heaviest import Heaviest
from fairq.console.history import catch_up, current_run
from fairq.console.pool import LivePool
from fairq.core.lines import decode, encode
from fairq.core.setup import Setup
from fairq.ledger.segment import Head, Opened


class Run:
    """A data plane that writes a ledger of several segments."""

    def __init__(self, ledger: Path, number: int = 1) -> None:
        self.folder, self.number = ledger / "default", number
        self.plane = Recording(Setup(wait_for_upstream=FAR))
        self.plane.now = number * 1000
        self.plane.upstream(1)
        self._segment(replace(self.plane.head, wall=10**18 + number, opened=Opened.STARTED))
        self._written = 0
        self.flush()

    def serve(self, count: int, tenant: str = "a") -> None:
        for _ in range(count):
            self.plane.now += 1
            self.plane.admit(tenant, 5)
            self.plane.now += 1
            self.plane.finish(self.plane.running()[0])

    def flush(self) -> None:
        with self.path.open("ab") as file:
            file.write(b"".join(self.plane.lines[self._written :]))
        self._written = len(self.plane.lines)

    def rotate(self, opened: Opened = Opened.ROTATED) -> None:
        self.flush()
        self.number += 1
        self._segment(replace(self.plane.make_head(), opened=opened))

    def _segment(self, head: Head) -> None:
        write_segment(self.folder, self.number, [encode(head) + b"\n"])
        self.path = self.folder / f"{self.number:08}.jsonl"


def live() -> LivePool:
    return LivePool("default", Heaviest(10), Ring())


def connect(pool: LivePool, run: Run, ledger: Path) -> None:
    pool.announce(run.plane.make_head())
    for _ in catch_up(pool, ledger):
        pass
    pool.follow()


def stream(pool: LivePool, run: Run, since: int) -> None:
    for raw in run.plane.lines[since:]:
        pool.take(decode(raw), raw[:-1])


def broken(pool: LivePool) -> list[str]:
    return [name for name, check in pool.audit.checks.items() if check.promised and check.violations]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    (tmp_path / "default").mkdir()
    return tmp_path


def test_a_late_console_knows_the_whole_run(ledger: Path) -> None:
    run = Run(ledger)
    for _ in range(3):
        run.serve(10)
        run.rotate()
    run.serve(10)
    run.flush()
    pool = live()
    connect(pool, run, ledger)
    since = len(run.plane.lines)
    run.serve(5)
    stream(pool, run, since - 2)
    assert pool.audit.outcomes == {"completed": 45}
    assert (pool.missed, broken(pool)) == (0, [])
    assert pool.audit.checks["heads"].held == 3


@pytest.mark.parametrize("unflushed", [0, 1, 4])
def test_what_is_not_on_disk_yet_comes_by_the_stream(ledger: Path, unflushed: int) -> None:
    run = Run(ledger)
    run.serve(10)
    run.flush()
    buffered = len(run.plane.lines)
    run.serve(unflushed)
    pool = live()
    connect(pool, run, ledger)
    run.serve(1)
    stream(pool, run, buffered)
    assert pool.audit.outcomes["completed"] == 10 + unflushed + 1
    assert (pool.missed, broken(pool)) == (0, [])


def test_a_reconnected_console_goes_on_inside_the_run(ledger: Path) -> None:
    run = Run(ledger)
    run.serve(10)
    run.flush()
    pool = live()
    connect(pool, run, ledger)
    run.serve(10)
    run.rotate()
    run.serve(10)
    run.flush()
    connect(pool, run, ledger)
    assert pool.audit.outcomes == {"completed": 30}
    assert (pool.missed, pool.audit.restarts, broken(pool)) == (0, 0, [])


def test_a_new_run_is_read_from_its_start_and_totals_go_on(ledger: Path) -> None:
    first = Run(ledger)
    first.serve(10)
    first.plane.admit("a", 5)
    first.flush()
    pool = live()
    connect(pool, first, ledger)
    second = Run(ledger, 2)
    second.serve(30)
    second.flush()
    connect(pool, second, ledger)
    assert pool.audit.outcomes == {"completed": 40}
    assert (pool.missed, broken(pool)) == (0, [])
    assert not pool.world.living, "requests of the process that died are gone"
    assert pool.inflight_by_label() == {("a", "u"): 0}


def test_who_was_away_too_long_goes_on_from_the_head(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_MISSED", 100)
    run = Run(ledger)
    run.serve(3)
    run.flush()
    pool = live()
    connect(pool, run, ledger)
    run.rotate()
    run.serve(100)
    run.flush()
    since = len(run.plane.lines)
    connect(pool, run, ledger)
    run.serve(1)
    stream(pool, run, since)
    assert pool.missed == 200
    assert pool.audit.outcomes == {"completed": 4}
    assert broken(pool) == []


def test_of_a_large_run_the_last_segments_are_read(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(ledger)
    run.serve(50)
    run.rotate()
    run.serve(5)
    run.flush()
    monkeypatch.setattr(history, "MOST_BYTES", run.path.stat().st_size + 10)
    pool = live()
    connect(pool, run, ledger)
    assert pool.audit.outcomes == {"completed": 5}
    assert pool.world.seq == run.plane.scheduler.seq
    assert broken(pool) == []


def test_a_recording_that_was_interrupted_is_followed(ledger: Path) -> None:
    run = Run(ledger)
    run.serve(5)
    run.flush()
    run.serve(5)
    run._written = len(run.plane.lines)  # the disk was full
    run.rotate(Opened.GAP)
    run.serve(5)
    run.flush()
    pool = live()
    connect(pool, run, ledger)
    assert pool.audit.outcomes == {"completed": 10}
    assert broken(pool) == []


def test_without_a_ledger_it_goes_on_from_the_head(ledger: Path) -> None:
    run = Run(ledger)
    run.serve(5)
    pool = live()
    with pytest.raises(OSError, match="No such file"):
        connect(pool, run, ledger / "elsewhere")
    pool.follow()
    assert pool.world.seq == run.plane.scheduler.seq


def test_empty_and_torn_segments_are_passed_over(ledger: Path) -> None:
    run = Run(ledger)
    run.serve(5)
    run.flush()
    (run.folder / "00000002.jsonl").write_bytes(b"")
    (run.folder / "00000003.jsonl").write_bytes(b'{"is":"Head","for')
    assert [segment.path for segment in current_run(run.folder, 1 << 20)] == [run.path]
    pool = live()
    connect(pool, run, ledger)
    assert pool.audit.outcomes == {"completed": 5}
