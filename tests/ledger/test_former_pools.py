"""What pools left that are configured no more grows old and goes; nothing else does."""

import os
from pathlib import Path

from tests.gateway.harness import run, scripted
from tests.ledger.test_writing import Ledger

from fairq.gateway.config import Config
from fairq.gateway.gateway import Gateway
from fairq.gateway.recording import Recorder
from fairq.ledger.former import remove_old
from fairq.ledger.segment import folder_of
from fairq.ledger.upkeep import SECOND, Upkeep

NOW = 10**18
KEEP = Upkeep(keep_bytes=3000, keep_age=3600 * SECOND)


def left(root: Path, pool: str, *ages: int) -> list[Path]:
    """Segments of 1000 bytes that a writer has left, with their ages in seconds."""
    folder = root / folder_of(pool)
    folder.mkdir()
    (folder / "lock").touch()
    segments = [folder / f"{number:08}.jsonl" for number in range(1, len(ages) + 1)]
    for segment, age in zip(segments, ages, strict=True):
        segment.write_bytes(b"x" * 999 + b"\n")
        os.utime(segment, ns=(0, NOW - age * SECOND))
    return segments


def there(segments: list[Path]) -> list[bool]:
    return [segment.exists() for segment in segments]


def test_old_segments_of_former_pools_go_by_age_and_by_bytes(tmp_path: Path) -> None:
    by_age, all_old = left(tmp_path, "org/a", 9000, 3601, 3599), left(tmp_path, "b", 9000, 8000)
    by_bytes = left(tmp_path, "c", 5, 4, 3, 2, 1)
    present = left(tmp_path, "org/p", 9000, 9000)
    remove_old(tmp_path, ["org/p"], KEEP, NOW)
    assert there(by_age) == [False, False, True]
    assert there(all_old) == [False, False]
    assert there(by_bytes) == [False, False, True, True, True]
    assert there(present) == [True, True]


def test_nothing_goes_that_is_not_a_segment_of_a_ledger(tmp_path: Path) -> None:
    elsewhere, root = tmp_path / "elsewhere", tmp_path / "ledger"
    elsewhere.mkdir()
    root.mkdir()
    linked = left(elsewhere, "linked", 9000)
    (root / "linked").symlink_to(elsewhere / "linked")
    never_written = left(root, "notes", 9000)
    (root / "notes" / "lock").unlink()
    left(root, "gone", 9000)
    others = [root / "gone" / name for name in ("notes.txt", "notes.jsonl", "00000001.json", "1.jsonl.bak")]
    others += [root / "00000001.jsonl", root / "control.sock"]
    for other in others:
        other.touch()
        os.utime(other, ns=(0, 0))
    remove_old(root, [], KEEP, NOW)
    assert there([*linked, *never_written, *others]) == [True] * 8
    assert not (root / "gone" / "00000001.jsonl").exists()
    assert (root / "gone" / "lock").exists()


def test_a_folder_in_which_another_writes_is_left_alone(tmp_path: Path) -> None:
    old = left(tmp_path, "theirs", 9000)
    ledger = Ledger(tmp_path, pool="theirs")
    remove_old(tmp_path, [], KEEP, NOW)
    assert there(old) == [True]
    ledger.close()
    remove_old(tmp_path, [], KEEP, NOW)
    assert there(old) == [False]


@run
async def test_a_gateway_that_starts_removes_what_is_too_old(tmp_path: Path) -> None:
    old = left(tmp_path, "former", 0, 0)
    os.utime(old[0], ns=(0, 0))
    os.utime(old[1])
    complaints: list[str] = []
    async with scripted(1, 1) as (_, listed):
        given = {"listen": {"port": 0}, "ledger": {"dir": str(tmp_path)}, "pools": [{"upstreams": listed}]}
        config = Config.model_validate(given)
        gateway = Gateway(config, Recorder(config, complaints.append, lambda pool, lines: None))
        await gateway.start()
        await gateway.drain()
    assert (there(old), complaints) == ([False, True], [])
