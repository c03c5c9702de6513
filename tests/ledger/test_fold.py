"""The live state folded from lines, against the scheduler that wrote them."""

from pathlib import Path

import pytest
from tests.ledger.recording import FAR, Recording, router_example
from tests.ledger.traffic import Traffic, setup

from fairq.core import events as ev
from fairq.core.cost import Source, Usage
from fairq.core.lifecycle import Outcome, State
from fairq.core.lines import encode
from fairq.core.setup import Setup
from fairq.ledger.fold import Fold
from fairq.ledger.histogram import Histogram
from fairq.ledger.segment import decode

UNIT = 1 << 20


def folded(run: Recording, fold: Fold | None = None) -> Fold:
    fold = fold or Fold()
    for line in (encode(run.head), *run.lines):
        fold.feed(decode(line))
    return fold


@pytest.mark.parametrize("seed", range(6))
def test_the_fold_knows_what_the_scheduler_knows(seed: int) -> None:
    """After every event: who lives in which state, who is backlogged, every slot and every meter."""
    traffic = Traffic(seed, setup("sfq", "forward"))
    fold = folded(traffic)
    for _ in range(300):
        known = len(traffic.lines)
        traffic.step()
        for line in traffic.lines[known:]:
            fold.feed(decode(line))
        scheduler, world = traffic.scheduler, fold.world
        states = {id_: entry.state for id_, entry in scheduler.jobs.items()}
        assert {id_: living.state for id_, living in world.living.items()} == states
        assert world.tenants.keys() == scheduler.tenants.all.keys()
        for name, tenant in scheduler.tenants.all.items():
            mine = world.tenants[name]
            assert (len(mine.queue), mine.inflight, mine.open) == (tenant.waiting, tenant.inflight, tenant.open)
            assert mine.weight == tenant.flow.weight
        assert world.free == sum(max(upstream.free, 0) for upstream in scheduler.upstreams.values())
        assert {n: u.inflight for n, u in world.upstreams.items()} == {
            n: u.inflight for n, u in scheduler.upstreams.items()
        }
        shown = scheduler.policy.show()
        leads = {name: (shown["meters"][name] - shown["virtual_time"]) / UNIT for name in scheduler.policy.backlogged()}
        assert fold.meters() == leads
    inflight = {(t, u): n for t, totals in fold.tenants.items() for u, n in totals.inflight.items() if n}
    running = [e for e in traffic.scheduler.jobs.values() if e.state is State.RUNNING]
    assert sum(inflight.values()) == len(running)
    assert all(inflight[e.request.flow, e.upstream] for e in running)


def test_the_articles_example_in_numbers() -> None:
    fold = folded(router_example())
    assert {name: totals.charged for name, totals in fold.tenants.items()} == {"A": 24, "B": 14, "C": 16}
    assert [decision.tenant for decision in fold.decisions] == list("ABBCBBCABBCBCA")
    assert [record.tenant for record in fold.ended_requests] == list("ABBCBBCABBCBCA")
    assert fold.virtual_time == 24  # of the article's lab, after the reset
    assert fold.meters() == {}
    assert all(not any(totals.inflight.values()) for totals in fold.tenants.values())
    assert fold.total().outcomes == {"completed": 14}
    assert fold.audit.report().ok


def test_tokens_times_and_outcomes_of_a_tenant() -> None:
    run = Recording(Setup(wait_for_upstream=FAR))
    run.admit("T", input_bytes=400)
    run.now = 30_000_000
    run.upstream(1)
    run.now = 2_030_000_000
    usage = Usage(100, 11, 40, Source.UPSTREAM)
    done = {"outcome": Outcome.COMPLETED, "usage": usage, "status": 200, "finish": "stop"}
    run.emit(ev.Finished, id="T1", **done, first_byte=1_030_000_000, last_byte=2_030_000_000)
    run.emit(ev.Refused, id="x", tenant="T", outcome=Outcome.REFUSED_RATE_LIMIT, status=429)
    totals = folded(run).tenants["T"]
    assert (totals.prompt, totals.cached, totals.completion) == (100, 40, 11)
    assert totals.outcomes == {"completed": 1, "refused-rate-limit": 1}
    assert (totals.wait.total, totals.wait.count) == (30_000_000, 1)
    assert (totals.ttft.total, totals.first_byte.total) == (1_030_000_000, 1_000_000_000)
    assert totals.tpot.total == 100_000_000  # a second over ten gaps
    assert totals.wait.quantile(0.5) == 50_000_000  # the bucket of 25..50 ms
    estimate = run.scheduler.estimator  # alpha 1, beta 2: 100 + 22
    assert totals.actual == 122
    assert totals.ratio.total == 122 / totals.charged
    assert estimate.model.beta == 2
    assert totals.queued_bytes == 0


def test_made_up_tenants_cost_nothing_and_lose_nothing() -> None:
    run = Recording(Setup(wait_for_upstream=FAR))
    run.upstream(1)
    for number in range(500):
        name = f"t{number}"
        id_ = run.admit(name, 2)
        run.finish(id_)
    run.admit("stays", 1)
    fold = folded(run, Fold(tenants=10))
    assert len(fold.tenants) == 10
    assert fold.total().charged == 500 * 2 + 1
    assert fold.other.outcomes == {"completed": 491}
    assert fold.tenants["stays"].inflight == {"u": 1}
    assert len(fold.world.tenants) == 1


def test_rings_are_bounded() -> None:
    run = Recording(Setup(wait_for_upstream=FAR))
    run.upstream(1)
    for _ in range(1500):
        run.finish(run.admit("T", 1))
    fold = folded(run)
    assert (len(fold.decisions), len(fold.ended_requests)) == (256, 1024)
    assert fold.lines == 1 + 1 + 1500 * 4


def test_a_new_process_starts_with_nothing_in_flight() -> None:
    run = Recording(Setup(wait_for_upstream=FAR))
    run.upstream(1)
    run.admit("T", 1, input_bytes=5)
    run.admit("T", 1, input_bytes=7)
    fold = folded(run)
    assert fold.tenants["T"].inflight == {"u": 1}
    assert fold.tenants["T"].queued_bytes == 7
    folded(Recording(), fold)
    assert not any(fold.tenants["T"].inflight.values())
    assert fold.tenants["T"].queued_bytes == 0
    assert fold.tenants["T"].charged == 1  # counters never fall
    assert fold.audit.cut_off == 2


def test_a_histogram_says_the_bucket_of_a_quantile() -> None:
    histogram = Histogram((1, 2, 5))
    for value in (0.5, 1, 1.5, 2, 9):
        histogram.add(value)
    assert histogram.counts == [2, 2, 0, 1]
    assert [histogram.quantile(share) for share in (0.4, 0.5, 0.8, 1)] == [1, 2, 2, 5]
    assert Histogram((1,)).quantile(0.5) is None


def test_reading_a_ledger_and_folding_it_are_the_same(tmp_path: Path) -> None:
    from fairq.ledger.reader import Reader

    run = router_example()
    fold = Fold()
    for line in Reader(run.save(tmp_path / "pool")):
        fold.feed(line.value)
    assert fold.total().charged == folded(run).total().charged == 54
