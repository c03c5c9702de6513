"""A gateway's ledger as the lab plays it: what was decided, told from the lines alone. No scheduler runs here.

A step for every event that changed something, and one for each dispatch, with who waited and ran afterwards. Meters and
V are those of the article's rules, kept from the recorded order and charges, level with the tags that the reasons name.
"""

from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from fairq.core import commands as cmd
from fairq.core import events as ev
from fairq.core.number import of_json
from fairq.ledger.reader import Reader
from fairq.ledger.segment import AnyLine, Head, LedgerError, Opened, decode, reading_state
from fairq.ledger.tags import Tags, policy_of, units
from fairq.ledger.world import EVENTS, World
from fairq.sim.trace import Step

MOST_STEPS = 6_000
MOST_CELLS = 300_000  # steps x tenants that have something in them
SHOWN = 12  # waiting requests that are named, of each tenant
SECOND = 1_000_000_000  # ns
TAIL = 1 << 16  # bytes of a segment in which its last line is looked for
QUIET = (ev.SlotFreed, ev.Tick, ev.RecordingGap)
"""Events that are no step unless a request came, went or left with them."""


class Recording:
    """Feed it the lines of one pool in order. `since`: steps before that monotonic time (ns) are not kept."""

    def __init__(self, since: int = 0) -> None:
        self.tags = Tags()
        self.world = World((self.tags,))
        self.head: Head | None = None
        self.since = since
        self.times: deque[int] = deque()  # of the steps, ns
        self.steps: deque[Step] = deque()
        self.requests: dict[str, dict[str, Any]] = {}
        self.weights: dict[str, str] = {}
        self.left_out = 0
        self._cells = self._offset = 0
        self._what: dict[str, Any] = {}
        self._kind = "note"

    @property
    def tagged(self) -> bool:
        return self.head is not None and policy_of(self.head.setup.policy) == "sfq"

    def feed(self, line: AnyLine) -> None:
        """Raises LedgerError for a head whose state is no state."""
        if isinstance(line, Head):
            self._begin(line)
        elif type(line) in EVENTS:
            self._event(line)
        else:
            self._command(line)

    def _begin(self, head: Head) -> None:
        rotated = self.head is not None and head.opened is Opened.ROTATED
        self._flush()
        self.head = head
        if rotated:
            return
        with reading_state(head):
            self.world.restore(head)
            for living in self.world.living.values():
                request = living.request
                known = self._request(request.id, request.flow, request.arrival)
                known |= {"dispatched": living.dispatched or None, "charge": living.charge, "upstream": living.upstream}
        if self.steps:  # a new process, or lines are missing
            self._what = {"opened": head.opened.value, "lost": head.lost}
            self._step("note", self.world.now)

    def _event(self, event: Any) -> None:
        self._flush()
        what: dict[str, Any] = {}
        kind = "note"
        match event:
            case ev.Admitted():
                request = event.request
                self._request(request.id, request.flow, request.arrival)
                what, kind = {"arrived": [request.id]}, "arrive"
            case ev.Finished() | ev.SlotFreed() | ev.AttemptFailed():
                if (known := self.requests.get(event.id)) is not None and not known["freed"]:
                    known["freed"] = event.time
                what, kind = {"finished": [event.id]}, "finish"
                if isinstance(event, ev.Finished):
                    what = {}  # its Ended follows, and says it
            case ev.Refused():
                what, kind = {"refused": {"tenant": event.tenant, "outcome": event.outcome.value}}, "refuse"
            case ev.Paused() | ev.Resumed():
                what = {type(event).__name__.lower(): event.tenant}
            case ev.Reconfigured():
                weights = {flow.id: str(flow.weight) for flow in event.flows}
                what = {"reconfigured": weights, "by": event.by}
            case ev.UpstreamChanged():
                state = "draining" if event.draining else "healthy" if event.healthy else "unhealthy"
                what = {"upstream": event.upstream, "slots": event.slots, "state": state}
            case ev.UpstreamRemoved():
                what = {"upstream": event.upstream, "slots": 0, "state": "removed"}
            case ev.RecordingGap():
                what = {"opened": "gap", "lost": event.lost}
            case _:
                what = {}
        self.world.apply(event)
        self._what, self._kind = what, kind

    def _command(self, command: Any) -> None:
        if isinstance(command, cmd.Dispatch):
            self._dispatch(command)
            return
        self.world.apply(command)
        if isinstance(command, cmd.Ended):
            if (known := self.requests.get(command.id)) is not None:
                known |= {"ended": command.time, "outcome": command.outcome.value, "actual": command.actual}
                known["freed"] = known["freed"] or (command.time if known["dispatched"] else None)
            self._what.setdefault("ended", []).append(
                {"id": command.id, "tenant": command.tenant, "outcome": command.outcome.value}
            )
            if self._kind == "note":
                self._kind = "finish"

    def _dispatch(self, line: cmd.Dispatch) -> None:
        self._flush()
        meter = line.why.values.get("meter")
        if meter is not None and (own := self.tags.meters.get(line.tenant)) is not None:
            self._offset = int(of_json(meter)) - own  # tags in the ledger may have been rebased since
        before = self._show()
        self.world.apply(line)
        if (known := self.requests.get(line.id)) is not None:
            known |= {"upstream": line.upstream, "attempts": line.attempt, "freed": None}
            if line.attempt == 1:
                known |= {"dispatched": line.time, "charge": line.charge, "estimate": line.estimate}
        self._what = {
            "id": line.id,
            "tenant": line.tenant,
            "upstream": line.upstream,
            "cost": line.charge,
            "estimate": line.estimate,
            "attempt": line.attempt,
            "before": before,
        }
        if before and line.attempt == 1:
            self._what["virtual_time"] = max(before["virtual_time"], before["meters"].get(line.tenant, 0))
            self._what["reset"] = None if self.world.waiting else self._show()["virtual_time"]
        values = {
            name: rounded(value) if name in ("meter", "virtual_time") else value
            for name, value in line.why.values.items()
        }
        why = replace(line.why, values=values) if line.attempt == 1 else None
        self._step("dispatch", line.time, why)

    def finish(self) -> None:
        self._flush()

    def _flush(self) -> None:
        """The event is over, with everything that it led to."""
        if self._what:
            self._step(self._kind, self.world.now)

    def _step(self, kind: str, time: int, why: Any = None) -> None:
        what, self._what, self._kind = self._what, {}, "note"
        if time < self.since:
            return
        tenants = [one for one in self.world.tenants.values() if one.queue or one.inflight]
        for one in tenants:
            self.weights[one.id] = str(one.weight)
        step = Step(
            time=0,
            kind=kind,
            what=what
            | {
                "waiting": {one.id: len(one.queue) for one in tenants if one.queue},
                "inflight": {one.id: one.inflight for one in tenants if one.inflight},
            },
            why=why,
            queues={one.id: [*one.queue][:SHOWN] for one in tenants if one.queue},
            running=[],
            remaining={},
            show=self._show(),
        )
        self.steps.append(step)
        self.times.append(time)
        self._cells += len(tenants) + 1
        while len(self.steps) > MOST_STEPS or self._cells > MOST_CELLS:
            gone = self.steps.popleft().what
            self.times.popleft()
            self._cells -= len({*gone["waiting"], *gone["inflight"]}) + 1
            self.left_out += 1

    def _show(self) -> dict[str, Any]:
        if not self.tagged:
            return {}
        meters = {
            name: rounded(self.tags.meters.get(name, self.tags.origin) + self._offset) for name in self.world.backlogged
        }
        return {"virtual_time": rounded(self.tags.virtual_time + self._offset), "meters": meters}

    def _request(self, id_: str, tenant: str, arrival: int) -> dict[str, Any]:
        return self.requests.setdefault(
            id_,
            {
                "id": id_,
                "tenant": tenant,
                "arrival": arrival,
                "dispatched": None,
                "freed": None,
                "ended": None,
                "outcome": None,
                "upstream": "",
                "estimate": 0,
                "charge": 0,
                "actual": 0,
                "attempts": 0,
            },
        )


