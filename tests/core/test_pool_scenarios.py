"""What a scheduler must do when things happen to requests, tenants and upstreams: one scenario each."""

from fractions import Fraction

import pytest
from tests.core.pool import SECOND, TOKENS, Pool

from fairq.core import events as ev
from fairq.core.commands import Abort, Dispatch, Ended, Reject
from fairq.core.cost import CostModel, Source, Usage
from fairq.core.errors import FairqError, InvalidTransition
from fairq.core.job import Flow
from fairq.core.lifecycle import Outcome
from fairq.policies.sfq import SFQ


def test_a_free_slot_takes_an_arrival_at_once() -> None:
    pool = Pool(slots=1)
    id_ = pool.admit("A", size=7)
    assert list(pool.running) == [id_]
    assert pool.running[id_].charge == 7
    assert pool.running[id_].why.code == "least-meter"


def test_leaving_the_queue_costs_nothing_and_reaches_no_upstream() -> None:
    """A-7: of ten that wait, the five in the middle leave."""
    pool = Pool(slots=2)
    first = [pool.admit("B", size=5), pool.admit("B", size=5)]
    queued = [pool.admit("A", size=10) for _ in range(10)]
    for id_ in queued[3:8]:
        commands = pool.send(ev.Cancelled, id=id_)
        assert [type(command) for command in commands] == [Ended]
        assert pool.outcome(id_) is Outcome.CANCELLED_WAITING
        assert pool.ended[id_].charge == 0
    for id_ in [*first, *queued[:3], *queued[8:]]:
        pool.finish(id_)
    assert pool.charged == {"A": 50, "B": 10}
    assert [order.id for order in pool.orders] == [*first, *queued[:3], *queued[8:]]


def test_a_client_that_leaves_at_the_instant_of_dispatch_ends_once() -> None:
    """A-8: cancel before the slot is free, or after it at the same instant: one outcome, one slot given back."""
    for cancel_first in (True, False):
        pool = Pool(slots=1)
        running, waiting = pool.admit("A", size=1), pool.admit("B", size=1)
        if cancel_first:
            pool.send(ev.Cancelled, id=waiting)
            pool.finish(running)
            assert pool.outcome(waiting) is Outcome.CANCELLED_WAITING
        else:
            pool.finish(running)
            assert pool.running.keys() == {waiting}
            assert [type(c) for c in pool.send(ev.Cancelled, id=waiting)] == [Abort]
            assert pool.send(ev.Cancelled, id=waiting) == []  # told once
            pool.finish(waiting, 0, Outcome.CANCELLED_RUNNING, Source.COUNTED)
            assert pool.outcome(waiting) is Outcome.CANCELLED_RUNNING
        assert pool.scheduler.slots.free == 1
        assert pool.scheduler.jobs == {}


def test_a_retry_goes_to_another_upstream_first_of_all_and_is_charged_once() -> None:
    """B-8."""
    pool = Pool(slots={"u1": 1, "u2": 1})
    id_, other = pool.admit("A", size=10), pool.admit("B", size=10)
    pool.admit("B", size=10)
    assert (pool.running[id_].upstream, pool.running[other].upstream) == ("u1", "u2")
    pool.send(ev.AttemptFailed, id=id_, outcome=Outcome.FAILED_CONNECT)
    assert id_ in pool.retrying  # u1 took the waiting request of B instead; only another one may try again
    pool.finish(other)
    assert pool.running[id_].upstream == "u2"
    assert pool.running[id_].attempt == 2
    pool.finish(id_)
    assert pool.charged["A"] == 10
    assert pool.ended[id_].charge == 10
    assert pool.ended[id_].attempts == 2


def test_a_third_attempt_is_not_made() -> None:
    pool = Pool(slots={"u1": 1, "u2": 1, "u3": 1})
    id_ = pool.admit("A", size=10)
    pool.send(ev.AttemptFailed, id=id_, outcome=Outcome.FAILED_CONNECT)
    commands = pool.send(ev.AttemptFailed, id=id_, outcome=Outcome.FAILED_TIMEOUT)
    assert [type(command) for command in commands] == [Reject, Ended]
    assert pool.outcome(id_) is Outcome.FAILED_TIMEOUT
    assert pool.ended[id_].status == 504


