"""Whose request is next (C): shares by size, weight and history, exactly. Each test fails under unfair policies."""

import json
from collections import Counter
from collections.abc import Callable
from itertools import groupby

import pytest
from tests.bad.order import GreedyReverse, Starving
from tests.bad.sfq import BanksIdleCredit, ForgetsWeights
from tests.gateway.harness import World, run, world
from tests.gateway.slots import TOKENS, asks, backlogged, told

from fairq import policies
from fairq.core.commands import Dispatch
from fairq.core.errors import FairqError
from fairq.core.events import Admitted
from fairq.core.lifecycle import Outcome
from fairq.core.policy import Policy
from fairq.form import form
from fairq.gateway.admission import Admission
from fairq.gateway.config import parse

UNFAIR: dict[str, type[Policy]] = {
    "greedy-reverse": GreedyReverse,
    "starving": Starving,
    "banks-idle-credit": BanksIdleCredit,
    "forgets-weights": ForgetsWeights,
}

BREAKS = pytest.mark.skipif(form() == "compiled", reason="a compiled class cannot be broken for a test")


@pytest.fixture(autouse=True)
def unfair_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, policy in UNFAIR.items():
        monkeypatch.setitem(policies.POLICIES, name, policy)


def under(*unfair: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test under sfq, where it must hold, and under these, where it must not."""
    return pytest.mark.parametrize(("policy", "fair"), [("sfq", True), *((name, False) for name in unfair)])


@under("fcfs", "request-rr", "starving", "greedy-reverse")
@run
async def test_large_requests_do_not_make_a_large_share(policy: str, fair: bool) -> None:
    """C-2: A's requests cost thirty times B's. Turns by request would give A thirty times the tokens."""
    large, small = asks(500, 8000, max_tokens=500), asks(50, 200, max_tokens=50)
    large["messages"][0]["content"] += " x" * 3900  # fairq sees bytes before it knows tokens
    config = "cost: {alpha: 1, beta: 2, default_output: 50, bytes_per_token: 1}"
    asked = [("A", large)] * 5 + [("B", small)] * 90
    async with backlogged(asked, config, slots=2, policy=policy) as engine:
        await engine.run(60)
        found = told(engine.w)
        assert found.fair == fair
        assert (abs(found.charged["A"] - found.charged["B"]) <= 2 * found.largest) == fair


def passed_over(w: World, id_: str) -> list[str]:
    """Tenants that were dispatched between the arrival of a request and its own dispatch."""
    lines = w.lines.all
    came = next(n for n, line in enumerate(lines) if isinstance(line, Admitted) and line.request.id == id_)
    passed = []
    for line in lines[came:]:
        if isinstance(line, Dispatch):
            if line.id == id_:
                break
            passed.append(line.tenant)
    return passed


@under("fcfs", "greedy-reverse")
@run
async def test_a_script_does_not_hold_up_a_human(policy: str, fair: bool) -> None:
    """C-1: two hundred wait. Whoever comes now and then is the next to go, every time."""
    async with backlogged([("script", asks(100))] * 200, policy=policy) as engine:
        visits = []
        for _ in range(5):
            await engine.run(3)
            visits += await engine.send([("human", asks(100))])
        await engine.run()
        assert all(passed_over(engine.w, id_) == [] for id_ in visits) == fair


@under("fcfs", "request-rr")
@run
async def test_a_long_prompt_does_not_block_short_ones(policy: str, fair: bool) -> None:
    """C-3: two slots, prompts of 128k tokens, a hundred short requests. One slot at most is lost to the long ones, so
    that the n-th short one waits for n others and no longer."""
    long = asks(128_000, 128_000, max_tokens=1)  # as many ticks as tokens are read
    long["messages"][0]["content"] += " " + "x" * 128_000
    config = "cost: {alpha: 1, beta: 2, default_output: 100, bytes_per_token: 1}"
    asked = [("A", long)] * 3 + [("B", asks(100))] * 100
    async with backlogged(asked, config, slots=2, policy=policy) as engine:
        await engine.run()
        waits = [engine.started[line.id] - 1 for line in engine.w.dispatched if line.tenant == "B"]
        assert len(waits) == 100
        assert all(wait <= 100 * n for n, wait in enumerate(waits)) == fair


def longest_run(order: list[str]) -> int:
    """How often one tenant went in a row, at most."""
    return max(len(list(run_)) for _, run_ in groupby(order))


@under("banks-idle-credit", "fcfs")
@run
async def test_who_comes_back_gets_its_share_and_no_burst(policy: str, fair: bool) -> None:
    """C-4: B was here, was silent while A worked for long, and brings forty at once."""
    async with backlogged([("B", asks(100))] + [("A", asks(100))] * 80, policy=policy) as engine:
        await engine.run(40)
        back = len(engine.w.lines.all)
        await engine.send([("B", asks(100))] * 40)
        await engine.run(60)
        found = told(engine.w, since=back)
        assert found.fair == fair
        assert (longest_run(found.order) == 1) == fair


@under("banks-idle-credit", "greedy-reverse")
@run
async def test_who_worked_alone_is_not_punished_for_it(policy: str, fair: bool) -> None:
    """C-5: nobody else wanted the machine. When somebody does, they share from then on; the past counts for neither."""
    async with backlogged([("A", asks(100))] * 80, slots=2, policy=policy) as engine:
        await engine.run(40)
        joined = len(engine.w.lines.all)
        await engine.send([("B", asks(100))] * 40)
        await engine.run(60)
        found = told(engine.w, since=joined)
        assert (abs(found.charged["A"] - found.charged["B"]) <= 100) == fair
        assert found.fair == fair


@under("fcfs", "request-rr", "forgets-weights")
@run
async def test_many_small_ones_and_few_large_ones_share_by_weight(policy: str, fair: bool) -> None:
    """C-11: A of weight 1 sends ten tokens at a time, B of weight 4 four hundred."""
    small, large = asks(10, max_tokens=10), asks(400, max_tokens=400)
    config = TOKENS + "tenants: [{id: A, weight: 1}, {id: B, weight: 4}]"
    asked = [("A", small)] * 90 + [("B", large), ("A", small)] * 14
    async with backlogged(asked, config, slots=2, policy=policy) as engine:
        await engine.run(70)
        found = told(engine.w, {"B": 4})
        assert found.fair == fair
        assert (abs(found.charged["B"] - 4 * found.charged["A"]) <= 4 * 2 * 100) == fair


@pytest.mark.parametrize("weight", ["0", "-1", "0/3", ".nan", ".inf", "heavy"])
@run
async def test_a_weight_is_positive(weight: str) -> None:
    """C-11: where it is configured and where it is changed."""
    with pytest.raises(FairqError, match="weight"):
        parse(f"tenants: [{{id: a, weight: {weight}}}]")
    async with world() as w:
        with pytest.raises(FairqError, match="weight"):
            w.gateway.set_weight("a", weight)


@under("fcfs", "forgets-weights")
@run
async def test_a_new_weight_holds_from_then_on_and_moves_nobody(policy: str, fair: bool) -> None:
    """C-11, live: equal at first, three to one afterwards; each tenant's own order stays as it was."""
    async with backlogged([("A", asks(100)), ("B", asks(100))] * 60, policy=policy) as engine:
        w = engine.w
        await engine.run(20)
        assert told(w).fair
        w.gateway.set_weight("A", 3)
        changed = len(w.lines.all)
        await engine.run(60)
        found = told(w, {"A": 3}, since=changed)
        assert found.fair == fair
        assert (abs(found.order.count("A") - 45) <= 2) == fair
        for tenant in "AB":
            came = [line.request.id for line in w.of(Admitted) if line.request.flow == tenant]
            went = [line.id for line in w.dispatched if line.tenant == tenant]
            assert went == came[: len(went)]


@pytest.mark.parametrize("full", ["requests", "bytes"])
@pytest.mark.parametrize("indiscriminate", [False, pytest.param(True, marks=BREAKS)])
@run
async def test_a_queue_that_one_tenant_filled_lets_the_others_in(
    monkeypatch: pytest.MonkeyPatch, full: str, indiscriminate: bool
) -> None:
    """C-12: A's newest give way, one for each of B's, until both hold alike; then nobody's do."""
    if indiscriminate:
        monkeypatch.setattr(Admission, "_heaviest", staticmethod(lambda ranking: None))
    size = len(json.dumps(asks(100)).encode())
    bounds = "requests: 10" if full == "requests" else f"bytes: {10 * size}, requests: 1000"
    async with backlogged([("A", asks(100))] * 10, TOKENS + f"queue: {{{bounds}}}") as engine:
        w = engine.w
        await engine.send([("B", asks(100))] * 7)
        waiting = Counter(job.request.flow for job in w.pool.scheduler.jobs.values() if job.state == "waiting")
        evicted = [record for record in w.ended if record.outcome == Outcome.REFUSED_QUEUE_FULL]
        assert (waiting == {"A": 5, "B": 5}) != indiscriminate
        if not indiscriminate:
            newest = [line.request.id for line in w.of(Admitted) if line.request.flow == "A"][:5:-1]
            assert [record.id for record in evicted] == newest
            assert {(record.tenant, record.charge) for record in evicted} == {("A", 0)}
            assert [record.tenant for record in w.refused] == ["B", "B"]
        replies = await engine.over()
        assert Counter(reply.status for reply in replies) == {200: 12, 429: 6}