def rounded(tag: Any) -> float | int:
    """A tag in cost units, as short as it may be."""
    value = round(units(of_json(tag)), 2)
    return int(value) if value == int(value) else value


def read(paths: Iterable[Path], since: int = 0) -> tuple[Recording, list[str]]:
    """The segments of one pool, in order of writing; and what was passed over. Raises LedgerError."""
    recording, notes = Recording(since), list[str]()
    for path in paths:
        reader = Reader(path)
        for line in reader:
            recording.feed(line.value)
        notes += reader.notes
    recording.finish()
    if recording.head is None:
        raise LedgerError("ledger: holds no whole line")
    return recording, notes


def last_time(path: Path) -> int:
    """Of the last whole event or command of a segment, ns; 0 for none."""
    with path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - TAIL))
        lines = file.read().split(b"\n")[:-1]
    for raw in reversed(lines):
        try:
            line = decode(raw)
        except (msgspec.MsgspecError, ValueError, ArithmeticError):
            continue
        if not isinstance(line, Head):
            moment: int = line.time
            return moment
    return 0


def wall_of(head: Head, time: int) -> str:
    """A monotonic time of its process on the clock of the world."""
    return datetime.fromtimestamp((head.wall + time - head.monotonic) / SECOND, UTC).isoformat(timespec="milliseconds")