def test_with_a_single_upstream_a_failure_is_final() -> None:
    pool = Pool(slots=2)
    id_ = pool.admit("A", size=10)
    assert not pool.scheduler.can_retry(id_)
    pool.send(ev.AttemptFailed, id=id_, outcome=Outcome.FAILED_CONNECT)
    assert pool.outcome(id_) is Outcome.FAILED_CONNECT
    assert pool.scheduler.slots.free == 2


def test_nothing_is_tried_again_for_a_client_that_has_left() -> None:
    pool = Pool(slots={"u1": 1, "u2": 1})
    id_ = pool.admit("A", size=10)
    pool.send(ev.Cancelled, id=id_)
    assert not pool.scheduler.can_retry(id_)
    pool.send(ev.AttemptFailed, id=id_, outcome=Outcome.FAILED_CONNECT)
    assert pool.outcome(id_) is Outcome.CANCELLED_RUNNING
    assert pool.scheduler.slots.free == 2


def test_a_client_may_leave_while_its_request_waits_for_a_second_upstream() -> None:
    pool = Pool(slots={"u1": 1, "u2": 1})
    id_, _ = pool.admit("A", size=10), pool.admit("B", size=10)
    pool.send(ev.AttemptFailed, id=id_, outcome=Outcome.FAILED_CONNECT)
    pool.send(ev.Cancelled, id=id_)
    assert pool.outcome(id_) is Outcome.CANCELLED_RUNNING
    assert pool.scheduler.slots.free == 1


def test_the_slot_is_free_while_the_client_still_reads() -> None:
    pool = Pool(slots=1)
    id_, next_ = pool.admit("A", size=1), pool.admit("A", size=1)
    commands = pool.send(ev.SlotFreed, id=id_)
    assert [command.id for command in commands if isinstance(command, Dispatch)] == [next_]
    pool.send(ev.Cancelled, id=id_)  # the shell knows; nothing is left to abort
    pool.finish(id_, outcome=Outcome.STALLED_CLIENT)
    assert pool.outcome(id_) is Outcome.STALLED_CLIENT
    assert pool.scheduler.slots.free == 0


def test_waiting_longer_than_the_time_to_live_ends_it() -> None:
    """E-4, and at the moment announced by next_deadline, no earlier."""
    pool = Pool(slots=1)
    pool.admit("A", size=1)
    id_ = pool.admit("A", size=1, wait=60 * SECOND)
    patient = pool.admit("A", size=1)
    assert pool.scheduler.next_deadline() == 60 * SECOND
    assert pool.pass_time(60 * SECOND - 1) == []
    commands = pool.pass_time(1)
    assert [type(command) for command in commands] == [Reject, Ended]
    assert pool.outcome(id_) is Outcome.EXPIRED
    assert pool.ended[id_].wait == 60 * SECOND
    assert pool.ended[id_].charge == 0
    assert pool.scheduler.next_deadline() is None
    assert patient in pool.waiting


def test_nothing_is_dispatched_that_has_expired_at_that_instant() -> None:
    """The slot and the deadline come together, and no tick came first."""
    pool = Pool(slots=1)
    running = pool.admit("A", size=1)
    late = pool.admit("A", size=1, wait=5)
    fine = pool.admit("A", size=1, wait=6)
    pool.now = 5
    pool.finish(running)
    assert pool.outcome(late) is Outcome.EXPIRED
    assert list(pool.running) == [fine]


