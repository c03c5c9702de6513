"""Continuous batching: hand-computed timelines, and what must hold in every run."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fairq.core.errors import ConfigError
from fairq.core.job import Generation
from fairq.engines.batching import Engine, Sequence
from fairq.engines.model import PRESETS, EngineModel
from fairq.policies import make
from fairq.sim.engine.call import Call
from fairq.sim.engine.cost import Cost, Limits
from fairq.sim.engine.run import bind
from fairq.sim.engine.stepping import Stepping

UNIT = Cost(a=1000, b=100, c=10, d=1)


def model(**limits: int) -> EngineModel:
    defaults = {
        "max_sequences": 4,
        "pool_tokens": 160,
        "block_tokens": 16,
        "step_tokens": 8,
        "context_length": 64,
    }
    return EngineModel(UNIT, **(defaults | limits))


def run(engine: Engine) -> list[tuple[int, list[Sequence]]]:
    """Step until idle: (moment, who got a token)."""
    now = 0
    log = []
    while (took := engine.begin()) is not None:
        now += took
        log.append((now, engine.finish()))
    return log


def test_a_lone_sequence_follows_the_step_formula() -> None:
    engine = Engine(model())
    alone = Sequence(prompt=10, output=3)
    engine.arrive(alone)
    # Budget 8: prefill 8, then the last 2 (first token), then two decodes over contexts of 11 and 12.
    moments = [1000 + 800, 1000 + 200, 1000 + 10 + 11, 1000 + 10 + 12]
    log = run(engine)
    assert [now for now, _ in log] == [sum(moments[: n + 1]) for n in range(4)]
    assert [len(tokens) for _, tokens in log] == [0, 1, 1, 1]
    assert engine.free_blocks == 10


def test_two_sequences_share_a_step_and_decode_comes_before_prefill() -> None:
    engine = Engine(model())
    first, second = Sequence(prompt=4, output=4), Sequence(prompt=9, output=1)
    engine.arrive(first)
    engine.arrive(second)
    # step 1: first's 4 + 4 of second; step 2: decode first, second's last 5 of a budget of 7;
    # second leaves with its only token; then first decodes alone.
    log = run(engine)
    assert [tokens for _, tokens in log] == [[first], [first, second], [first], [first]]
    moments = [1000 + 800, 1000 + 500 + 10 + 5, 1000 + 10 + 6, 1000 + 10 + 7]
    assert [now for now, _ in log] == [sum(moments[: n + 1]) for n in range(4)]


def test_the_calibrated_preset_decodes_as_published() -> None:
    step = PRESETS["a10g-llama2-7b"].step
    # 28 ms + 0.2 ms per sequence + 1.2 us per context token; 0.22 ms per prompt token
    assert step.duration(0, 20, 5_000) == 28_000_000 + 4_000_000 + 6_000_000
    assert step.duration(100, 0, 0) == 28_000_000 + 22_000_000


def test_a_cached_prefix_is_not_prefilled_again() -> None:
    engine = Engine(model())
    engine.arrive(Sequence(prompt=40, output=1, cached=32))
    assert run(engine)[0][0] == 1000 + 800


def test_a_head_that_does_not_fit_is_not_overtaken() -> None:
    engine = Engine(model(pool_tokens=96, step_tokens=64))
    large, head, small = Sequence(30, 10), Sequence(40, 20), Sequence(1, 1)
    for sequence in (large, head, small):
        engine.arrive(sequence)
    engine.begin()
    assert list(engine.running) == [large]
    assert list(engine.waiting) == [head, small]
    engine.finish()
    engine.cancel(large)
    engine.begin()
    assert list(engine.running) == [head, small]


def test_cancelling_frees_the_blocks_at_once_even_inside_a_step() -> None:
    engine = Engine(model())
    gone, stays = Sequence(4, 9), Sequence(4, 9)
    engine.arrive(gone)
    engine.arrive(stays)
    engine.begin()
    assert engine.free_blocks == 8
    engine.cancel(gone)
    engine.cancel(gone)
    assert engine.free_blocks == 9
    assert engine.finish() == [stays]
    assert engine.kv_usage == pytest.approx(0.1)


def test_what_never_fits_is_refused_at_arrival() -> None:
    engine = Engine(model())
    with pytest.raises(ValueError, match="context length is 64"):
        engine.arrive(Sequence(60, 5))
    with pytest.raises(ValueError, match="1 <= output"):
        engine.arrive(Sequence(1, 0))
    assert engine.begin() is None


@pytest.mark.parametrize(
    ("limits", "key"),
    [
        ({"max_sequences": 0}, "max_sequences"),
        ({"step_tokens": 3}, "max_sequences"),
        ({"context_length": 200}, "context_length"),
    ],
)
def test_impossible_models_name_the_key(limits: dict[str, int], key: str) -> None:
    with pytest.raises(ConfigError, match=f"engine.{key} = "):
        model(**limits)


sizes = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 24)), min_size=1, max_size=40)


@given(sizes, st.integers(1, 6), st.integers(6, 64))
@settings(max_examples=100, deadline=None)
def test_first_tokens_come_in_order_of_arrival(
    work: list[tuple[int, int]], max_sequences: int, step_tokens: int
) -> None:
    engine = Engine(model(max_sequences=max_sequences, step_tokens=step_tokens))
    sequences = [Sequence(prompt, output) for prompt, output in work]
    for sequence in sequences:
        engine.arrive(sequence)
    log = run(engine)
    first: dict[Sequence, int] = {}
    count = dict.fromkeys(sequences, 0)
    for step, (_, tokens) in enumerate(log):
        for sequence in tokens:
            first.setdefault(sequence, step)
            count[sequence] += 1
    assert [first[s] for s in sequences] == sorted(first.values())
    assert [count[s] for s in sequences] == [output for _, output in work]
    assert engine.free_blocks == engine.model.blocks


@given(sizes, st.integers(1, 6), st.integers(6, 64))
@settings(max_examples=50, deadline=None)
def test_total_time_is_the_formula_summed_over_all_tokens(
    work: list[tuple[int, int]], max_sequences: int, step_tokens: int
) -> None:
    """a per step, b per prompt token, c per decoded token, d per context token, whatever the batching."""
    engine = Engine(model(max_sequences=max_sequences, step_tokens=step_tokens))
    for prompt, output in work:
        engine.arrive(Sequence(prompt, output))
    log = run(engine)
    decoded = sum(output - 1 for _, output in work)
    context = sum(prompt + k for prompt, output in work for k in range(1, output))
    prompts = sum(prompt for prompt, _ in work)
    assert log[-1][0] == 1000 * len(log) + 100 * prompts + 10 * decoded + context


class Machine(RuleBasedStateMachine):
    """Arrivals, steps and cancels in any order."""

    @initialize()
    def build(self) -> None:
        self.engine = Engine(model())
        self.all: list[Sequence] = []
        self.stepping = False

    @rule(prompt=st.integers(1, 40), output=st.integers(1, 24), cached=st.integers(0, 39))
    def arrive(self, prompt: int, output: int, cached: int) -> None:
        sequence = Sequence(prompt, output, min(cached, prompt - 1))
        self.engine.arrive(sequence)
        self.all.append(sequence)

    @rule()
    def step(self) -> None:
        if self.stepping:
            for sequence in self.engine.finish():
                assert sequence.produced <= sequence.output
            self.stepping = False
        else:
            had_work = bool(self.engine.waiting or self.engine.running)
            self.stepping = self.engine.begin() is not None
            assert self.stepping == had_work

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if self.all:
            victim = data.draw(st.sampled_from(self.all))
            self.engine.cancel(victim)
            assert victim not in self.engine.running
            assert victim not in self.engine.waiting

    @invariant()
    def blocks_are_conserved_and_never_overcommitted(self) -> None:
        engine = self.engine
        held = sum(-(-(s.prompt + s.output) // 16) for s in engine.running)
        assert engine.free_blocks + held == 10
        assert engine.free_blocks >= 0
        assert len(engine.running) <= 4
        assert sum(s.prefilled + s.produced for s in engine.running) <= 160


Machine.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestBatching = Machine.TestCase


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 40_000), st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=25),
    st.sampled_from([4, 5, 8, 32]),
)
def test_it_keeps_the_time_of_the_simulator(requests: list[tuple[int, int, int]], step_tokens: int) -> None:
    """The engine layer's stepping engine, first come first served with room for whole answers: the same moments."""
    requests.sort()
    limits = {"max_sequences": 4, "pool_tokens": 160, "block_tokens": 16, "step_tokens": step_tokens}
    engine, now, coming = Engine(model(**limits)), 0, list(enumerate(requests))
    sequences: dict[Sequence, int] = {}
    finished: dict[int, int] = {}
    while coming or engine.running or engine.waiting:
        while coming and coming[0][1][0] <= now:
            number, (_, prompt, output) = coming.pop(0)
            sequences[one := Sequence(prompt, output)] = number
            engine.arrive(one)
        took = engine.begin()
        if took is None:
            now = coming[0][1][0]
            continue
        now += took
        finished |= {sequences[one]: now for one in engine.finish() if one.produced == one.output}
    simulated = Stepping(policy := make("fcfs"), Limits(reserve="limit", **limits), UNIT)
    bind(policy, simulated, {"all": Fraction(1)}, 0)
    calls = [
        Call(Generation(id=str(i), flow="all", seq=i, arrival=at, size=output, prompt=prompt, limit=output))
        for i, (at, prompt, output) in enumerate(requests)
    ]
    simulated.add(calls)
    simulated.run()
    assert [finished[i] for i in range(len(requests))] == [call.finish for call in calls]
