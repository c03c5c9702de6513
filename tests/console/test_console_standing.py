"""Who is starved, who floods, who gets what it asks for: by the recorded lines of runs in which it is known."""

from fractions import Fraction

import pytest
from tests.console.test_console_tallies import folded
from tests.ledger.recording import FAR, Recording

from fairq.console.judgement import Judgement
from fairq.console.live import Live
from fairq.console.pool import LivePool
from fairq.console.standing import Standing
from fairq.console.state import pool_view, tenant_views
from fairq.console.views import TenantView
from fairq.core.job import Flow
from fairq.core.setup import Setup

STEP = 100_000_000  # ns: one request takes so long
COST = 10


def closed_loop(policy: str, clients: dict[str, int], steps: int, **weights: int) -> LivePool:
    """Each tenant has so many clients, and each of them asks again as soon as it is answered. One slot."""
    flows = [Flow(id=name, weight=Fraction(weights.get(name, 1))) for name in clients]
    run = Recording(Setup(policy=policy, flows=flows, wait_for_upstream=FAR))
    run.upstream(1)
    for name, count in clients.items():
        for _ in range(count):
            run.admit(name, COST)
    for _ in range(steps):
        run.now += STEP
        [running] = run.running()
        run.finish(running)
        run.admit(running.rstrip("0123456789"), COST)
    return folded(run)


def views_of(pool: LivePool) -> dict[str, TenantView]:
    now = pool.world.now
    return {view.id: view for view in tenant_views("default", pool, now, Judgement(pool, now))}


def test_under_first_come_first_served_a_crowd_starves_the_few() -> None:
    tenants = views_of(closed_loop("fcfs", {"crowd": 38, "few": 2}, 700))
    few = tenants["few"]
    assert few.standing == Standing.STARVED
    assert few.share == pytest.approx(2 / 40, rel=0.1), "by count"
    assert few.fair == 0.5
    assert few.wanting > 0.9
    assert tenants["crowd"].standing == Standing.FLOODING
    assert list(tenants) == ["few", "crowd"], "who is starved comes first, however little it has"


def test_clients_that_wait_together_and_run_together_are_starved_too() -> None:
    """Eight slots: the few are all running, then all waiting. They would get about a third if nobody made them wait."""
    run = Recording(Setup(policy="fcfs", wait_for_upstream=FAR))
    run.upstream(8)
    for name, count in (("few", 3), ("crowd", 60)):
        for _ in range(count):
            run.admit(name, COST)
    started: dict[str, int] = {}
    for _ in range(700):
        run.now += STEP
        for id_ in run.running():
            started.setdefault(id_, run.now)
        for id_ in [id_ for id_ in run.running() if run.now - started[id_] >= 9 * STEP]:
            run.finish(id_)
            run.admit(id_.rstrip("0123456789"), COST)
    tenants = views_of(folded(run))
    few = tenants["few"]
    assert few.wanting < 0.9
    assert few.standing == Standing.STARVED
    assert few.share is not None
    assert few.fair is not None
    assert few.share < 0.06 < 0.25 < few.fair < 0.5


def test_under_sfq_the_same_crowd_starves_nobody() -> None:
    tenants = views_of(closed_loop("sfq", {"crowd": 38, "few": 3}, 700))
    assert tenants["few"].standing == Standing.FAIR
    assert tenants["few"].share == pytest.approx(0.5, abs=0.01)
    assert tenants["crowd"].standing == Standing.FLOODING


def test_jain_of_the_minute_tells_the_two_apart() -> None:
    def index(policy: str) -> float:
        pool = closed_loop(policy, {"crowd": 38, "few": 3}, 700)
        found = pool_view(Live(), "default", pool, 10).fairness.jain_minute
        assert found is not None
        return found

    assert index("sfq") > 0.999
    assert index("fcfs") < 0.6


def test_the_weights_are_part_of_the_fair_share() -> None:
    tenants = views_of(closed_loop("sfq", {"one": 5, "three": 5}, 700, three=3))
    assert (tenants["one"].fair, tenants["three"].fair) == (0.25, 0.75)
    assert {view.standing for view in tenants.values()} == {Standing.FAIR}


def sparse(seconds: int) -> LivePool:
    """`much` always has work waiting; `little` asks once a second, and is served at once."""
    run = Recording()
    run.upstream(1)
    for _ in range(20):
        run.admit("much", COST)
    for step in range(10 * seconds):
        run.now += STEP
        if step % 10 == 5:
            run.admit("little", COST)
        [running] = run.running()
        run.finish(running)
        if running.startswith("much"):
            run.admit("much", COST)
    return folded(run)


