"""Open a trace file and read it request by request, in constant memory."""

from __future__ import annotations

import csv
import gzip
import itertools
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from fairq.traces.formats import FORMATS, Format, block_key, recognise
from fairq.traces.request import Request, TraceError
from fairq.traces.row import Row

if TYPE_CHECKING:
    from _csv import Reader as CsvReader


class Trace:
    """Recorded traffic in a file. Iterating reads it from the start, each time anew.

    name           the file's name without folder
    format         what it was recognised as
    block_tokens   tokens per prefix block; 0 when the trace has no prefix blocks
    clients        whether it says who sent a request; otherwise see `fairq.traces.tenants`

    A file that ends in .gz or .xz is read as it is. Opening reads the first line only. TraceError, here and while
    iterating: file, line, key, value, rule.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.name = self.path.name
        with self._lines() as lines:
            names, rows = _parse(lines, self.name)
            known = recognise(names)
            if names and known is None:
                listed = ", ".join(names[:12])
                formats = "; ".join(f"{format.name}: {' '.join(sorted(format.keys))}" for format in FORMATS)
                raise TraceError(f"{self.name}:1", f"unknown trace format with {listed}. Known: {formats}")
            if known is None or next(rows, None) is None:
                raise TraceError(self.name, "holds no request")
        self.format: Format = known
        self.block_tokens = known.block_tokens or block_key(names)[1]
        self.clients = known.clients or (known.name == "fairq" and "client" in names)

    def __iter__(self) -> Iterator[Request]:
        read, last = self.format.reader(), 0.0
        before: dict[int, int | None] = {}  # of each block, the one that it follows
        with self._lines() as lines:
            for number, values in _parse(lines, self.name)[1]:
                row = Row(values, f"{self.name}:{number}")
                request = read(row)
                if request.arrival < last:
                    gap = last - request.arrival
                    raise TraceError(row.place, f"arrives {gap:g} s before the line above it")
                last = request.arrival
                _check_blocks(request.blocks, before, row.place)
                yield request

    @contextmanager
    def _lines(self) -> Iterator[TextIO]:
        try:
            with OPEN.get(self.path.suffix, open)(self.path, "rt", encoding="utf-8-sig", newline="") as lines:
                yield lines
        except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
            raise TraceError(self.name, f"is not a whole {self.path.suffix} file: {error}") from None
        except UnicodeDecodeError as error:
            raise TraceError(self.name, f"is not UTF-8 text: {error.reason}") from None
        except OSError as error:
            raise TraceError(str(self.path), f"cannot be read: {error.strerror or error}") from None


def _check_blocks(blocks: tuple[int, ...], before: dict[int, int | None], place: str) -> None:
    """A prefix cache is a tree only if an id stands for all of a prompt up to its block."""
    last: int | None = None
    for block in blocks:
        if (known := before.setdefault(block, last)) != last:
            first = "the first" if known is None else f"after {known}"
            here = "the first here" if last is None else f"after {last} here"
            rule = f"block {block} is {here} and {first} elsewhere: an id must stand for all of a prompt up to its end"
            raise TraceError(place, rule)
        last = block


OPEN: dict[str, Callable[..., AbstractContextManager[TextIO]]] = {".gz": gzip.open, ".xz": lzma.open}
Rows = Iterator[tuple[int, Mapping[str, Any]]]


def _parse(lines: TextIO, name: str) -> tuple[list[str], Rows]:
    """The names of the first line, and (line number, values by name) of each line that is not empty."""
    start = lines.read(1)
    while start.isspace():
        start = lines.read(1)
    lines.seek(0)
    if start == "{":
        rows = _json_rows(lines, name)
        number, first = next(rows)
        return list(first), itertools.chain([(number, first)], rows)
    reader = csv.reader(lines, strict=True)
    try:
        header = next(filter(None, reader), [])
    except csv.Error as error:
        raise TraceError(f"{name}:{reader.line_num}", f"is not CSV: {error}") from None
    if len(set(header)) < len(header):
        raise TraceError(f"{name}:{reader.line_num}", "has a column twice")
    return header if start else [], _csv_rows(reader, header, name)


def _json_rows(lines: TextIO, name: str) -> Rows:
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        try:
            yield number, msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise TraceError(f"{name}:{number}", f"must be one JSON object per line: {error}") from None


def _csv_rows(reader: CsvReader, header: list[str], name: str) -> Rows:
    try:
        for row in filter(None, reader):
            if len(row) != len(header):
                rule = f"has {len(row)} values, the header has {len(header)}"
                raise TraceError(f"{name}:{reader.line_num}", rule)
            yield reader.line_num, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise TraceError(f"{name}:{reader.line_num}", f"is not CSV: {error}") from None
