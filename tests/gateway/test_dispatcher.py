"""What happens in one turn of the loop is decided at its end, in order: nobody is refused, lost or sent twice by it."""

from collections.abc import Callable

import pytest
from tests.core.pool import TOKENS, scheduler

from fairq.core import events as ev
from fairq.core.commands import Dispatch, Ended
from fairq.core.cost import Source, Usage
from fairq.core.job import Request
from fairq.core.lifecycle import Outcome
from fairq.core.lines import decode
from fairq.core.setup import Setup
from fairq.gateway.admission import Admission, Bounds, Full
from fairq.gateway.dispatcher import Dispatcher


class Turn:
    """A dispatcher whose loop is turned by hand. done: what its calls were told, in order."""

    def __init__(self, slots: int, queue: int = 100) -> None:
        self.done: list[tuple[str, str]] = []
        self.due: list[Callable[[], None]] = []
        self.lines: list[object] = []
        bounds = Bounds(queue, 10**6)
        self.admission = Admission(Bounds(queue, 10**6), lambda tenant: bounds, lambda: 0)
        pool, never = scheduler(Setup(cost=TOKENS)), Never()
        self.dispatcher = Dispatcher(
            pool, self.admission, self.record, lambda: 0, self.due.append, lambda due, ring: never
        )
        self.dispatcher.emit(ev.UpstreamChanged, upstream="u", slots=slots, healthy=True)
        self.turn()

    def record(self, lines: bytes) -> None:
        self.lines += map(decode, lines.splitlines())

    def turn(self) -> None:
        due, self.due[:] = list(self.due), []
        for do in due:
            do()

    def come(self, id_: str, tenant: str = "a") -> "Call":
        assert self.dispatcher.ask(tenant, 10) == []
        call = Call(self, id_, tenant)
        self.dispatcher.submit(call)
        return call

    def finish(self, id_: str) -> None:
        usage = Usage(1, 1, 0, Source.COUNTED)
        self.dispatcher.put(ev.Finished, id=id_, outcome=Outcome.COMPLETED, usage=usage, status=200)

    def ended(self) -> dict[str, Outcome]:
        return {line.id: line.outcome for line in self.lines if isinstance(line, Ended)}


class Never:
    def cancel(self) -> None: ...


class Call:
    size = 10

    def __init__(self, turn: Turn, id_: str, tenant: str) -> None:
        self.turn, self.id = turn, id_
        self.request = Request(id=id_, flow=tenant, seq=len(turn.lines), output_limit=1)

    def dispatch(self, command: Dispatch) -> None:
        self.turn.done.append(("dispatch", self.id))

    def reject(self, outcome: Outcome) -> None:
        self.turn.done.append(("reject", self.id))

    def abort(self) -> None:
        self.turn.done.append(("abort", self.id))

    def cut(self) -> None: ...

    def ended(self, record: Ended) -> None:
        self.turn.done.append(("ended", self.id))


def test_nothing_is_done_before_the_turn_ends_and_then_all_in_order() -> None:
    world = Turn(slots=2)
    for id_ in ("r1", "r2", "r3"):
        world.come(id_)
    assert world.done == []
    world.turn()
    assert world.done == [("dispatch", "r1"), ("dispatch", "r2")]
    world.finish("r1")
    world.turn()
    assert world.done[2:] == [("ended", "r1"), ("dispatch", "r3")]
    assert not world.due


def test_a_burst_is_not_refused_for_a_queue_that_it_would_not_wait_in() -> None:
    """Room for one to wait, and eight free slots: all eight come in one turn."""
    world = Turn(slots=8, queue=1)
    for number in range(8):
        world.come(f"r{number}")
    assert world.dispatcher.ask("a", 10) == []  # one may wait
    world.come("waits")
    assert world.dispatcher.ask("a", 10) is Full.TENANT
    world.turn()
    assert len(world.done) == 8


