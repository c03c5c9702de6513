"""DLPM: the bounds of its theorems on random runs, its quantum from nothing to infinity, and its loop that must end."""

import random
from fractions import Fraction
from itertools import combinations
from statistics import mean

import pytest
from msgspec.structs import replace
from tests.sim.engines import both, engine

from fairq.core.job import Generation, Job
from fairq.policies import make
from fairq.policies.dlpm import DLPM
from fairq.sim.engine.batch import Batch
from fairq.sim.engine.call import Call
from fairq.sim.engine.cost import Cost, Limits
from fairq.sim.engine.jumping import Jumping
from fairq.sim.engine.run import bind
from fairq.sim.engine.stepping import Stepping

BLOCK = 16
CLIENTS = "ABCD"
POOL = 60 * BLOCK
ROOM = Limits(
    pool_tokens=POOL,
    block_tokens=BLOCK,
    max_sequences=12,
    step_tokens=128,
    reserve="limit",
    prefix_cache=True,
    prefix_tokens=BLOCK,
)
COST = Cost(1_000_000, 50_000, 20_000, 10)


def documents(seed: int, requests: int = 150, clients: str = CLIENTS, longest: int = 12) -> list[Call]:
    """Each client asks about a few documents of its own, again and again, all at once; A's are the longest."""
    rng = random.Random(seed)
    calls = []
    for number in range(requests):
        client = clients[rng.randrange(len(clients))]
        length = longest if client == "A" else longest // 2
        document = rng.randrange(8)
        prefix = tuple(hash((client, document, depth)) for depth in range(length))
        output = rng.randrange(4, 20)
        job = Generation(
            id=str(number),
            flow=client,
            seq=number,
            arrival=number * 100_000,
            size=output,
            prompt=length * BLOCK + rng.randrange(1, BLOCK),
            limit=output,
            prefix=prefix,
        )
        calls.append(Call(job))
    return calls


def serve(policy: str, calls: list[Call], kind: type[Batch] = Jumping, limits: Limits = ROOM) -> Batch:
    one = kind(made := make(policy), limits, COST)
    bind(made, one, {client: Fraction(1) for client in CLIENTS}, 0)
    one.add(calls)
    one.run()
    return one


def hits(calls: list[Call]) -> float:
    return sum(call.cached for call in calls) / sum(call.prompt for call in calls)


def service(calls: list[Call]) -> dict[str, int]:
    """w_e * extend tokens + w_q * output tokens that were really given."""
    given = dict.fromkeys(CLIENTS, 0)
    for call in calls:
        if call.admitted is not None:
            given[call.job.flow] += call.prompt - call.cached + 2 * call.produced
    return given


def widest(policy: str, calls: list[Call]) -> int:
    """The largest difference of true service between two clients while both have requests waiting."""
    one = Stepping(made := make(policy), ROOM, COST)
    bind(made, one, {client: Fraction(1) for client in CLIENTS}, 0)
    pairs: dict[tuple[str, str], tuple[int, int]] = {}
    worst = 0

    def look() -> None:
        nonlocal pairs, worst
        given, waiting, still = service(calls), set(made.backlogged()), {}
        for f, g in combinations(sorted(waiting), 2):
            apart = given[f] - given[g]
            least, most = pairs.get((f, g), (apart, apart))
            still[f, g] = least, most = min(least, apart), max(most, apart)
            worst = max(worst, most - least)
        pairs = still

    one.watch = look
    one.add(calls)
    one.run()
    return worst


