"""Why one request waited: follows it through the lines of a pool, from its arrival to its end."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from fairq.core import commands as cmd
from fairq.core import events as ev
from fairq.core.lifecycle import State
from fairq.ledger.book import Living
from fairq.ledger.explanation import Cause, Explanation, Served, Step
from fairq.ledger.reader import Line, Reader
from fairq.ledger.segment import Head, LedgerError, number_of, reading_state, segments_in
from fairq.ledger.tags import Tags, policy_of, units
from fairq.ledger.world import EVENTS, World

SHOWN = 8  # decisions told one by one, at each end of a long wait


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
        with reading_state(head):
            self._world.restore(head)
        living = self._world.living.get(self.id)
        if first and living is not None:
            found = self._arrive(living)
            found.truncated = True
            self._since = head.state["now"]
        elif was is not None and living is None and self.found is not None:
            self.found.interrupted = head.opened

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
        return living.tenant.backlogged and policy_of(self._known().setup.policy) == "sfq"


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