def test_a_retrying_request_that_expires_says_what_its_upstream_did() -> None:
    pool = Pool(slots={"u1": 1, "u2": 1})
    id_ = pool.admit("A", size=1, wait=10)
    pool.admit("B", size=1)
    pool.send(ev.AttemptFailed, id=id_, outcome=Outcome.FAILED_TIMEOUT)
    assert pool.scheduler.next_deadline() == 10
    pool.pass_time(10)
    assert pool.outcome(id_) is Outcome.FAILED_TIMEOUT


def test_a_retry_that_can_go_at_once_goes_even_if_its_first_attempt_took_longer_than_its_time_to_live() -> None:
    pool = Pool(slots={"u1": 1, "u2": 1})
    id_ = pool.admit("A", size=1, wait=10)
    pool.now = 30
    pool.send(ev.AttemptFailed, id=id_, outcome=Outcome.FAILED_TIMEOUT)
    assert pool.running[id_].upstream == "u2"


def test_an_eviction_makes_room_and_is_charged_nothing() -> None:
    pool = Pool(slots=1)
    pool.admit("A", size=5)
    id_ = pool.admit("A", size=5)
    pool.send(ev.Evicted, id=id_)
    assert pool.outcome(id_) is Outcome.REFUSED_QUEUE_FULL
    assert pool.charged["A"] == 5


# Tenants


def test_a_capped_tenant_is_out_of_the_ranking_until_a_request_of_it_ends() -> None:
    pool = Pool(slots=3, flows=[Flow(id="A", max_inflight=1)])
    first = [pool.admit("A", size=1) for _ in range(4)]
    other = [pool.admit("B", size=100) for _ in range(3)]
    assert list(pool.running) == [first[0], other[0], other[1]]
    pool.finish(first[0])
    assert first[1] in pool.running
    assert pool.inflight["A"] == 1


def test_a_capped_tenant_banks_nothing_while_it_is_at_its_cap() -> None:
    """It joins again at max(M, V), like one that was idle."""
    pool = Pool(slots=2, flows=[Flow(id="A", max_inflight=1)])
    slow = pool.admit("A", size=1)
    for _ in range(3):
        pool.admit("A", size=10)
    pool.admit("B", size=10)
    for _ in range(40):
        pool.admit("B", size=10)
    for _ in range(20):
        pool.finish(next(id_ for id_, one in pool.running.items() if one.tenant == "B"))
    sfq = pool.scheduler.policy
    assert isinstance(sfq, SFQ)
    before = sfq.virtual_time
    pool.finish(slow)
    assert sfq.meters["A"] >= before


def test_a_paused_tenant_waits_and_joins_level() -> None:
    pool = Pool(slots=1)
    pool.admit("A", size=10)
    pool.send(ev.Paused, tenant="B")
    for _ in range(4):
        pool.admit("A", size=10)
        pool.admit("B", size=10)
    for _ in range(3):
        pool.finish(next(iter(pool.running)))
    assert pool.order() == "AAAA"
    pool.send(ev.Resumed, tenant="B")
    while pool.running:
        pool.finish(next(iter(pool.running)))
    assert pool.order() == "AAAABABBB"


def test_a_paused_tenant_leaves_slots_idle_rather_than_served() -> None:
    pool = Pool(slots=2)
    pool.send(ev.Paused, tenant="B")
    id_ = pool.admit("B", size=10)
    assert pool.running == {}
    pool.send(ev.Resumed, tenant="B")
    assert list(pool.running) == [id_]


def test_a_pause_survives_a_reload_and_a_tenant_without_requests() -> None:
    pool = Pool(slots=1)
    pool.send(ev.Paused, tenant="B")
    pool.reconfigure([Flow(id="B", weight=Fraction(2))])
    id_ = pool.admit("B", size=10)
    assert id_ in pool.waiting
    pool.send(ev.Resumed, tenant="B")
    assert id_ in pool.running


def test_a_removed_tenant_keeps_its_queue_and_gets_the_default_terms() -> None:
    """E-9: ten wait, the tenant leaves the configuration, none is lost."""
    pool = Pool(slots=1, flows=[Flow(id="A", weight=Fraction(5), max_inflight=1)])
    ids = [pool.admit("A", size=10) for _ in range(11)]
    pool.reconfigure([])
    for id_ in ids:
        pool.finish(id_)
    assert [order.id for order in pool.orders] == ids
    assert "A" not in pool.scheduler.tenants.all


