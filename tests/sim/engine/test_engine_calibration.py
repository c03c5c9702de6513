"""Calibration: known coefficients come back, and vLLM's own timings are met."""

import json
from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.cli.program import fairq

from fairq.core.errors import FairqError
from fairq.sim.engine.calibrate import Timing, compare, fit, timings
from fairq.sim.engine.call import Call
from fairq.sim.engine.cost import PRESETS, Cost, Limits
from fairq.sim.engine.least_squares import least_squares
from fairq.sim.engine.simulate import simulate
from fairq.traces import Trace

DATA = Path(__file__).parents[3] / "data"
NS = 1_000_000_000


# The solver


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 4), st.booleans())
def test_least_squares_is_the_best_of_all_supports(seed: int, unknowns: int, scaled: bool) -> None:
    """Brute force: the best solution that is not negative has some set of positive unknowns; numpy tries them all."""
    chance = np.random.default_rng(seed)
    rows = chance.normal(size=(12, unknowns)) * (10.0 ** np.arange(unknowns) if scaled else 1)
    values = chance.normal(size=12)
    best = float(values @ values)
    for size in range(1, unknowns + 1):
        for support in combinations(range(unknowns), size):
            part = rows[:, support]
            x = np.linalg.lstsq(part, values, rcond=None)[0]
            if (x >= 0).all():
                best = min(best, float(((part @ x - values) ** 2).sum()))
    found = np.array(least_squares(rows.tolist(), values.tolist()))
    assert (found >= 0).all()
    assert float(((rows @ found - values) ** 2).sum()) == pytest.approx(best, rel=1e-6, abs=1e-9)


def test_no_equations_are_refused() -> None:
    with pytest.raises(ValueError, match="no equations"):
        least_squares([], [])


# Known coefficients


def recorded(cost: Cost, limits: Limits, count: int = 300, rate: float = 3.0) -> list[Timing]:
    """What such an engine would have timed; arrivals come at a rate that changes, so that batches do."""
    chance, at, requests = Random(1), 0.0, []
    for place in range(count):
        at += chance.expovariate(rate * (0.3 + place % 100 / 50))
        requests.append((at, chance.randint(20, 1500), chance.randint(10, 400)))
    calls, _ = simulate(requests, cost, limits)
    return [_timing(call) for call in calls]


def _timing(call: Call) -> Timing:
    times = (call.arrival, call.admitted or 0, call.first or 0, call.finish or 0)
    return Timing(call.prompt, call.produced, *(time / NS for time in times))


@pytest.mark.parametrize("limits", [Limits(pool_tokens=200_000), None])
def test_iterations_of_a_known_engine_are_foretold(limits: Limits | None) -> None:
    """Sequences and their context grow together, so the two share their price; what an iteration takes is known."""
    cost = Cost(a=12_000_000, b=60_000, c=150_000, d=400)
    found = fit(recorded(cost, Limits(pool_tokens=200_000)), limits)
    assert found.whole
    assert found.error < 0.02
    assert found.factor == pytest.approx(1, abs=0.02)
    assert (found.cost.a, found.cost.b) == (pytest.approx(cost.a, rel=0.1), pytest.approx(cost.b, rel=0.1))
    for batch in ((0, 5, 4_000), (0, 20, 18_000), (300, 10, 9_000), (0, 40, 36_000)):
        assert found.cost.duration(*batch) == pytest.approx(cost.duration(*batch), rel=0.05), batch


def test_prompts_that_have_iterations_of_their_own_are_counted() -> None:
    """LightLLM's rules, a pool that is always full, and first tokens that clients see up to 5 ms late."""
    preset, chance = PRESETS["a10g-llama2-7b"], Random(2)
    known = [
        replace(one, scheduled=seen, first=seen)
        for one in recorded(preset.cost, preset.limits, rate=1)
        for seen in (one.first + chance.uniform(0, 0.005),)
    ]
    found = fit(known, preset.limits)
    assert found.error < 0.005
    for name, near in (("a", 0.05), ("b", 0.1), ("c", 0.3), ("d", 0.1)):
        assert getattr(found.cost, name) == pytest.approx(getattr(preset.cost, name), rel=near), name


def test_an_engine_agrees_with_itself() -> None:
    cost, limits = Cost(a=12_000_000, b=60_000, c=150_000, d=400), Limits(pool_tokens=200_000)
    told = compare(recorded(cost, limits, count=60), cost, limits)
    assert told.same_order == 1
    assert told.makespan[0] == pytest.approx(told.makespan[1])
    assert told.ttft[0] == pytest.approx(told.ttft[1])


# A real engine


