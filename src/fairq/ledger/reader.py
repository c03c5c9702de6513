"""Reads the lines of a ledger in order, across segments, while it may still be written.

A last line without a newline is what a crash leaves behind: it is passed over, and said so. Anything else that is not a
line of a ledger is an error with its file and line.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from fairq.ledger.segment import FORMAT, AnyLine, Head, LedgerError, decode, number_of, segments_in


class Line(NamedTuple):
    """`raw` is without the newline; `where` is FILE:LINE."""

    value: AnyLine
    raw: bytes
    path: Path
    number: int

    @property
    def where(self) -> str:
        return f"{self.path.name}:{self.number}"


def pools_in(path: Path) -> list[Path]:
    """What can be read at `path`: itself, when it is a segment or a pool's folder, else the pools inside it.

    Raises LedgerError when there is none.
    """
    try:
        if path.is_file():
            return [path]
        if segments_in(path):
            return [path]
        pools = sorted(folder for folder in path.iterdir() if folder.is_dir() and segments_in(folder))
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror or error}") from None
    if not pools:
        raise LedgerError(f"{path}: holds no segment (00000001.jsonl, ...) of a ledger")
    return pools


class Reader:
    """Iterable once, over the lines of one segment or of all segments of a pool's folder.

    notes   what was passed over, in words
    done    bytes read so far, of about `size`
    """

    def __init__(self, path: Path, first: Path | None = None) -> None:
        """`first`: a segment of the folder to begin with."""
        self.path, self.notes, self.done = path, list[str](), 0
        self._single = path.is_file()
        self._paths = [path] if self._single else self._later(first)
        self.size = sum(map(_size, self._paths))

    def __iter__(self) -> Iterator[Line]:
        while self._paths:
            path = self._paths.pop(0)
            try:
                with path.open("rb") as file:
                    yield from self._segment(path, file)
            except FileNotFoundError:
                self.notes.append(f"{path.name} was removed before it was read")
            except OSError as error:
                raise LedgerError(f"{path}: {error.strerror or error}") from None

    def _segment(self, path: Path, file: BinaryIO) -> Iterator[Line]:
        number = 0
        final = False  # a later segment exists, so this one does not grow any more
        while True:
            raw = file.readline()
            if raw.endswith(b"\n"):
                number += 1
                self.done += len(raw)
                yield Line(_decoded(raw[:-1], path, number), raw[:-1], path, number)
                continue
            file.seek(-len(raw), 1)
            if not (final or self._single or self._paths):
                self._paths = self._later(path, after=True)
            if final or self._single or not self._paths:
                break
            final = True
        if raw:
            self.done += len(raw)
            self.notes.append(f"{path.name}:{number + 1}: the last line is torn ({len(raw)} bytes); passed over")
        elif number == 0:
            self.notes.append(f"{path.name} is empty; passed over")

    def _later(self, path: Path | None, after: bool = False) -> list[Path]:
        try:
            found = segments_in(self.path)
        except OSError as error:
            raise LedgerError(f"{self.path}: {error.strerror or error}") from None
        start = (number_of(path) or 0) + after if path else 0
        return [segment for segment in found if (number_of(segment) or 0) >= start]


def _decoded(raw: bytes, path: Path, number: int) -> AnyLine:
    try:
        value: AnyLine = decode(raw)
    except (msgspec.MsgspecError, ValueError, ArithmeticError) as error:
        version = _version(raw) if number == 1 else None
        if version is not None and version > FORMAT:
            raise LedgerError(f"{path}:1: format {version}; this fairq reads up to {FORMAT}") from None
        raise LedgerError(f"{path}:{number}: not a line of a ledger: {error}") from None
    if type(value) is Head:
        if number > 1:
            raise LedgerError(f"{path}:{number}: a head must be a segment's first line")
        if value.format != FORMAT:
            raise LedgerError(f"{path}:1: format {value.format}; this fairq reads {FORMAT}")
    elif number == 1:
        raise LedgerError(f"{path}:1: a segment must begin with its head, not with {type(value).__name__}")
    return value


class _Version(msgspec.Struct):
    format: int


def _version(raw: bytes) -> int | None:
    try:
        return msgspec.json.decode(raw, type=_Version).format
    except msgspec.MsgspecError:
        return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