def test_a_weight_changes_the_next_charge_and_no_place_in_a_queue() -> None:
    """C-11, live."""
    pool = Pool(slots=1)
    ids = [pool.admit("A", size=12) for _ in range(5)]
    pool.reconfigure([Flow(id="A", weight=Fraction(4))])
    sfq = pool.scheduler.policy
    assert isinstance(sfq, SFQ)
    pool.finish(ids[0])
    assert [order.id for order in pool.orders] == ids[:2]
    assert sfq.meters["A"] - sfq.virtual_time == 3 << 20
    assert sfq.lead("A") == 12
    pool.reconfigure([Flow(id="A", weight=Fraction(1))])
    assert sfq.lead("A") == 3  # the meter stays; what it is worth in cost units does not


@pytest.mark.parametrize("weights", [(1, 4), (3, 1), (Fraction(1, 2), Fraction(3, 2))])
def test_backlogged_tenants_share_by_weight(weights: tuple[Fraction, Fraction]) -> None:
    """C-11, C-2: sizes differ by 40; charges follow the weights within the bound, exactly."""
    flows = [Flow(id=name, weight=Fraction(weight)) for name, weight in zip("AB", weights, strict=True)]
    pool = Pool(slots={}, flows=flows, wait_for_upstream=SECOND, validate=False)
    for _ in range(900):
        pool.admit("A", size=40)
    for _ in range(9000):
        pool.admit("B", size=1)
    pool.upstream("u1", 4)
    pool.finish_all(800)
    a, b = (Fraction(pool.charged[name]) / weight for name, weight in zip("AB", weights, strict=True))
    assert abs(a - b) <= 2 * max(40 / Fraction(weights[0]), 1 / Fraction(weights[1]))


def test_one_script_of_two_hundred_does_not_hold_up_a_human() -> None:
    """C-1: whoever comes back from idle is next, for every arrival, not behind the 200."""
    pool = Pool(slots=1)
    for _ in range(200):
        pool.admit("script", size=50)
    for _ in range(15):
        pool.finish(next(iter(pool.running)))
        human = pool.admit("human", size=50)
        assert human in pool.waiting
        pool.finish(next(iter(pool.running)))
        assert human in pool.running


def test_a_returning_tenant_gets_its_share_and_no_burst() -> None:
    """C-4 and C-5: B comes with a thousand after A was alone for long; from then on they take turns."""
    pool = Pool(slots=1, validate=False)
    for _ in range(1000):
        pool.admit("A", size=10)
    for _ in range(500):
        pool.finish(next(iter(pool.running)))
    for _ in range(1000):
        pool.admit("B", size=10)
    for _ in range(400):
        pool.finish(next(iter(pool.running)))
    since = pool.order()[501:]
    assert since == ("BA" * 200)


