"""What is to be sent when, by whom: a trace, scaled in time, with a credential for each tenant."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from fairq.core.errors import ConfigError
from fairq.load.prompt import prompt
from fairq.traces import Request, Trace, default_rule, with_tenants


class Planned(Struct, frozen=True):
    """One request to send. `place` counts from 0, `at` is seconds after the start of the run."""

    place: int
    at: float
    request: Request

    @property
    def tenant(self) -> str:
        return self.request.client


class Identity(Struct, frozen=True, kw_only=True):
    """How a request says whose it is.

    keys    API key of each tenant, sent as `Authorization: Bearer`
    key     one API key for all tenants that have none of their own
    header  a header whose value is the tenant's name, for targets that trust the sender
    """

    keys: Mapping[str, str] = {}
    key: str | None = None
    header: str | None = None

    def headers(self, tenant: str) -> list[tuple[bytes, bytes]]:
        key = self.keys.get(tenant, self.key)
        lines = [] if key is None else [(b"authorization", f"Bearer {key}".encode())]
        return lines if self.header is None else [*lines, (self.header.lower().encode(), tenant.encode())]


def read_keys(path: Path) -> dict[str, str]:
    """API keys by tenant: a JSON object {"tenant": "key"}, or CSV lines `tenant,key` (a header line may precede).

    ConfigError names file, line and rule.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise ConfigError("--keys", str(path), f"cannot be read: {cause}") from None
    if text.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(text, type=dict[str, str])
        except msgspec.DecodeError as error:
            raise ConfigError("--keys", str(path), f'must be {{"tenant": "key", ...}}: {error}') from None
    keys: dict[str, str] = {}
    for number, row in enumerate(csv.reader(text.splitlines()), 1):
        if not row or row == ["tenant", "key"]:
            continue
        if len(row) != 2 or not row[0] or not row[1] or row[0] in keys:
            raise ConfigError("--keys", f"{path}:{number}", "must be lines of tenant,key with each tenant once")
        keys[row[0]] = row[1]
    return keys


def scaled(trace: Trace, rule: str | None, speed: float, limit: int | None) -> Iterator[Planned]:
    """The trace's first `limit` requests, `speed` times as fast, the first one at time 0.

    ConfigError for a rule the trace cannot follow; TraceError for a line that cannot be read.
    """
    requests = with_tenants(trace, rule or default_rule(trace), itertools.islice(trace, limit))
    start: float | None = None
    for place, request in enumerate(requests):
        start = request.arrival if start is None else start
        yield Planned(place, (request.arrival - start) / speed, request)


def body(
    planned: Planned, *, model: str, chat: bool, stream: bool, ignore_eos: bool, key: str, block_tokens: int
) -> bytes:
    """An OpenAI request with as many words as the trace had input tokens, and its output length as the limit."""
    request = planned.request
    text = prompt(request.input_tokens, f"{key}:{planned.place}", request.blocks, block_tokens)
    asked: dict[str, Any] = {"model": model, "max_tokens": max(request.output_tokens, 1)}
    asked |= {"messages": [{"role": "user", "content": text}]} if chat else {"prompt": text}
    if stream:
        asked |= {"stream": True, "stream_options": {"include_usage": True}}
    if ignore_eos:
        asked["ignore_eos"] = True
    return msgspec.json.encode(asked)