def test_who_asks_for_little_is_served_and_what_it_leaves_is_anothers_fair_share() -> None:
    tenants = views_of(sparse(70))
    assert tenants["little"].standing == Standing.SERVED
    assert tenants["little"].share == tenants["little"].fair == pytest.approx(0.1, abs=0.01)
    assert tenants["much"].share == tenants["much"].fair == pytest.approx(0.9, abs=0.01)
    assert tenants["much"].entitled == 0.5, "by weights alone"
    assert tenants["much"].standing == Standing.FLOODING, "it has 20 waiting before one slot"


def test_who_has_only_just_come_is_not_starved_yet_and_ten_seconds_later_it_is() -> None:
    run = Recording(Setup(policy="fcfs", wait_for_upstream=FAR))
    run.upstream(1)
    for _ in range(800):
        run.admit("crowd", COST)

    def pass_(steps: int) -> None:
        for _ in range(steps):
            run.now += STEP
            [running] = run.running()
            run.finish(running)

    pass_(600)
    run.admit("late", COST)
    pass_(5)
    assert views_of(folded(run))["late"].standing == Standing.NEW
    pass_(100)
    assert views_of(folded(run))["late"].standing == Standing.STARVED


def test_who_wanted_much_and_then_little_was_never_starved() -> None:
    """Under sfq: while `brief` had work waiting it got its half, and its requests waited longer than they ran. Over the
    whole minute it got less, for it asked for less."""
    run = Recording()
    run.upstream(2)
    for _ in range(300):
        run.admit("crowd", COST)
    for _ in range(40):
        run.admit("brief", COST)
    for _ in range(550):
        run.now += STEP
        [first, *_] = run.running()
        run.finish(first)
        run.admit("crowd", COST)
    tenants = views_of(folded(run))
    assert tenants["brief"].share is not None
    assert tenants["brief"].share < 0.1
    assert tenants["brief"].fair == pytest.approx(tenants["brief"].share, abs=0.01)
    assert tenants["brief"].standing == Standing.SERVED
    assert tenants["crowd"].standing == Standing.FLOODING


def test_a_pause_and_a_cap_are_named_before_anything_else() -> None:
    flows = [Flow(id="held", paused=True), Flow(id="capped", max_inflight=1)]
    run = Recording(Setup(flows=flows, wait_for_upstream=FAR))
    run.upstream(4)
    for _ in range(3):
        run.admit("held", COST)
        run.admit("capped", COST)
    run.now += STEP
    run.admit("free", COST)
    tenants = views_of(folded(run))
    assert tenants["held"].standing == Standing.PAUSED
    assert tenants["capped"].standing == Standing.CAPPED
    assert tenants["free"].standing == Standing.SERVED


def test_the_first_that_waits_is_named_with_its_wait() -> None:
    run = Recording()
    run.upstream(1)
    run.admit("a", COST)
    first = run.admit("a", COST)
    run.now += 3 * STEP
    run.admit("a", COST)
    [view] = views_of(folded(run)).values()
    assert (view.oldest_id, view.oldest) == (first, 0.3)


def test_the_bound_is_that_of_now() -> None:
    """q falls back when a busy period ends; the worst moment of the past keeps the larger one."""
    run = Recording()
    run.upstream(1)
    for cost in (100, 100, 7, 7):
        run.admit("a", cost)
    while run.running():
        run.now += STEP
        run.finish(run.running()[0])
    for _ in range(3):
        run.admit("a", 7)
    run.now += STEP
    run.finish(run.running()[0])
    pool = pool_view(Live(), "default", folded(run), 10)
    assert pool.reach == 7
    band = next(check for check in pool.bounds.checks if check.name == "band")
    assert band.limit == 100
    [tenant] = pool.tenants
    assert tenant.lead is not None
    assert tenant.lead <= pool.reach


def test_tokens_per_second_are_of_the_minute_that_was() -> None:
    run = Recording()
    run.upstream(1)
    for step in range(120):
        run.admit("a", COST)
        run.now += 1_000_000_000
        run.finish(run.running()[0], prompt=30, completion=20 if step < 60 else 40)
    minute = pool_view(Live(), "default", folded(run), 10).minute
    assert minute.completion == pytest.approx(40, rel=0.05)
    assert minute.prompt == pytest.approx(30, rel=0.05)
    assert 59 <= minute.seconds <= 60
