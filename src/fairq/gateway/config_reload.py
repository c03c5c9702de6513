"""What a reload would change: the difference of two configurations, key by key.

The gateway applies a reload as a whole or not at all: one that changes a key which needs a restart is refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from fairq.gateway.config import Config
from fairq.gateway.config_sections import Endpoint, Pool, Tenant, Upstream

_NAMED_BY: dict[type, str] = {Pool: "name", Upstream: "label", Tenant: "id", Endpoint: "path"}


@dataclass(frozen=True, slots=True)
class Change:
    """One key that differs. None on a side: the entry is not there. Secrets show as ***."""

    key: str
    before: str | None
    after: str | None
    restart: bool = False

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.key} added"
        if self.after is None:
            return f"{self.key} removed"
        return f"{self.key}: {self.before} -> {self.after}"


def changes(before: Config, after: Config) -> list[Change]:
    """Every difference, in the order of the schema. Entries of lists are matched by their name, not their position."""
    return list(_sections(before, after, "", restart=False))


def _sections(before: BaseModel, after: BaseModel, place: str, *, restart: bool) -> Iterator[Change]:
    for name, field in type(before).model_fields.items():
        old, new = getattr(before, name), getattr(after, name)
        if old == new:
            continue
        extra = field.json_schema_extra
        needs_restart = restart or (isinstance(extra, dict) and "x-restart" in extra)
        inside = f"{place}.{name}" if place else name
        if isinstance(old, BaseModel) and isinstance(new, BaseModel):
            yield from _sections(old, new, inside, restart=needs_restart)
        elif _are_entries(old) and _are_entries(new):
            yield from _entries(old, new, inside, restart=needs_restart)
        else:
            was, is_now = (section.model_dump(mode="json", include={name})[name] for section in (before, after))
            yield Change(inside, _show(was), _show(is_now), needs_restart)


def _entries(before: tuple[Any, ...], after: tuple[Any, ...], place: str, *, restart: bool) -> Iterator[Change]:
    old, new = ({getattr(entry, _NAMED_BY[type(entry)]): entry for entry in entries} for entries in (before, after))
    for name in [*old, *(name for name in new if name not in old)]:
        inside = f"{place}[{name}]"
        if name in old and name in new:
            yield from _sections(old[name], new[name], inside, restart=restart)
        else:
            entry = old.get(name) or new[name]
            yield Change(
                inside,
                "there" if name in old else None,
                "there" if name in new else None,
                restart or isinstance(entry, Pool),  # a pool is a scheduler, with a ledger of its own
            )


def _are_entries(value: object) -> bool:
    return isinstance(value, tuple) and all(type(entry) in _NAMED_BY for entry in value)


def _show(value: object) -> str:
    """A value of `model_dump(mode="json")`: secrets are masked there already."""
    if isinstance(value, list):
        return f"[{', '.join(map(_show, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_show(inner)}' for name, inner in value.items())}}}"
    return "unset" if value is None else str(value)
