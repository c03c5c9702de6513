"""Why an upstream gave no complete response."""

from __future__ import annotations

from typing import Final, Literal

FailureKind = Literal["connect", "timeout", "reset", "protocol"]
MAX_DETAIL: Final = 200  # characters


class Failure:
    """
    detail   for people, and for logs: one line of at most MAX_DETAIL characters, others than printable ones escaped
    started  the head had come, so that the client may have seen a part of the response
    """

    __slots__ = ("detail", "kind", "started")

    def __init__(self, kind: FailureKind, detail: str, started: bool) -> None:
        shown = [each if each.isprintable() else ascii(each)[1:-1] for each in detail[:MAX_DETAIL]]
        self.kind, self.detail, self.started = kind, "".join(shown)[:MAX_DETAIL], started

    def __repr__(self) -> str:
        return f"Failure({self.kind!r}, {self.detail!r}, {self.started})"
