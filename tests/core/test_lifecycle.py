"""The table of states and the closed set of outcomes are complete."""

import http

from tests.core.pool import Pool
from tests.core.traffic import Traffic, pairs

from fairq.core import events as ev
from fairq.core.lifecycle import LIFECYCLE, STATUS, Outcome, State

EVENTS = {name for steps in LIFECYCLE.values() for name in steps}
DECISIONS = {"Dispatch", "Reject"}


def test_every_state_is_reachable_from_waiting_and_every_one_can_end() -> None:
    def reach(start: State) -> set[State]:
        found, edge = {start}, [start]
        while edge:
            for following in LIFECYCLE[edge.pop()].values():
                if following not in found:
                    found.add(following)
                    edge.append(following)
        return found

    assert reach(State.WAITING) == set(State) == set(LIFECYCLE)
    assert all(State.ENDED in reach(state) for state in State)
    assert LIFECYCLE[State.ENDED] == {}


def test_the_table_speaks_of_events_and_decisions_that_exist() -> None:
    kinds = {kind.__name__ for kind in ev.AnyEvent.__args__}
    assert kinds >= EVENTS - DECISIONS


def test_every_outcome_has_a_status_of_http() -> None:
    assert set(STATUS) == set(Outcome)
    known = {status.value for status in http.HTTPStatus} | {499}
    assert all(outcome.status in known for outcome in Outcome)
    assert {o.status for o in Outcome if o.name.startswith("REFUSED")} <= {400, 401, 403, 404, 413, 429, 503}


def test_outcomes_are_those_of_the_conventions() -> None:
    assert {outcome.value for outcome in Outcome} == {
        "refused-unauthorized",
        "refused-forbidden",
        "refused-invalid",
        "refused-too-large",
        "refused-unknown-model",
        "refused-rate-limit",
        "refused-queue-full",
        "refused-no-upstream",
        "refused-shutting-down",
        "expired",
        "cancelled-waiting",
        "cancelled-running",
        "failed-connect",
        "failed-timeout",
        "failed-upstream",
        "failed-midstream",
        "stalled-client",
        "completed",
    }


def test_a_long_life_takes_every_step_of_the_table() -> None:
    """Each (state, event) of the table happens under random traffic: none is dead."""
    pool = Pool({"u1": 2, "u2": 1}, validate=False)
    traffic = Traffic(pool)
    taken: set[tuple[str, str]] = set()
    for kind, number in pairs(1, 20_000):
        before = {id_: entry.state for id_, entry in pool.scheduler.jobs.items()}
        traffic.play(kind, number)
        event = pool.events[-1]
        name, id_ = type(event).__name__, getattr(event, "id", "")
        if name in EVENTS and id_ in before:
            taken.add((before[id_], name))
        for ended in (id_ for id_ in before if id_ not in pool.scheduler.jobs and id_ != getattr(event, "id", "")):
            taken.add((before[ended], "Reject"))
        for id_, entry in pool.scheduler.jobs.items():
            if entry.state is State.RUNNING and before.get(id_, State.WAITING) is not State.RUNNING:
                taken.add((before.get(id_, State.WAITING), "Dispatch"))
    assert taken == {(state, event) for state, steps in LIFECYCLE.items() for event in steps}
