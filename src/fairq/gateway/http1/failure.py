"""Why an upstream gave no complete response."""

from __future__ import annotations

from typing import Literal

FailureKind = Literal["connect", "timeout", "reset", "protocol"]


class Failure:
    """`started`: the head had come, so that the client may have seen a part of the response."""

    __slots__ = ("detail", "kind", "started")

    def __init__(self, kind: FailureKind, detail: str, started: bool) -> None:
        self.kind, self.detail, self.started = kind, detail, started

    def __repr__(self) -> str:
        return f"Failure({self.kind!r}, {self.detail!r}, {self.started})"
