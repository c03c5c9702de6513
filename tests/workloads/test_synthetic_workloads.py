"""Every generator against the formula of what it says it makes; numpy's own generator for the published suites."""

from collections import Counter, defaultdict
from itertools import pairwise
from math import sqrt
from pathlib import Path
from random import Random
from statistics import fmean, pstdev

import numpy as np
import pytest

from fairq.core.errors import ConfigError
from fairq.traces import Request, Trace, describe
from fairq.traces.write import write
from fairq.workloads import NAMES, arrivals, make, parameters
from fairq.workloads.lengths import LENGTHS
from fairq.workloads.numpy_random import NumpyRandom
from fairq.workloads.prompts import Blocks
from fairq.workloads.vtc import suite

DATA = Path(__file__).parents[2] / "data"


def within_four_sigmas(count: float, expected: float) -> bool:
    """Of a Poisson count: its variance is its mean."""
    return abs(count - expected) <= 4 * sqrt(expected)


def test_poisson_gaps_vary_as_much_as_their_mean() -> None:
    times = arrivals.poisson(Random(1), 20, 500)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert within_four_sigmas(len(times), 10_000)
    assert fmean(gaps) == pytest.approx(1 / 20, rel=0.04)
    assert pstdev(gaps) / fmean(gaps) == pytest.approx(1, abs=0.04)
    assert max(times) < 500


@pytest.mark.parametrize(("start", "end"), [(1, 9), (9, 1), (0, 8), (5, 5)])
def test_a_ramp_brings_in_each_part_what_its_trapezium_holds(start: float, end: float) -> None:
    times = arrivals.ramp(Random(2), start, end, 1000)
    for part in range(4):
        low, high = 250 * part, 250 * (part + 1)
        middle = start + (end - start) * (low + high) / 2000
        assert within_four_sigmas(sum(low <= at < high for at in times), middle * 250)


@pytest.mark.parametrize("phase", [0, 3, 17])
def test_on_off_is_silent_in_every_pause(phase: float) -> None:
    times = arrivals.on_off(Random(3), 10, 10, 20, 3000, phase)
    assert all((at + phase) % 30 <= 10 for at in times)
    assert all(0 <= at < 3000 for at in times)
    assert within_four_sigmas(len(times), 10 * 10 / 30 * 3000)


def test_bursts_come_together() -> None:
    assert Counter(arrivals.bursts(3, 10, 25)) == {0: 3, 10: 3, 20: 3}


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_have_the_mean_that_was_asked_for(name: str) -> None:
    chance = Random(4)
    drawn = [LENGTHS[name](chance, 200) for _ in range(20_000)]
    error = pstdev(drawn) / sqrt(len(drawn))
    assert min(drawn) >= 1
    assert fmean(drawn) == pytest.approx(200, abs=5 * error + 1e-9)


