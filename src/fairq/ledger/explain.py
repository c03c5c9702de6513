"""Why one request waited: what happened between its arrival and its end, and whose turn it was instead.

Time in the queue is divided by what kept the request from running at each moment:

    no upstream, retry   none was usable, or none but the one that had just failed
    paused, capped       a limit of its tenant
    own queue            all slots were taken, and earlier requests of its own tenant were before it
    slots taken          all slots were taken, and it was its tenant's next; the steps tell who went first
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct

from fairq.core import commands as cmd
from fairq.core import events as ev
from fairq.core.cost import Usage
from fairq.core.lifecycle import State
from fairq.core.policy import Why
from fairq.ledger.book import Living
from fairq.ledger.reader import Line, Reader
from fairq.ledger.segment import Head, LedgerError, number_of, segments_in
from fairq.ledger.tags import Tags, units
from fairq.ledger.world import EVENTS, World

SHOWN = 8  # decisions told one by one, at each end of a long wait


class Cause(StrEnum):
    NO_UPSTREAM = "no upstream"
    PAUSED = "paused"
    CAPPED = "capped"
    OWN_QUEUE = "own queue"
    SLOTS = "slots taken"
    RETRY = "retry"


class Layer(StrEnum):
    """Which part of the gateway made a request wait."""

    UPSTREAMS = "upstreams"
    LIMITS = "limits"
    ORDER = "order"


LAYERS: dict[str, Layer] = {
    Cause.NO_UPSTREAM: Layer.UPSTREAMS,
    Cause.RETRY: Layer.UPSTREAMS,
    Cause.PAUSED: Layer.LIMITS,
    Cause.CAPPED: Layer.LIMITS,
    Cause.OWN_QUEUE: Layer.ORDER,
    Cause.SLOTS: Layer.ORDER,
}


class Step(Struct, frozen=True):
    """A decision while the request waited. `lead`: of the request's own tenant at that moment, normalized cost units
    ahead of the virtual time before the decision; None when it was not backlogged or the policy has no tags."""

    seq: int
    time: int
    id: str
    tenant: str
    charge: int
    why: Why
    lead: float | None


class Served(Struct):
    """What one tenant got while the request waited."""

    tenant: str
    requests: int = 0
    charge: int = 0
    first: int = 0
    last: int = 0


class Explanation(Struct):
    """Times in ns; `arrival` on the monotonic clock and `wall` on the wall clock.

    position     its place in its tenant's queue on arrival, from 1
    rivals       other tenants that were backlogged on arrival
    lead         how far its tenant was ahead of virtual time then, normalized cost units; None without tags
    waited       by cause; without `retry` it is the time from arrival to dispatch, or to the end if it never ran
    first_byte   from its last dispatch to the first byte; generation: from there to the last byte
    served       who was dispatched meanwhile, most charged first
    steps        the first and the last decisions of the wait; `left_out` more lie between them
    own          its own dispatches
    lives        how many requests of this id the ledger knows; the last one is explained
    """

    id: str
    pool: str
    policy: str
    tenant: str
    model: str
    arrival: int
    wall: int
    position: int
    rivals: int
    lead: float | None
    waited: dict[str, int]
    served: list[Served]
    steps: list[Step]
    left_out: int = 0
    own: list[cmd.Dispatch] = []
    first_byte: int | None = None
    generation: int | None = None
    delivery: int | None = None
    outcome: str | None = None
    status: int = 0
    finish: str = ""
    estimate: int = 0
    charge: int = 0
    actual: int = 0
    usage: Usage = Usage()
    attempts: int = 0
    total: int | None = None
    lives: int = 1
    notes: list[str] = []

    @property
    def layers(self) -> dict[str, int]:
        """The waiting time by the layer that caused it."""
        total: dict[str, int] = {}
        for cause, ns in self.waited.items():
            total[LAYERS[cause]] = total.get(LAYERS[cause], 0) + ns
        return total

    @property
    def layer(self) -> str | None:
        """The layer that made it wait longest; None if nothing did."""
        layers = self.layers
        return max(layers, key=lambda layer: layers[layer]) if any(layers.values()) else None


class Witness:
    """Follows one request through the lines of a pool."""

    def __init__(self, id_: str) -> None:
        self.id = id_
        self.found: Explanation | None = None
        self._tags = Tags()
        self._world = World((self._tags,))
        self._head: Head | None = None
        self._since = 0
        self._lives = 0
        self._served: dict[str, Served] = {}
        self._late: list[Step] = []
        self._finished: ev.Finished | None = None

    def feed(self, line: Line) -> None:
        value, world = line.value, self._world
        if isinstance(value, Head):
            self._begin(value)
            return
        if type(value) in EVENTS:
            self._pass(value.time)
        living = world.living.get(self.id)
        if isinstance(value, cmd.Dispatch) and living is not None:
            self._dispatch(value, living)
        elif isinstance(value, ev.Finished) and value.id == self.id:
            self._finished = value
        elif isinstance(value, cmd.Ended) and value.id == self.id and self.found is not None:
            self._end(value, self.found)
        world.apply(value)
        if isinstance(value, ev.Admitted) and value.request.id == self.id:
            self._arrive(world.living[self.id])
        elif isinstance(value, ev.Refused) and value.id == self.id:
            self._refuse(value)

    def _begin(self, head: Head) -> None:
        first = self._head is None
        if not first and head.opened == "rotated":
            return
        self._head = head
        was = self._world.living.get(self.id)
        self._world.restore(head)
        living = self._world.living.get(self.id)
        if first and living is not None:
            found = self._arrive(living)
            found.notes.append("it arrived before this ledger begins: earlier decisions are not known")
            self._since = head.state["now"]
        elif was is not None and living is None and self.found is not None:
            self.found.notes.append(f"then the recording was interrupted ({head.opened}), and it was gone")

    def _arrive(self, living: Living) -> Explanation:
        head, request, world = self._known(), living.request, self._world
        self._lives += 1
        self._since = request.arrival
        self._served, self._late, self._finished = {}, [], None
        lead = units(self._tags.lead(living.tenant)) if self._tagged(living) else None
        self.found = Explanation(
            id=self.id,
            pool=head.pool,
            policy=head.setup.policy,
            tenant=living.tenant.id,
            model=request.model,
            arrival=request.arrival,
            wall=head.wall + request.arrival - head.monotonic,
            position=list(living.tenant.queue).index(self.id) + 1 if living.state is State.WAITING else 0,
            rivals=len(world.backlogged) - living.tenant.backlogged,
            lead=lead,
            waited={},
            served=[],
            steps=[],
            lives=self._lives,
        )
        return self.found

    def _refuse(self, line: ev.Refused) -> None:
        head = self._known()
        self._lives += 1
        self.found = Explanation(
            id=self.id,
            pool=head.pool,
            policy=head.setup.policy,
            tenant=line.tenant,
            model="",
            arrival=line.time,
            wall=head.wall + line.time - head.monotonic,
            position=0,
            rivals=0,
            lead=None,
            waited={},
            served=[],
            steps=[],
            outcome=line.outcome,
            status=line.status or line.outcome.status,
            lives=self._lives,
        )

    def _pass(self, now: int) -> None:
        """Time has passed since the last event. For what did the request wait then?"""
        living = self._world.living.get(self.id)
        if living is not None and self.found is not None:
            cause = self._cause(living)
            if cause is not None and now > self._since:
                self.found.waited[cause] = self.found.waited.get(cause, 0) + now - self._since
        self._since = now

    def _cause(self, living: Living) -> Cause | None:
        tenant = living.tenant
        if living.state is State.RETRYING:
            return Cause.RETRY
        if living.state is not State.WAITING:
            return None
        if tenant.paused:
            return Cause.PAUSED
        if not tenant.open:
            return Cause.CAPPED
        if not any(u.healthy and not u.draining and u.slots > 0 for u in self._world.upstreams.values()):
            return Cause.NO_UPSTREAM
        return Cause.SLOTS if next(iter(tenant.queue)) == self.id else Cause.OWN_QUEUE

    def _dispatch(self, line: cmd.Dispatch, living: Living) -> None:
        found = self.found
        if found is None:
            return
        if line.id == self.id:
            found.own.append(line)
            found.attempts = line.attempt
            if line.attempt == 1:
                found.estimate, found.charge = line.estimate, line.charge
            self._write(found)
        elif living.state is State.WAITING and line.attempt == 1:
            served = self._served.setdefault(line.tenant, Served(line.tenant, first=line.time))
            served.requests += 1
            served.charge += line.charge
            served.last = line.time
            lead = units(self._tags.lead(living.tenant)) if self._tagged(living) else None
            step = Step(line.seq, line.time, line.id, line.tenant, line.charge, line.why, lead)
            if len(found.steps) < SHOWN:
                found.steps.append(step)
            else:
                self._late.append(step)
                if len(self._late) > SHOWN:
                    del self._late[0]
                    found.left_out += 1

    def _end(self, line: cmd.Ended, found: Explanation) -> None:
        self._write(found)
        finished = self._finished
        found.outcome, found.status, found.finish = line.outcome, line.status, line.finish
        found.estimate, found.charge, found.actual = line.estimate, line.charge, line.actual
        found.usage, found.attempts, found.total = line.usage, line.attempts, line.total
        if finished is not None and found.own:
            start = found.own[-1].time
            if finished.first_byte:
                found.first_byte = finished.first_byte - start
                found.generation = max(finished.last_byte, finished.first_byte) - finished.first_byte
                found.delivery = line.time - max(finished.last_byte, finished.first_byte)
            else:
                found.first_byte = line.time - start

    def close(self) -> Explanation | None:
        """No more lines: what is known of it, None if it is unknown."""
        if self.found is not None and self.found.outcome is None:
            self._write(self.found)
        return self.found

    def _write(self, found: Explanation) -> None:
        found.steps += self._late
        self._late = []
        found.served = sorted(self._served.values(), key=lambda served: (-served.charge, served.tenant))

    def _known(self) -> Head:
        assert self._head is not None  # readers give a head first
        return self._head

    def _tagged(self, living: Living) -> bool:
        return living.tenant.backlogged and self._known().setup.policy.startswith("sfq")


def explain(path: Path, id_: str, progress: Callable[[int], None] = lambda done: None) -> Explanation:
    """The story of request `id_` in the ledger of one pool. `progress` is told the bytes read.

    Only segments from the first to the last that name the request are read line by line. Raises LedgerError when none
    does, or one cannot be read.
    """
    named = list(_naming(path, id_))
    if not named:
        raise LedgerError(f"{path}: no request {id_}; it was never here, or its segments have been removed")
    last = number_of(named[-1]) or 0
    reader, witness = Reader(path, named[0] if path.is_dir() else None), Witness(id_)
    for line in reader:
        if (number_of(line.path) or 0) > last:
            break
        witness.feed(line)
        progress(reader.done)
    found = witness.close()
    if found is None:
        raise LedgerError(f"{path}: no request {id_}")
    found.notes.extend(reader.notes)
    return found


def _naming(path: Path, id_: str) -> Iterator[Path]:
    needle = b'"id":' + msgspec.json.encode(id_)
    try:
        for segment in segments_in(path) if path.is_dir() else [path]:
            if needle in segment.read_bytes():
                yield segment
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror or error}") from None