def test_a_place_that_this_turn_has_freed_is_free() -> None:
    """One runs and one waits, which is all that may. The first ends, and another comes before the turn does."""
    world = Turn(slots=1, queue=1)
    world.come("first")
    world.turn()
    world.come("second")
    world.turn()
    assert world.dispatcher.ask("a", 10) is Full.TENANT
    world.finish("first")
    world.come("third")
    world.turn()
    assert world.done == [("dispatch", "first"), ("ended", "first"), ("dispatch", "second")]


def test_who_leaves_in_the_turn_in_which_it_came_is_never_sent() -> None:
    world = Turn(slots=1)
    world.come("first")
    world.come("second")
    world.dispatcher.put(ev.Cancelled, id="second")
    world.turn()
    assert world.done == [("dispatch", "first"), ("ended", "second")]
    assert world.ended() == {"second": Outcome.CANCELLED_WAITING}


def test_who_is_sent_and_leaves_in_one_turn_is_aborted_after_it() -> None:
    world = Turn(slots=1)
    world.come("only")
    world.dispatcher.put(ev.Cancelled, id="only")
    world.turn()
    assert world.done == [("dispatch", "only"), ("abort", "only")]


def test_leaving_comes_too_late_for_one_that_was_refused() -> None:
    world = Turn(slots=1)
    world.come("runs")
    world.turn()
    world.come("late")
    world.dispatcher.emit(ev.Draining)  # decided now: `late` is refused, and not told yet
    world.dispatcher.put(ev.Cancelled, id="late")
    world.turn()
    assert world.ended() == {"late": Outcome.REFUSED_SHUTTING_DOWN}
    assert world.done[1:] == [("reject", "late"), ("ended", "late")]


def test_an_eviction_comes_too_late_for_one_that_was_sent() -> None:
    world = Turn(slots=1)
    world.come("runs")
    world.turn()
    world.come("goes")
    world.turn()
    world.finish("runs")
    world.dispatcher.evict("goes")
    world.turn()
    assert world.done[1:] == [("ended", "runs"), ("dispatch", "goes")]


def test_what_is_asked_is_asked_of_all_that_has_happened() -> None:
    world = Turn(slots=1)
    assert not world.dispatcher.is_live("a")
    world.come("one", "a")
    assert world.dispatcher.is_live("a")
    assert world.done == []


def test_an_order_that_fails_takes_nothing_from_the_others() -> None:
    world = Turn(slots=3)
    calls = [world.come(f"r{number}") for number in range(3)]

    def broken(command: Dispatch) -> None:
        raise RuntimeError("a defect")

    calls[1].dispatch = broken  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="a defect"):
        world.turn()
    world.finish("r0")
    world.turn()
    assert world.done == [("dispatch", "r0"), ("dispatch", "r2"), ("ended", "r0")]


def test_an_event_that_cannot_be_takes_nothing_from_the_others() -> None:
    world = Turn(slots=2)
    world.come("r0")
    world.finish("nobody")
    world.come("r1")
    with pytest.raises(Exception, match="nobody"):
        world.turn()
    world.turn()
    assert world.done == [("dispatch", "r0"), ("dispatch", "r1")]


def test_the_last_turn_is_taken_when_it_closes() -> None:
    world = Turn(slots=1)
    world.come("one")
    world.turn()
    world.finish("one")
    world.dispatcher.close()
    assert world.ended() == {"one": Outcome.COMPLETED}
    assert world.done[-1] == ("ended", "one")


def test_a_turn_is_recorded_in_the_order_of_its_decisions() -> None:
    world = Turn(slots=1)
    for id_ in ("r1", "r2"):
        world.come(id_)
    world.turn()
    world.finish("r1")
    world.turn()
    told = [(type(line).__name__, getattr(line, "id", "") or line.request.id) for line in world.lines[1:]]  # type: ignore[attr-defined]
    assert told == [
        *(("Admitted", "r1"), ("Dispatch", "r1"), ("Admitted", "r2"), ("Finished", "r1")),
        *(("Ended", "r1"), ("Dispatch", "r2")),
    ]
    numbers = [line.seq for line in world.lines if isinstance(line, ev.Event)]
    assert numbers == list(range(1, len(numbers) + 1))
