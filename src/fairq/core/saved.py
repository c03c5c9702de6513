"""The records in a scheduler's saved state, as the head of a ledger segment holds them.

Their fields are the attributes of what they save; the living ones change too often to be Structs themselves.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from fairq.core.cost import Estimate
from fairq.core.entry import Entry
from fairq.core.job import Flow, Request
from fairq.core.lifecycle import Outcome, State
from fairq.core.lines import to_plain
from fairq.core.policy import Time, Why


class SavedUpstream(Struct, frozen=True):
    name: str
    slots: int
    inflight: int
    healthy: bool
    draining: bool


class SavedTenant(Struct, frozen=True):
    flow: Flow
    configured: bool
    waiting: int
    inflight: int


class SavedEntry(Struct, frozen=True):
    request: Request
    state: State
    upstream: str
    attempts: int
    dispatched: Time
    estimate: Estimate
    charge: int
    contended: bool
    epoch: int
    why: Why
    gone: bool
    failed: Outcome


def plain(things: Iterable[object], kind: type[Struct]) -> list[Any]:
    """One JSON-able record of `kind` for each."""
    return [to_plain(kind(*(getattr(thing, name) for name in kind.__struct_fields__))) for thing in things]


def entry_of(saved: SavedEntry) -> Entry:
    entry = Entry(saved.request)
    for name in saved.__struct_fields__:
        setattr(entry, name, getattr(saved, name))
    return entry