@pytest.mark.parametrize("ids", [6_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_made_up_tenants_leave_nothing_behind(ids: int) -> None:
    """D-6: each id asks once, while one tenant is always backlogged; every index returns to where it was.

    A tenant that is ahead of virtual time is not forgotten meanwhile.
    """
    pool = Pool(slots=2, validate=False, settlement="forward")
    scheduler, sfq = pool.scheduler, pool.scheduler.policy
    assert isinstance(sfq, SFQ)
    for _ in range(4):
        pool.admit("honest", size=3)
    debtor = pool.admit("debtor", size=1_000_000)
    while debtor not in pool.running:
        pool.finish(next(iter(pool.running)))
    for number in range(ids):
        pool.admit(f"made-up-{number}", size=3)
        pool.admit("honest", size=3)
        for running in [running for running in pool.running if running != debtor]:
            pool.finish(running)
        pool.finish(next(running for running in pool.running if running != debtor))
        assert len(sfq.meters) <= 2 * 1024 + 64
    pool.ended.clear()
    assert len(scheduler.tenants.all) <= 4
    assert max(len(sfq.weights), len(sfq.queues), len(sfq.ranking)) <= 4
    assert max(len(sfq.ranking.heap), len(scheduler.patience.heap)) <= 200
    assert len(scheduler.estimator.habits) + len(scheduler.estimator.fading) <= 8192
    assert sfq.lead("debtor") == 1_000_000 - sfq.virtual_time // (1 << 20)


# Upstreams


def test_an_upstream_that_comes_back_still_holds_what_it_was_running() -> None:
    pool = Pool(slots={"u1": 2}, wait_for_upstream=SECOND)
    ids = [pool.admit("A", size=1) for _ in range(4)]
    pool.send(ev.UpstreamRemoved, upstream="u1")
    pool.upstream("u1", 2)
    assert len(pool.running) == 2
    pool.finish(ids[0])
    assert len(pool.running) == 2


def test_jobs_of_a_removed_upstream_end_as_they_do() -> None:
    pool = Pool(slots={"u1": 1, "u2": 1})
    ids = [pool.admit("A", size=1) for _ in range(2)]
    pool.send(ev.UpstreamRemoved, upstream="u1")
    for id_ in ids:
        pool.finish(id_)
    assert pool.scheduler.slots.free == 1


def test_fewer_slots_than_running_jobs_is_no_free_slot() -> None:
    pool = Pool(slots=3)
    ids = [pool.admit("A", size=1) for _ in range(5)]
    pool.upstream("u1", 1)
    pool.finish(ids[0])
    pool.finish(ids[1])
    assert len(pool.running) == 1
    pool.finish(ids[2])
    assert list(pool.running) == [ids[3]]


@pytest.mark.parametrize("how", [{"healthy": False}, {"draining": True}])
def test_an_unhealthy_or_draining_upstream_gets_nothing_new(how: dict[str, bool]) -> None:
    pool = Pool(slots={"u1": 1, "u2": 1})
    ids = [pool.admit("A", size=1) for _ in range(4)]
    pool.upstream("u1", 1, **how)
    pool.finish(ids[0])
    assert list(pool.running) == [ids[1]]
    pool.upstream("u1", 1)
    assert list(pool.running) == [ids[1], ids[2]]


def test_without_any_upstream_requests_wait_for_one_as_long_as_they_may() -> None:
    """G-8: one appears after 20 s, before the 30 s of patience are over; later ones give up at their own time."""
    pool = Pool(slots={}, wait_for_upstream=30 * SECOND)
    early = pool.admit("A", size=1)
    pool.pass_time(20 * SECOND)
    late = pool.admit("A", size=1)
    assert pool.scheduler.next_deadline() == 30 * SECOND
    pool.upstream("u1", 1)
    assert list(pool.running) == [early]
    assert pool.scheduler.next_deadline() is None
    pool.now = 25 * SECOND
    pool.upstream("u1", 1, healthy=False)
    assert pool.scheduler.next_deadline() == 55 * SECOND  # the dark began at 25
    pool.now = 40 * SECOND
    pool.upstream("u1", 1, healthy=False)  # still dark, since 25
    pool.pass_time(15 * SECOND)
    assert pool.outcome(late) is Outcome.REFUSED_NO_UPSTREAM
    assert pool.ended[late].status == 503


def test_no_upstream_and_no_patience_refuses_at_once() -> None:
    pool = Pool(slots={})
    id_ = pool.admit("A", size=1)
    assert pool.outcome(id_) is Outcome.REFUSED_NO_UPSTREAM


def test_draining_refuses_what_waits_and_lets_the_rest_end() -> None:
    """E-10."""
    pool = Pool(slots={"u1": 1, "u2": 1})
    running, retrying = pool.admit("A", size=1), pool.admit("A", size=1)
    waiting = [pool.admit("B", size=1) for _ in range(2)]
    pool.send(ev.AttemptFailed, id=retrying, outcome=Outcome.FAILED_CONNECT)
    waits = [id_ for id_ in waiting if id_ in pool.waiting]
    pool.send(ev.Draining)
    assert {pool.outcome(id_) for id_ in [*waits, retrying]} == {Outcome.REFUSED_SHUTTING_DOWN}
    pool.finish(running)
    assert pool.outcome(running) is Outcome.COMPLETED


# Order and errors


def test_events_are_numbered_without_gaps_and_time_never_goes_back() -> None:
    pool = Pool(slots=1)
    pool.now = 10
    pool.send(ev.Tick)
    for seq, time in ((pool.scheduler.seq, 10), (pool.scheduler.seq + 2, 10), (pool.scheduler.seq + 1, 9)):
        with pytest.raises(FairqError, match="cannot follow event"):
            pool.scheduler.handle(ev.Tick(seq=seq, time=time))
    pool.send(ev.Tick)


def test_an_impossible_event_tells_the_story_and_changes_nothing() -> None:
    pool = Pool(slots=1)
    id_, waiting = pool.admit("A", size=1), pool.admit("A", size=1)
    for kind, fields, story in (
        (ev.Evicted, {"id": id_}, "Admitted -> Dispatch"),
        (ev.Finished, {"id": waiting, "outcome": Outcome.COMPLETED}, "Admitted"),
        (ev.AttemptFailed, {"id": waiting, "outcome": Outcome.FAILED_CONNECT}, "Admitted"),
        (ev.Cancelled, {"id": "nobody"}, "never arrived"),
    ):
        with pytest.raises(InvalidTransition, match=story):
            pool.send(kind, **fields)
    with pytest.raises(InvalidTransition, match="Admitted is not possible"):
        pool.admit("A", id_)
    pool.finish(id_)
    assert list(pool.running) == [waiting]


def test_records_only_events_decide_nothing() -> None:
    pool = Pool(slots=1)
    pool.admit("A", size=1)
    pool.admit("A", size=1)
    assert pool.send(ev.Refused, id="x", outcome=Outcome.REFUSED_RATE_LIMIT) == []
    assert pool.send(ev.RecordingGap, lost=3) == []


def test_the_last_record_holds_everything_about_a_request() -> None:
    """Times from arrival to dispatch, first byte and end; tokens; estimate, charge, meter, upstream, outcome."""
    pool = Pool(slots=1, cost=CostModel(alpha=Fraction(1), beta=Fraction(2), default_output=100), validate=False)
    first = pool.admit("B", size=64)
    id_ = pool.admit("A", input_tokens=50, model="m")
    pool.now = 1_000
    pool.finish(first)
    pool.now = 5_000
    usage = Usage(prompt=50, completion=21, cached=8, source=Source.UPSTREAM)
    commands = pool.send(
        ev.Finished,
        id=id_,
        outcome=Outcome.COMPLETED,
        usage=usage,
        status=200,
        first_byte=2_000,
        last_byte=4_000,
        finish="stop",
    )
    assert commands[-1] == Ended(
        seq=pool.scheduler.seq,
        time=5_000,
        id=id_,
        tenant="A",
        outcome=Outcome.COMPLETED,
        upstream="u1",
        model="m",
        wait=1_000,
        ttft=2_000,
        tpot=100,  # 2,000 ns for the 20 tokens after the first
        total=5_000,
        estimate=250,
        charge=250,
        actual=92,
        meter=0,
        usage=usage,
        finish="stop",
        status=200,
        attempts=1,
    )


def test_a_calibration_changes_future_estimates_only() -> None:
    pool = Pool(slots=1, cost=TOKENS)
    first = pool.admit("A", output_limit=10)
    second = pool.admit("A", output_limit=10)
    pool.send(ev.CalibrationChanged, alpha=Fraction(0), beta=Fraction(7, 2))
    assert pool.running[first].charge == 10
    pool.finish(first, 10)
    assert pool.running[second].charge == 35