def test_a_heavy_tail_holds_most_tokens_in_few_requests() -> None:
    """Of a Pareto law with exponent 1.5 the largest 20 % hold 0.2^(1/3) = 58 % of all; bounded at 64, 52 %."""
    sizes = sorted((one.output_tokens for one in make("heavy-tail:rate=20,duration=600", 1)), reverse=True)
    share = sum(sizes[: len(sizes) // 5]) / sum(sizes)
    # integral of the bounded quantile function over the top fifth
    tail = [(1 - (k + 0.5) / 10_000 * (1 - 64**-1.5)) ** (-2 / 3) for k in range(10_000)]
    assert share == pytest.approx(sum(tail[8_000:]) / sum(tail), abs=0.02)
    light = sorted((one.output_tokens for one in make("poisson:rate=20,duration=600", 1)), reverse=True)
    assert sum(light[: len(light) // 5]) / sum(light) == pytest.approx(0.2, abs=0.001)


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_names_a_workload(name: str) -> None:
    one, again = make(name, 7), make(name, 7)
    assert one.requests == again.requests
    assert name.startswith("vtc-") or make(name, 8).requests != one.requests or name in FIXED
    assert [request.arrival for request in one] == sorted(request.arrival for request in one)
    for place, request in enumerate(one):
        assert request.input_tokens >= 1
        assert request.output_tokens >= 1
        assert request.after is None or request.after < place


FIXED = {"tree-of-thoughts", "re-entry"}  # nothing in their defaults is left to chance


def test_each_client_of_a_closed_loop_has_one_request_at_a_time() -> None:
    requests = make("re-entry:clients=3,requests=5,think=2", 1).requests
    assert len(requests) == 15
    follows = [(requests[one.after].client, one.client) for one in requests if one.after is not None]
    assert len(follows) == 12
    assert all(before == behind for before, behind in follows)
    assert len({one.after for one in requests if one.after is not None}) == 12
    assert Counter(one.client for one in requests if one.after is None) == {"c0": 1, "c1": 1, "c2": 1}


def test_cancels_and_predictions_are_as_frequent_and_as_wrong_as_asked() -> None:
    requests = make("cancels:cancels=0.3,patience=4,rate=20,duration=500", 1).requests
    patience = [one.cancel for one in requests if one.cancel is not None]
    assert len(patience) / len(requests) == pytest.approx(0.3, abs=4 * sqrt(0.21 / len(requests)))
    assert fmean(patience) == pytest.approx(4, rel=4 / sqrt(len(patience)))
    wrong = make("mispredicted:error=0.5,output=1000,rate=20,duration=500", 1).requests
    ratios = [(one.predicted or 0) / one.output_tokens for one in wrong]
    assert 0.5 <= min(ratios) < 0.52
    assert 1.48 < max(ratios) <= 1.5
    assert fmean(ratios) == pytest.approx(1, abs=0.02)


def shared(one: Request, other: Request) -> int:
    return sum(1 for a, b in zip(one.blocks, other.blocks, strict=False) if a == b)


def test_a_clients_prompts_share_exactly_its_prefix() -> None:
    requests = make("shared-prefix:prefix=1000,clients=3", 1).requests
    for one, other in pairwise(requests):
        assert shared(one, other) == (1000 // 16 if one.client == other.client else 0)
    found = describe(requests)
    assert found is not None
    assert found.blocks is not None
    hits = found.blocks.total - found.blocks.unique
    assert hits == (len(requests) - 3) * (1000 // 16)  # all but the first of each client find the whole prefix


def test_a_turn_begins_with_all_that_was_said_before() -> None:
    requests = make("multi-turn:turns=4", 1).requests
    turns = [one for one in requests if one.after is not None]
    assert len(turns) * 4 == len(requests) * 3
    for one in turns:
        before = requests[one.after or 0]
        assert before.client == one.client
        assert one.input_tokens > before.input_tokens + before.output_tokens
        assert shared(before, one) == before.input_tokens // 16


@pytest.mark.parametrize(("branches", "thoughts"), [(2, 30), (4, 340)])
def test_a_tree_has_as_many_thoughts_as_the_paper_counts(branches: int, thoughts: int) -> None:
    requests = make(f"tree-of-thoughts:trees=1,clients=1,branches={branches}", 1).requests
    assert len(requests) == thoughts
    assert Counter(one.input_tokens for one in requests) == {546 + 256 * k: branches ** (k + 1) for k in range(4)}
    children = defaultdict(list)
    for one in requests:
        if one.after is not None:
            children[one.after].append(one)
    assert {len(below) for below in children.values()} == {branches}
    for above, below in children.items():
        assert all(one.blocks == below[0].blocks for one in below)
        assert shared(requests[above], below[0]) == requests[above].input_tokens // 16


def test_questions_share_their_document() -> None:
    requests = make("document-questions:documents=1,clients=2,document=4000", 1).requests
    for one, other in pairwise(requests):
        assert shared(one, other) == (4000 // 16 if one.client == other.client else 0)


def test_blocks_are_equal_exactly_as_long_as_the_text_is() -> None:
    blocks = Blocks(4)
    one = blocks.of((("a", 6), ("b", 3)))
    other = blocks.of((("a", 6), ("c", 3)))
    assert [a == b for a, b in zip(one, other, strict=True)] == [True, False, False]
    assert blocks.of((("a", 4), ("a", 2))) == blocks.of((("a", 4), ("a", 2)))
    assert blocks.of((("a", 6),))[0] == one[0]


# The published suites


@pytest.mark.parametrize("seed", [0, 42, 2**32 - 1])
def test_numpys_numbers_come_out_without_numpy(seed: int) -> None:
    theirs, ours = np.random.RandomState(seed), NumpyRandom(seed)
    assert [ours.rand() for _ in range(3)] == theirs.rand(3).tolist()
    assert ours.integers(16, 512, 900) == theirs.randint(16, 512, 900).tolist()
    assert ours.integers(5, 6, 4) == theirs.randint(5, 6, 4).tolist()
    assert [ours.exponential(0.4) for _ in range(9)] == pytest.approx(theirs.gamma(1, 0.4, 9).tolist(), rel=1e-15)


@pytest.mark.parametrize(("name", "duration"), [("FCFS", 600), ("VTC", 360), ("VTC_oracle", 360)])
def test_the_overload_suite_is_what_the_authors_sent(name: str, duration: float) -> None:
    sent = sorted((one.arrival, one.client) for one in Trace(DATA / "vtc" / f"{name}__overload.csv"))
    made = suite("overload", duration)
    assert len(made) == len(sent)
    for one, (at, client) in zip(made, sent, strict=True):
        assert one.client == client
        assert one.arrival == pytest.approx(at, abs=2e-6)


def test_suites_keep_their_rates_and_lengths() -> None:
    on_off = make("vtc-on_off_less").requests
    assert all(int(one.arrival // 60) % 2 == 0 for one in on_off if one.client == "0")
    assert Counter(one.client for one in on_off)["1"] == 1200
    swapped = make("vtc-poisson_short_long_2").requests
    assert {(one.client, one.input_tokens, one.output_tokens) for one in swapped} == {("0", 512, 32), ("1", 32, 512)}
    short = make("vtc-poisson_short_long").requests
    assert {(one.client, one.input_tokens, one.output_tokens) for one in short} == {("0", 64, 64), ("1", 256, 256)}
    share = sum(one.client == "0" for one in short) / len(short)
    assert share == pytest.approx(8 / 9.5, abs=4 * sqrt(0.158 * 0.842 / len(short)))
    ramp = [one.arrival for one in make("vtc-increase") if one.client == "1"]
    rates = [1 / (later - earlier) for earlier, later in pairwise(ramp)]
    assert rates == sorted(rates)
    assert 0.2 <= rates[0] < 0.22
    shift = Counter((int(min(one.arrival, 899.9) // 300), one.client) for one in make("vtc-dist_shift"))
    assert [shift[phase, "1"] for phase in range(3)] == pytest.approx([600, 300, 450], abs=2)
    assert [shift[phase, "0"] for phase in range(3)] == pytest.approx([90, 300, 150], abs=2)


# Asking for one, and keeping it


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("poison", "did you mean poisson"),
        ("poisson:rat=2", "did you mean rate"),
        ("poisson:rate=fast", r"poisson\.rate = 'fast': must be a number"),
        ("poisson:rate=0", "must be greater than 0"),
        ("poisson:rate=1e9", "about 60,000,000,000 requests; at most 2,000,000"),
        ("burst:size=1000000000", "at most 2,000,000"),
        ("re-entry:requests=1000000000", "at most 2,000,000"),
        ("multi-turn:turns=1000000000", "at most 2,000,000"),
        ("tree-of-thoughts:height=1000", "at most 2,000,000"),
        ("vtc-overload:duration=1e9", "at most 2,000,000"),
        ("poisson:rate=nan", "from 0 to 1e9"),
        ("poisson:clients=2.5", "must be a whole number"),
        ("poisson:cancels=2", "share from 0 to 1"),
        ("poisson:lengths=long", "known are fixed"),
        ("poisson:rate", "must be key=value"),
        ("vtc-overload:rate=2", "duration"),
    ],
)
def test_a_wrong_workload_is_named(spec: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(spec)


def test_every_workload_tells_its_parameters() -> None:
    for name in NAMES:
        for key, (kind, default) in parameters(name).items():
            assert default is None or isinstance(kind(default), kind), (name, key)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize("spec", ["multi-turn", "cancels", "mispredicted:error=0.2", "re-entry:think=1"])
def test_a_workload_can_be_written_and_read_as_a_trace(spec: str, suffix: str, tmp_path: Path) -> None:
    made = make(spec, 3)
    write(tmp_path / f"made{suffix}", made, made.block_tokens)
    read = Trace(tmp_path / f"made{suffix}")
    assert read.block_tokens == made.block_tokens
    assert list(read) == made.requests