@pytest.mark.parametrize("quantum", [1, 50, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_service_of_clients_that_wait_is_within_2_u_and_quantum(quantum: int, seed: int) -> None:
    """Theorem 4.1, U = w_e * longest input + w_q * M."""
    calls = documents(seed)
    u = max(call.prompt for call in calls) + 2 * POOL
    assert widest(f"dlpm:quantum={quantum}", calls) <= 2 * (u + quantum)


def test_a_run_watches_the_bound_and_knows_its_assumptions() -> None:
    requests = [{"client": name, "prompt": 8, "output": 12, "count": 20} for name in "AB"]
    keys = {"pool_tokens": 100, "reserve": "limit"}
    bound, behind, *_ = engine(requests, "dlpm:quantum=50", **keys).bounds
    assert behind.holds
    assert behind.limit == bound.limit == 2 * (8 + 2 * 100 + 50)
    assert bound.holds
    assert bound.worst is not None
    assert 0 < bound.worst <= bound.limit
    unknown, *_ = engine(requests, "dlpm:quantum=50", **keys | {"reserve": "prompt", "pool_tokens": 50}).bounds
    assert (unknown.holds, unknown.unless) == (None, "requests were preempted")


@pytest.mark.parametrize("seed", range(3))
def test_quotas_stay_between_minus_u_and_the_quantum(seed: int) -> None:
    """Lemma A.1, at every event of a run."""
    calls, quantum = documents(seed), 300
    u = max(call.prompt for call in calls) + 2 * POOL
    policy = DLPM(quantum=quantum)
    one = Stepping(policy, ROOM, COST)
    bind(policy, one, {client: Fraction(1) for client in CLIENTS}, 0)
    seen: list[int] = []
    one.watch = lambda: seen.extend(policy.show()["quota"].values())
    one.add(calls)
    one.run()
    assert -u < min(seen)
    assert max(seen) <= quantum


def test_hits_grow_from_vtc_to_dlpm_to_lpm() -> None:
    found = {
        policy: mean(hits(self_served(policy, seed)) for seed in range(5))
        for policy in ("vtc", "dlpm:quantum=1000", "lpm:fallback=0")
    }
    vtc, dlpm, lpm = found.values()
    assert vtc < dlpm <= lpm


def self_served(policy: str, seed: int) -> list[Call]:
    calls = documents(seed)
    serve(policy, calls)
    return calls


def test_with_a_growing_quantum_hits_and_throughput_do_not_fall_and_the_gap_does_not_shrink() -> None:
    hit, makespan, gap = [], [], []
    for quantum in (1, 300, 3000, 30000):  # from less than a request's service to more than a client's whole
        policy = f"dlpm:quantum={quantum}"
        runs = [self_served(policy, seed) for seed in range(5)]
        hit.append(mean(map(hits, runs)))
        makespan.append(mean(max(call.finish or 0 for call in run) for run in runs))
        gap.append(mean(widest(policy, documents(seed)) for seed in range(5)))
    assert hit == sorted(hit)
    assert makespan == sorted(makespan, reverse=True)
    assert gap == sorted(gap)


def test_an_infinite_quantum_is_longest_prefix_match() -> None:
    for seed in range(3):
        one, other = documents(seed), documents(seed)
        serve(f"dlpm:quantum={10**9}", one)
        # With room for all of it nobody is ever passed over, which is the one other difference between the two.
        serve("lpm:fallback=0", other)
        assert hits(one) == pytest.approx(hits(other), abs=0.02)


def test_one_client_alone_is_served_as_by_longest_prefix_match_while_it_has_quota() -> None:
    one, other = documents(1, clients="B"), documents(1, clients="B")
    serve(f"dlpm:quantum={10**9}", one, limits=ROOM)
    serve("lpm:fallback=0", other, limits=ROOM)
    assert [call.finish for call in one] == [call.finish for call in other]


def test_a_pass_that_admits_nobody_ends() -> None:
    """The paper's inner loop has no way out when nothing fits though a client has quota; here time goes on."""
    calls = documents(0, requests=40, clients="AB")
    one = serve("dlpm:quantum=100000", calls, limits=Limits(**{**_fields(ROOM), "pool_tokens": 15 * BLOCK}))
    assert all(call.reason == "stop" for call in calls)
    assert one.iterations > 40


def _fields(limits: Limits) -> dict[str, object]:
    return {name: getattr(limits, name) for name in Limits.__struct_fields__}


@pytest.mark.parametrize("head", ["stop", "skip"])  # it tries all that wait anyhow, so nothing is skipped on top
def test_a_used_up_quota_is_refilled_between_events(head: str) -> None:
    """A has quota and runs, B waits and has none: as soon as A's is used up by tokens, both get a quantum and B's short
    request is admitted, though no request has ended."""
    limits = Limits(pool_tokens=10 * BLOCK, block_tokens=BLOCK, max_sequences=4, step_tokens=128, reserve="limit")
    limits = replace(limits, head=head)
    shapes = [("A", 16, 100), ("B", 16, 8), ("A", 100, 50), ("B", 8, 8)]
    for kind in (Stepping, Jumping):
        calls = [
            Call(Generation(id=str(i), flow=flow, seq=i, arrival=i, size=out, prompt=prompt, limit=out))
            for i, (flow, prompt, out) in enumerate(shapes)
        ]
        serve("dlpm:quantum=60", calls, kind, limits)
        assert calls[3].admitted is not None
        assert calls[0].finish is not None
        assert calls[3].admitted < calls[0].finish


@pytest.mark.parametrize("policy", ["dlpm", "lpm"])
def test_who_does_not_fit_is_not_asked_at_every_iteration(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """LightLLM's rule leaves room long before it is needed. With everybody alike and 60 waiting, one question per event
    is enough: an engine that goes by single iterations asks for all who wait more than a thousand times each."""
    asked = 0
    fits = Jumping.fits

    def counted(self: Jumping, job: Job) -> bool:
        nonlocal asked
        asked += 1
        return fits(self, job)

    monkeypatch.setattr(Jumping, "fits", counted)
    keys = {"pool_tokens": 1200, "reserve": "peak", "prefill": "first", "admit_every": 10, "step_tokens": 600}
    requests = [{"client": client, "prompt": 100, "output": 200, "count": 30} for client in "AB"]
    step, jump = both(requests, policy, **keys)
    assert jump.digest == step.digest
    assert jump.engine.iterations > 3000
    assert asked < 10 * len(requests) * 30
