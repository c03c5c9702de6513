"""Folders of pools that are configured no more: nobody writes there, so nobody else would remove what is old."""

import fcntl
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from fairq.ledger.segment import folder_of, segments_in
from fairq.ledger.upkeep import Upkeep

LOCK = "lock"


def remove_old(root: Path, pools: Collection[str], upkeep: Upkeep, wall: int) -> None:
    """Apply `keep_bytes` and `keep_age` to every pool's folder in `root` but those of `pools`. `wall`: now, ns.

    Nothing goes but segments, and none of a folder in which another process writes, or in which no writer ever was.
    Raises OSError.
    """
    present = {folder_of(pool) for pool in pools}
    for folder in sorted(root.iterdir()):
        if folder.name in present or folder.is_symlink() or not (folder / LOCK).is_file():
            continue
        with _alone(folder) as alone:
            for path in upkeep.outdated(segments_in(folder), wall) if alone else ():
                path.unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Whether no writer has the folder, nor gets it meanwhile."""
    with (folder / LOCK).open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
