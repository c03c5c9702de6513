"""Why an upstream gave no complete response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FailureKind = Literal["connect", "timeout", "reset", "protocol"]


@dataclass(frozen=True, slots=True)
class Failure:
    """`started`: the head had come, so that the client may have seen a part of the response."""

    kind: FailureKind
    detail: str
    started: bool
