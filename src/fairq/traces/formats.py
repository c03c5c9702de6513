"""The trace formats that fairq reads, as one table. A format is recognised by its column names or JSON keys.

To add one: write a function from `Row` to `Request` and add a line to `FORMATS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import NamedTuple

from fairq.traces.request import Measured, Request
from fairq.traces.row import Row, seconds_between

Read = Callable[[Row], Request]


class Format(NamedTuple):
    """One kind of file.

    keys           the names that must all be there
    reader         makes the function that reads each line in turn (some need the first line's time)
    block_tokens   tokens per prefix block; 0 when it has none, or when its keys say (`blocks_N`)
    clients        whether its lines say who sent a request
    """

    name: str
    about: str
    keys: frozenset[str]
    reader: Callable[[], Read]
    block_tokens: int = 0
    clients: bool = False


def azure() -> Read:
    start: tuple[datetime, float] | None = None

    def read(row: Row) -> Request:
        nonlocal start
        moment = row.moment("TIMESTAMP")
        if start is None:
            start = moment
        return Request(
            arrival=seconds_between(start, moment),
            input_tokens=row.count("ContextTokens"),
            output_tokens=row.count("GeneratedTokens"),
        )

    return read


def mooncake(row: Row) -> Request:
    return Request(
        arrival=row.seconds("timestamp") / 1000,
        input_tokens=row.count("input_length"),
        output_tokens=row.count("output_length"),
        blocks=row.blocks("hash_ids"),
    )


def sharegpt(row: Row) -> Request:
    return Request(
        arrival=row.seconds("timestamp_ms") / 1000,
        input_tokens=row.count("input_length"),
        output_tokens=row.count("output_length"),
        blocks=row.blocks("hash_ids16"),
    )


def vtc_arena(row: Row) -> Request:
    return Request(
        arrival=row.seconds("arrival_s"),
        client=row.text("client"),
        input_tokens=row.count("input_tokens"),
        output_tokens=row.count("output_tokens"),
    )


def vtc_results(row: Row) -> Request:
    arrival = row.seconds("req_time_s")
    return Request(
        arrival=arrival,
        client=row.text("client"),
        input_tokens=row.count("input_tokens"),
        output_tokens=row.count("output_tokens"),
        measured=Measured(arrival, row.wait("first_token_latency_s"), row.wait("request_latency_s")),
    )


def vllm_timings(row: Row) -> Request:
    return _timed(row, row.seconds("arrival_s"), "s", 0.0)


def vllm_stamps() -> Read:
    """The same as vLLM stamps them: `arrival_time` is a date in seconds, the others are readings of one clock."""
    start: tuple[float, float] | None = None

    def read(row: Row) -> Request:
        nonlocal start
        arrival = row.seconds("arrival_time")
        if start is None:
            start = arrival, row.seconds("queued_ts")
        if arrival < start[0]:
            raise row.wrong("arrival_time", "is before the first line's")
        return _timed(row, arrival - start[0], "ts", start[1])

    return read


def _timed(row: Row, arrival: float, suffix: str, start: float) -> Request:
    times: list[float] = []
    for name in ("queued", "scheduled", "first_token", "last_token"):
        key = f"{name}_{suffix}"
        times.append(row.seconds(key))
        if times[-1] < max(times):
            raise row.wrong(key, "is before the time that must come before it")
    queued, scheduled, first, last = times
    return Request(
        arrival=arrival,
        input_tokens=row.count("input_toks"),
        output_tokens=row.count("output_toks"),
        measured=Measured(queued - start, first - queued, last - queued, scheduled - queued),
    )


BLOCKS = re.compile(r"blocks_([1-9]\d*)")


def block_key(names: Collection[str]) -> tuple[str, int]:
    """The `blocks_N` among the names, and its N; ("", 0) when there is none."""
    for name in names:
        if match := BLOCKS.fullmatch(name):
            return name, int(match[1])
    return "", 0


def own() -> Read:
    shape: tuple[bool, str] | None = None
    place = -1

    def read(row: Row) -> Request:
        nonlocal shape, place
        place += 1
        if shape is None:  # what the first line has, every line must have
            shape = "client" in row.values, block_key(row.values)[0]
        has_client, blocks = shape
        return Request(
            arrival=row.seconds("arrival_s"),
            client=row.text("client") if has_client else "",
            input_tokens=row.count("input_tokens"),
            output_tokens=row.count("output_tokens"),
            blocks=row.blocks(blocks) if blocks else (),
            limit=row.count("max_tokens") if row.has("max_tokens") else None,
            cancel=row.seconds("cancel_s") if row.has("cancel_s") else None,
            predicted=row.count("predicted_tokens") if row.has("predicted_tokens") else None,
            after=row.earlier("after", place) if row.has("after") else None,
            think=row.seconds("think_s") if row.has("think_s") else 0.0,
        )

    return read


def plain(read: Read) -> Callable[[], Read]:
    """The reader of a format whose lines do not depend on earlier ones."""
    return lambda: read


def keys(names: str) -> frozenset[str]:
    return frozenset(names.split())


FORMATS = (
    Format(
        "fairq",
        "fairq's own CSV or JSON Lines: arrival_s (seconds, never going back), input_tokens, output_tokens, and "
        "optionally client, blocks_N (ids of the prompt's blocks of N tokens), max_tokens, cancel_s, predicted_tokens, "
        "after and think_s; other columns are ignored",
        keys("arrival_s input_tokens output_tokens"),
        own,
    ),
    Format(
        "azure",
        "AzureLLMInferenceTrace CSV (Azure/AzurePublicDataset)",
        keys("TIMESTAMP ContextTokens GeneratedTokens"),
        azure,
    ),
    Format(
        "mooncake",
        "Mooncake JSON Lines, prefix blocks of 512 tokens (kvcache-ai/Mooncake)",
        keys("timestamp input_length output_length hash_ids"),
        plain(mooncake),
        block_tokens=512,
    ),
    Format(
        "sharegpt",
        "ShareGPT lengths in JSON Lines, prefix blocks of 16 tokens",
        keys("timestamp_ms input_length output_length hash_ids16"),
        plain(sharegpt),
        block_tokens=16,
    ),
    Format(
        "vtc-arena",
        "Chatbot Arena requests of 27 clients, CSV (from Ying1123/VTC-artifact)",
        keys("req_id client arrival_s input_tokens output_tokens"),
        plain(vtc_arena),
        clients=True,
    ),
    Format(
        "vtc-results",
        "requests with the times an A10G took for them, CSV (from Ying1123/VTC-artifact)",
        keys("client input_tokens output_tokens req_time_s first_token_latency_s request_latency_s"),
        plain(vtc_results),
        clients=True,
    ),
    Format(
        "vllm-timings",
        "requests with the times vLLM took for them, CSV (from casys-kaist/LLMServingSim)",
        keys("request_id input_toks output_toks arrival_s queued_s scheduled_s first_token_s last_token_s"),
        plain(vllm_timings),
    ),
    Format(
        "vllm-stamps",
        "the same as JSON Lines or CSV with vLLM's own time stamps (from casys-kaist/LLMServingSim)",
        keys("request_id input_toks output_toks arrival_time queued_ts scheduled_ts first_token_ts last_token_ts"),
        vllm_stamps,
    ),
)


def recognise(names: Mapping[str, object] | Collection[str]) -> Format | None:
    """The format whose keys are all among the names; of several the one with the most keys."""
    fitting = [format for format in FORMATS if format.keys <= set(names)]
    return max(fitting, key=lambda format: len(format.keys), default=None)
