"""kill -9 and power failures: whatever part of the last line is there, the ledger reads, replays and audits."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.ledger.recording import Recording, audit, replay, router_example, violated, write_segment

from fairq.core.lines import encode
from fairq.ledger.estimates import last_estimator
from fairq.ledger.explain import explain
from fairq.ledger.reader import Reader, pools_in
from fairq.ledger.segment import LedgerError, Opened
from fairq.ledger.upkeep import Alarm
from fairq.ledger.writer import Writer

ROOT = Path(__file__).parents[2]


def whole(run: Recording) -> bytes:
    return b"".join([encode(run.head) + b"\n", *run.lines])


def told(path: Path) -> object:
    return explain(path, "A1")


def test_a_crash_at_every_byte_of_the_last_event(tmp_path: Path) -> None:
    run = router_example()
    # The third Finished comes with an Ended and a Dispatch: cut anywhere from its first byte on.
    start = [i for i, line in enumerate(run.lines) if b'"is":"Finished"' in line][2]
    before = b"".join([encode(run.head) + b"\n", *run.lines[:start]])
    last = b"".join(run.lines[start : start + 3])
    for cut in range(len(last)):
        write_segment(tmp_path / "pool", 1, [before + last[:cut]])
        result, report = replay(tmp_path / "pool"), audit(tmp_path / "pool")
        assert result.identical, (cut, result.difference)
        assert violated(report) == set(), (cut, report)
        torn = cut > 0 and last[:cut][-1:] != b"\n"
        assert any("torn" in note for note in result.notes) == torn
        inside = last[:cut].count(b"\n") in (1, 2)
        assert any("the recording" in note for note in result.notes) == inside
        assert any("the recording" in note for note in report.notes) == inside


def test_the_next_run_begins_a_segment_and_leaves_the_torn_line_alone(tmp_path: Path) -> None:
    run = router_example()
    folder = write_segment(tmp_path / "default", 1, [whole(run)[:-20]])
    torn = (folder / "00000001.jsonl").read_bytes()
    again = Recording()
    alarms: list[Alarm] = []
    writer = Writer(tmp_path, "default", again.make_head, 0, alarm=alarms.append, gap=lambda lost: None)
    again._record = writer.append
    again.upstream(1)
    again.admit("A", 1)
    writer.close(1)
    assert (folder / "00000001.jsonl").read_bytes() == torn
    result, report = replay(folder), audit(folder)
    assert result.identical
    assert (result.segments, result.restarts, report.restarts) == (2, 1, 1)
    assert violated(report) == set()
    assert report.cut_off == 1  # the request whose end is torn off
    assert report.living == 1
    assert alarms == []


def test_requests_of_a_dead_process_are_counted_and_not_blamed(tmp_path: Path) -> None:
    first = Recording()
    first.upstream(1)
    for _ in range(5):
        first.admit("A", 1)
    second = Recording()
    second.upstream(1)
    write_segment(tmp_path / "pool", 1, [whole(first)])
    write_segment(tmp_path / "pool", 2, [whole(second)])
    report = audit(tmp_path / "pool")
    assert violated(report) == set()
    assert (report.admitted, report.cut_off, report.living) == (5, 5, 0)


def test_a_lost_segment_is_noticed(tmp_path: Path) -> None:
    """Retention removes the oldest; one from the middle means that somebody did."""
    run, cuts = Recording(), []
    run.upstream(1)
    for number in range(3):
        cuts.append((run.make_head(), len(run.lines)))
        run.admit("A", 1)
        run.finish(f"A{number + 1}")
    for number in (0, 2):
        head, start = cuts[number]
        opened = Opened.ROTATED if number else Opened.STARTED
        lines = run.lines[start : cuts[number + 1][1] if number < 2 else None]
        write_segment(tmp_path / "pool", number + 1, [encode(replace(head, opened=opened)) + b"\n", *lines])
    assert violated(audit(tmp_path / "pool")) == {"heads"}
    difference = replay(tmp_path / "pool").difference
    assert difference is not None
    assert difference.where == "00000003.jsonl:1"


def test_a_changed_state_in_a_head_is_noticed(tmp_path: Path) -> None:
    run = router_example()
    head = replace(run.make_head(), opened=Opened.ROTATED)
    head.state["policy"]["virtual_time"] += 1
    run.save(tmp_path / "pool")
    write_segment(tmp_path / "pool", 2, [encode(head) + b"\n"])
    difference = replay(tmp_path / "pool").difference
    assert difference is not None
    assert difference.text.endswith("policy")


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        (b"{}\n", "00000001.jsonl:2: not a line of a ledger"),
        (b"nonsense\n", "00000001.jsonl:2: not a line of a ledger"),
        (b'{"is":"Eaten","seq":1,"time":0}\n', "00000001.jsonl:2: not a line of a ledger"),
        (b'{"is":"Admitted","seq":1,"time":0}\n', "00000001.jsonl:2: not a line of a ledger"),
        (b'{"is":"CalibrationChanged","seq":1,"time":0,"alpha":"1/0","beta":"1"}\n', ":2: not a line of a ledger"),
        (b"HEAD", "00000001.jsonl:2: a head must be a segment's first line"),
        (b"\xff\xfe\n", "00000001.jsonl:2: not a line of a ledger"),
    ],
)
def test_a_bad_line_is_named_with_file_and_line(tmp_path: Path, second: bytes, complaint: str) -> None:
    head = encode(Recording().head) + b"\n"
    path = write_segment(tmp_path / "pool", 1, [head, head if second == b"HEAD" else second])
    with pytest.raises(LedgerError, match=complaint) as raised:
        list(Reader(path))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("first", "complaint"),
    [
        (b'{"is":"Tick","seq":1,"time":0}\n', "must begin with its head, not with Tick"),
        (b'{"is":"Head","format":2,"more":1}\n', "format 2; this fairq reads up to 1"),
        (b'{"is":"Head"}\n', "not a line of a ledger"),
    ],
)
def test_a_segment_without_a_readable_head_is_an_error(tmp_path: Path, first: bytes, complaint: str) -> None:
    with pytest.raises(LedgerError, match=complaint):
        list(Reader(write_segment(tmp_path / "pool", 1, [first])))


@pytest.mark.parametrize(
    ("key", "readers"),
    [
        ("jobs", (replay, audit, told, last_estimator)),
        ("tenants", (replay, audit, told)),
        ("upstreams", (replay, audit, told)),
        ("policy", (replay, audit, told)),
        ("rates", (replay, audit, last_estimator)),
        ("estimator", (replay, last_estimator)),
    ],
)
def test_a_head_with_a_broken_state_is_an_error(
    tmp_path: Path, key: str, readers: tuple[Callable[[Path], object], ...]
) -> None:
    run = router_example()
    run.head.state[key] = [["broken"]]
    path = run.save(tmp_path / "pool")
    for read in readers:
        with pytest.raises(LedgerError, match="the state in a head cannot be read"):
            read(path)


ENDLESS = """
import sys
from pathlib import Path
from fairq.ledger.upkeep import Upkeep
from fairq.ledger.writer import Writer
from tests.ledger.recording import Recording
run = Recording()
upkeep = Upkeep(rotate_bytes=40_000, sync_every=1_000_000)
writer = Writer(Path(sys.argv[1]), "default", run.make_head, 0, alarm=print, gap=print, upkeep=upkeep)
run._record = writer.append
run.upstream(3)
while True:
    run.now += 1
    run.admit("abcd"[run.now % 4], 1 + run.now % 9)
    if run.now % 40 > 3:
        run.finish(run.running()[0])
    writer.flush(run.now)
