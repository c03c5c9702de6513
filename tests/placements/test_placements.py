"""Placements against their rules said plainly: Algorithm 2 of the D²LPM paper, and the longest match by comparing."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq.core.errors import ConfigError
from fairq.core.job import Generation
from fairq.core.placement import Upstream
from fairq.placements import BY_PREFIX, PLACEMENTS, make
from fairq.placements.d2lpm import D2LPM
from fairq.placements.holdings import Holdings
from fairq.placements.prefix_affinity import PrefixAffinity

NAMES = ("w0", "w1", "w2")


def job(client: str, prompt: int, output: int, prefix: tuple[int, ...] = ()) -> Generation:
    return Generation(id="x", flow=client, prompt=prompt, size=output, limit=output, prefix=prefix)


class Algorithm2:
    """As the paper writes it: budgets refilled in a loop, the shortest queue among the best."""

    def __init__(self, quantum: int) -> None:
        self.quantum = quantum
        self.q: Counter[tuple[str, str]] = Counter()
        self.queue: Counter[str] = Counter()
        self.sent: dict[str, list[tuple[int, ...]]] = {name: [] for name in NAMES}

    def match(self, prefix: tuple[int, ...], name: str) -> int:
        return max(
            (
                next(
                    (n for n, (a, b) in enumerate(zip(prefix, old, strict=False)) if a != b), min(len(prefix), len(old))
                )
                for old in self.sent[name]
            ),
            default=0,
        )

    def select(self, request: Generation) -> str:
        client = request.flow
        longest = max(self.match(request.prefix, name) for name in NAMES)
        best = [name for name in NAMES if self.match(request.prefix, name) == longest]
        available = [name for name in NAMES if self.q[client, name] > 0]
        while not available:
            for name in NAMES:
                self.q[client, name] += self.quantum
            available = [name for name in NAMES if self.q[client, name] > 0]
        both = [name for name in best if name in available]
        chosen = min(both or available, key=lambda name: self.queue[name])
        self.q[client, chosen] -= request.prompt
        self.queue[chosen] += 1
        self.sent[chosen].append(request.prefix)
        return chosen

    def finish(self, request: Generation, name: str) -> None:
        self.q[request.flow, name] -= 2 * (request.size or 0)
        self.queue[name] -= 1


PROMPTS = st.lists(st.integers(0, 1), max_size=4).map(
    lambda bits: tuple(int("1" + "".join(map(str, bits[: n + 1]))) for n in range(len(bits)))
)
MOVES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("ab"), st.integers(1, 30), st.integers(0, 20), PROMPTS),
        st.integers(0, 9),
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(MOVES, st.integers(1, 40))
def test_d2lpm_chooses_as_the_papers_algorithm_does(moves: list[object], quantum: int) -> None:
    ours, theirs = D2LPM(quantum=quantum), Algorithm2(quantum)
    workers = [Upstream(name, 10**6) for name in NAMES]
    running: list[tuple[Generation, Upstream]] = []
    for move in moves:
        if isinstance(move, tuple):
            request = job(*move)
            chosen = ours.choose(request, workers)
            assert ours.choose(request, workers) is chosen  # pure
            assert chosen.name == theirs.select(request)
            ours.dispatched(request, chosen)
            chosen.inflight += 1
            running.append((request, chosen))
        elif running and isinstance(move, int):
            request, worker = running.pop(move % len(running))
            worker.inflight -= 1
            ours.finished(request, worker)
            theirs.finish(request, worker.name)
        for client in "ab":
            for name in NAMES:
                assert ours.budget(client, name) == theirs.q[client, name]


def spread(quantum: int) -> Counter[str]:
    """Where 60 requests of one client go whose prompts all begin with the same document."""
    placement, workers = D2LPM(quantum=quantum), [Upstream(name, 10**6) for name in NAMES]
    sent = Counter[str]()
    for _ in range(60):
        request = job("a", 1_000, 10, (1, 2, 3))
        chosen = placement.choose(request, workers)
        placement.dispatched(request, chosen)
        chosen.inflight += 1
        sent[chosen.name] += 1
    return sent


def test_without_a_quantum_one_clients_document_pins_one_worker() -> None:
    """Theorem A.5: an infinite quantum is not fair. With one, no worker is more than about a quantum ahead."""
    assert spread(0) == {"w0": 60}
    shared = spread(5_000)
    assert set(shared) == set(NAMES)
    assert max(shared.values()) - min(shared.values()) <= 5 + 1


def test_the_longest_match_wins_until_the_queue_is_too_long() -> None:
    placement, workers = PrefixAffinity(imbalance=3), [Upstream(name, 10**6) for name in NAMES]
    placement.dispatched(job("a", 48, 1, (1, 12, 123)), workers[1])
    placement.dispatched(job("a", 32, 1, (1, 12)), workers[2])
    assert placement.choose(job("b", 64, 1, (1, 12, 123, 1234)), workers).name == "w1"
    assert placement.choose(job("b", 32, 1, (1, 12)), workers).name == "w1"  # as much as w2 has: the earlier name
    assert placement.choose(job("b", 32, 1, (7,)), workers).name == "w0"  # nobody has it: the least loaded
    workers[1].inflight = 3
    assert placement.choose(job("b", 64, 1, (1, 12, 123)), workers).name == "w2"


def test_what_was_sent_longest_ago_is_forgotten_from_its_end() -> None:
    holdings = Holdings(3)
    holdings.send((1, 12, 123), "w0")
    holdings.send((4,), "w0")
    assert holdings.longest((1, 12, 123), ["w0"]) == (2, ["w0"])
    holdings.send((4, 45), "w0")
    assert holdings.longest((1, 12), ["w0"]) == (1, ["w0"])
    assert holdings.longest((4, 45), ["w0"]) == (2, ["w0"])
    assert holdings.longest((4, 45), ["w1"]) == (0, ["w1"])


def test_a_gateway_is_told_that_it_does_not_know_prefixes() -> None:
    for name in BY_PREFIX:
        with pytest.raises(ConfigError, match="needs the prompts' prefix blocks"):
            make(name)
        assert make(name, prefix=True).name == name
    for name in PLACEMENTS:
        assert make(name).name == name


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("least-load", "did you mean least-loaded"),
        ("least-loaded:x=1", "unknown"),
        ("d2lpm:quantum=-1", "at least 0"),
        ("d2lpm:quantum", "must be NAME or NAME:key=value"),
    ],
)
def test_a_wrong_placement_is_told(spec: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(spec, prefix=True)
