"""Write requests as a trace of fairq's own format."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from fairq.core.errors import ConfigError
from fairq.traces.request import Request

Value = float | int | str | list[int]


def write(path: Path, requests: Iterable[Request], block_tokens: int = 0) -> None:
    """CSV, or JSON Lines where the name ends in .jsonl. What no request has gets no column.

    Raises ConfigError when the file cannot be written.
    """
    rows = [_row(request, block_tokens) for request in requests]
    try:
        if path.suffix == ".jsonl":
            path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
            return
        columns = dict.fromkeys(key for row in rows for key in row)
        with path.open("w", newline="", encoding="utf-8") as lines:
            writer = csv.DictWriter(lines, list(columns), lineterminator="\n")
            writer.writeheader()
            writer.writerows({key: _text(value) for key, value in row.items()} for row in rows)
    except OSError as error:
        raise ConfigError("trace", str(path), f"cannot be written: {error.strerror}") from None


def _row(request: Request, block_tokens: int) -> Mapping[str, Value]:
    row: dict[str, Value] = {
        "arrival_s": request.arrival,
        "input_tokens": request.input_tokens,
        "output_tokens": request.output_tokens,
    }
    if request.client:
        row["client"] = request.client
    if block_tokens:
        row[f"blocks_{block_tokens}"] = list(request.blocks)
    for key, value in (
        ("max_tokens", request.limit),
        ("cancel_s", request.cancel),
        ("predicted_tokens", request.predicted),
        ("after", request.after),
    ):
        if value is not None:
            row[key] = value
    if request.think:
        row["think_s"] = request.think
    return row


def _text(value: Value) -> Value | str:
    return " ".join(map(str, value)) if isinstance(value, list) else value