"""


def test_kill_9_while_writing(tmp_path: Path) -> None:
    """Another process writes as fast as it can, rotating, and is killed; nothing of what it wrote is unreadable."""
    writing = subprocess.Popen([sys.executable, "-c", ENDLESS, str(tmp_path)], cwd=ROOT)
    folder = tmp_path / "default"
    deadline = time.monotonic() + 30
    while len(list(folder.glob("*.jsonl"))) < 5:  # the last one may have no whole head yet
        assert writing.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    writing.kill()
    writing.wait()
    result, report = replay(folder), audit(folder)
    assert result.identical
    assert result.segments >= 4
    assert result.joints == result.segments - 1
    assert violated(report) == set()
    assert report.decisions > 100


def test_an_empty_or_headless_segment_of_a_crash_is_passed_over(tmp_path: Path) -> None:
    write_segment(tmp_path / "pool", 1, [b""])
    write_segment(tmp_path / "pool", 2, [b'{"is":"Head","form'])
    write_segment(tmp_path / "pool", 3, [whole(router_example())])
    result = replay(tmp_path / "pool")
    assert result.identical
    assert result.decisions == 28
    assert len(result.notes) == 2


def test_reading_follows_rotation(tmp_path: Path) -> None:
    """Lines and segments that come while it is read are read too."""
    run = Recording()
    folder = write_segment(tmp_path / "pool", 1, [encode(run.head) + b"\n"])
    reader = Reader(folder)
    lines = iter(reader)
    assert next(lines).number == 1
    run.upstream(1)
    with (folder / "00000001.jsonl").open("ab") as segment:
        segment.write(run.lines[0])
    write_segment(folder, 2, [encode(replace(run.make_head(), opened=Opened.ROTATED)) + b"\n"])
    assert [line.where for line in lines] == ["00000001.jsonl:2", "00000002.jsonl:1"]


def test_a_segment_removed_before_its_turn_is_a_note(tmp_path: Path) -> None:
    run = router_example()
    folder = write_segment(tmp_path / "pool", 1, [whole(run)])
    write_segment(folder, 2, [whole(run)])
    reader = Reader(folder)
    lines = iter(reader)
    next(lines)
    (folder / "00000002.jsonl").unlink()
    assert len(list(lines)) == len(run.lines)
    assert reader.notes == ["00000002.jsonl was removed before it was read"]


def test_a_path_without_a_ledger_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="nowhere: No such file or directory"):
        pools_in(tmp_path / "nowhere")
    with pytest.raises(LedgerError, match="holds no segment"):
        pools_in(tmp_path)


def test_a_ledger_of_several_pools_is_several_ledgers(tmp_path: Path) -> None:
    run = router_example()
    for pool in ("b", "a"):
        run.save(tmp_path / pool)
    (tmp_path / "control.sock").touch()
    assert pools_in(tmp_path) == [tmp_path / "a", tmp_path / "b"]
    assert pools_in(tmp_path / "a") == [tmp_path / "a"]
    segment = tmp_path / "a" / "00000001.jsonl"
    assert pools_in(segment) == [segment]
