"""Takes every decision again from the recorded events, and compares it with the recorded one, byte for byte."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Struct

from fairq import placements, policies
from fairq.core import snapshot
from fairq.core.commands import Command
from fairq.core.errors import FairqError
from fairq.core.events import AnyEvent
from fairq.core.lines import encode
from fairq.core.policy import Policy
from fairq.core.scheduler import Scheduler
from fairq.core.setup import Setup
from fairq.ledger.reader import Line
from fairq.ledger.segment import Head, Opened, reading_state


class Difference(Struct, frozen=True):
    """The first place where the ledger and the replay disagree. A missing side is ""."""

    where: str
    seq: int
    recorded: str
    replayed: str
    text: str


class Result(Struct):
    """`joints`: segment boundaries at which the replayed state was compared with the recorded one, and equal."""

    events: int = 0
    decisions: int = 0
    segments: int = 0
    joints: int = 0
    restarts: int = 0
    gaps: int = 0
    lost: int = 0
    notes: list[str] = []
    difference: Difference | None = None

    @property
    def identical(self) -> bool:
        return self.difference is None


class Replay:
    """Feed it lines, in order, then `finish`. It stops comparing at the first difference.

    `make_policy` replaces the registry: for policies that are not in it.
    """

    def __init__(self, make_policy: Callable[[str], Policy] = policies.make) -> None:
        self.result = Result()
        self._make = make_policy
        self._scheduler: Scheduler | None = None
        self._due: list[bytes] = []  # commands that the last event must be followed by, last one first
        self._event: tuple[str, int] = ("", 0)

    def feed(self, line: Line) -> None:
        """Raises ConfigError or LedgerError for a head that this fairq cannot go on from."""
        if self.result.difference is not None:
            return
        value = line.value
        if isinstance(value, Head):
            self._begin(line, value)
        elif isinstance(value, Command):
            self._compare(line, value.seq)
        else:
            self._handle(line, value)

    def finish(self, notes: Iterable[str] = ()) -> Result:
        """`notes`: of the reader."""
        self._cut_off()
        self.result.notes.extend(notes)
        return self.result

    def _begin(self, line: Line, head: Head) -> None:
        result = self.result
        result.segments += 1
        if self._scheduler is not None:
            if head.opened is Opened.ROTATED:
                self._missing()
                self._join(line, head, self._scheduler)
            else:
                self._cut_off()
                result.restarts += head.opened is Opened.STARTED
                result.gaps += head.opened is Opened.GAP
                result.lost += head.lost
        self._scheduler = scheduler_of(head, self._make)
        mine, theirs = self._scheduler.policy.version, head.policy_version
        if mine != theirs:
            result.notes.append(f"{line.where}: policy {head.setup.policy} was version {theirs} then and is {mine} now")

    def _join(self, line: Line, head: Head, scheduler: Scheduler) -> None:
        if self.result.difference is not None:
            return
        state = snapshot.save(scheduler)
        if (head.setup, head.state) == (scheduler.setup, json_of(state)):
            self.result.joints += 1
            return
        keys = [key for key in state if json_of(state[key]) != head.state.get(key)] or ["setup"]
        recorded, replayed = ({key: side.get(key) for key in keys} for side in (head.state, state))
        self._differ(
            line.where,
            head.state["seq"],
            encode(recorded),
            encode(replayed),
            f"the state at the end of the last segment is not the state in this head: {', '.join(keys)}",
        )

    def _handle(self, line: Line, event: AnyEvent) -> None:
        self._missing()
        if self.result.difference is not None:
            return
        assert self._scheduler is not None
        self._event = (line.where, event.seq)
        try:
            commands = self._scheduler.handle(event)
        except FairqError as error:
            self._differ(line.where, event.seq, line.raw, b"", f"the event is not possible: {error}")
            return
        self.result.events += 1
        self._due = [encode(command) for command in reversed(commands)]

    def _compare(self, line: Line, seq: int) -> None:
        replayed = self._due.pop() if self._due else b""
        if replayed != line.raw:
            text = "the decision differs" if replayed else "a decision was recorded that the events do not lead to"
            self._differ(line.where, seq, line.raw, replayed, text)
        else:
            self.result.decisions += 1

    def _missing(self) -> None:
        """The next event is here: is every command of the last one?"""
        if self._due:
            self._differ(*self._event, b"", self._due[-1], "a decision that this event leads to is not recorded")

    def _cut_off(self) -> None:
        """The recording ends here, perhaps inside an event."""
        if self._due and self.result.difference is None:
            where, seq = self._event
            self.result.notes.append(f"{where}: the recording ends before all commands of event {seq}")
        self._due = []

    def _differ(self, where: str, seq: int, recorded: bytes, replayed: bytes, text: str) -> None:
        self.result.difference = Difference(where, seq, recorded.decode(), replayed.decode(), text)


def scheduler_of(head: Head, make_policy: Callable[[str], Policy] = policies.make) -> Scheduler:
    """The scheduler as it was when the segment began.

    Raises ConfigError for names that this fairq does not know, LedgerError for a state that is none.
    """
    setup: Setup = head.setup
    scheduler = Scheduler(setup, make_policy(setup.policy), placements.make(setup.placement))
    with reading_state(head):
        snapshot.load(scheduler, head.state)
    return scheduler


def json_of(state: Any) -> Any:
    """As it comes back from a file: tuples are lists, and so on."""
    return msgspec.json.decode(encode(state))