@pytest.mark.parametrize(
    ("card", "preset"), [("RTX4090", "rtx4090-llama3.1-8b"), ("RTXPRO6000", "rtxpro6000-llama3.1-8b")]
)
def test_half_of_vllms_timings_foretell_all_of_them(card: str, preset: str) -> None:
    limits = PRESETS[preset].limits
    known = timings(Trace(DATA / "vllm" / f"{card}_Llama-3.1-8B.csv"))
    told = compare(known, fit(known[:150], limits).cost, limits)
    assert told.makespan[0] == pytest.approx(told.makespan[1], rel=0.05)
    assert told.ttft[0] == pytest.approx(told.ttft[1], rel=0.15)
    assert told.same_order >= 0.95


@pytest.mark.parametrize(
    "cost",
    [
        Cost(a=32_000_000, b=130_000, c=220_000, d=200),  # weights dominate, but half of a full batch's time is its own
        Cost(a=20_000_000, b=130_000, c=100_000, d=350),
        Cost(a=60_000_000, b=130_000, c=80_000, d=150),
        Cost(a=15_000_000, b=30_000, c=200_000, d=60),
    ],
)
def test_slow_models_whose_batches_are_always_full_are_foretold_too(cost: Cost) -> None:
    """The requests of vLLM's recording on an engine four to eight times as slow: the first half never sees a batch that
    empties, and the second half ends with one."""
    limits = Limits(pool_tokens=460_000, max_sequences=128)
    measured = timings(Trace(DATA / "vllm" / "RTXPRO6000_Llama-3.1-8B.csv"))
    calls, _ = simulate([(one.queued, one.prompt, one.output) for one in measured], cost, limits)
    known = [_timing(call) for call in calls]
    told = compare(known, fit(known[:150], limits).cost, limits)
    assert told.makespan[0] == pytest.approx(told.makespan[1], rel=0.05)
    assert told.ttft[0] == pytest.approx(told.ttft[1], rel=0.05)


@pytest.mark.parametrize(("suite", "error"), [("FCFS__overload", 0.002), ("FCFS__real", 0.01)])
def test_an_a10g_is_met_first_come_first_served(suite: str, error: float) -> None:
    """The authors of VTC timed two suites under it; every request's time is foretold to a thousandth or to half a
    hundredth, and both find about the same coefficients."""
    limits = PRESETS["a10g-llama2-7b"].limits
    known = timings(Trace(DATA / "vtc" / f"{suite}.csv"))
    found = fit(known, limits)
    assert found.error < error
    assert found.cost.duration(0, 20, 7_500) == pytest.approx(41_500_000, rel=0.03)
    assert found.cost.duration(2_816, 0, 0) == pytest.approx(650_000_000, rel=0.15)
    told = compare(known, found.cost, limits)
    assert told.makespan[0] == pytest.approx(told.makespan[1], rel=0.01)
    assert told.ttft[0] == pytest.approx(told.ttft[1], rel=0.03)


def test_the_command_reports_what_it_found() -> None:
    path = str(DATA / "vllm" / "RTX4090_Llama-3.1-8B.csv")
    told = json.loads(fairq("calibrate", path, "--pool-tokens", "41408", "--first", "150", "--json").out)
    assert told["agreement"]["requests"] == 300
    assert abs(told["agreement"]["makespan"]["error"]) <= 0.05
    assert told["agreement"]["ttft"]["measured"] == pytest.approx(65.46, abs=0.005)
    text = fairq("calibrate", path, "--first", "150").out
    assert text.startswith("cost: {a: ")
    assert "no simulation" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([str(DATA / "vtc_real_trace.csv")], "vtc_real_trace.csv: has no measured times"),
        (
            [str(DATA / "vllm/RTX4090_Llama-3.1-8B.csv"), "--preset", "rtx4091-llama3.1-8b"],
            "did you mean rtx4090-llama3.1-8b",
        ),
        ([str(DATA / "vllm/RTX4090_Llama-3.1-8B.csv"), "--pool-tokens", "0"], "must be at least 1"),
        ([str(DATA / "vllm/RTX4090_Llama-3.1-8B.csv"), "--first", "3"], "8 are needed"),
        ([str(DATA / "vllm/RTX4090_Llama-3.1-8B.csv"), "--pool-tokens", "1000"], "requests are longer than the 992"),
    ],
)
def test_what_cannot_be_calibrated_is_one_line_and_status_2(arguments: list[str], message: str) -> None:
    result = fairq("calibrate", *arguments)
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert message in result.err


def test_timings_need_measurements() -> None:
    with pytest.raises(FairqError, match="no measured times"):
        timings(Trace(DATA / "heads" / "azure_code.csv"))
