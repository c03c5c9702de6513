"""What a policy answers: who is next, or that nobody is, and why."""

from typing import Any

from msgspec import Struct

from fairq.core.job import Job


class Why(Struct, frozen=True, gc=False):
    """A stable code and its numbers, never a sentence: CLI, lab, ledger and tests each say it their own way."""

    code: str
    values: dict[str, int | str] = {}


class Pick(Struct, frozen=True):
    job: Job
    why: Why
    plan: Any = None


class Wait(Struct, frozen=True):
    why: Why
    plan: Any = None


NOTHING_WAITS = Wait(Why("nothing-waits"))
Decision = Pick | Wait
