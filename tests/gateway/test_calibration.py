"""Calibration of beta against alpha: it finds a ratio that is known, slowly, within bounds, past outliers."""

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq.core.commands import Ended
from fairq.core.cost import Source, Usage
from fairq.core.lifecycle import Outcome
from fairq.gateway.calibration import EVERY, REACH, STEP, Calibration, Sample, fit_of, ratio_of, sample_of

MS = 1_000_000


def ended(inputs: int, outputs: int, ns: int, **fields: object) -> Ended:
    """A streamed request that waited 5 ms and then took `ns`, half of it to the first token."""
    first = ns if outputs == 1 else ns // 2
    tpot = (ns - first) // (outputs - 1) if outputs > 1 else 0
    given = {
        "outcome": Outcome.COMPLETED,
        "usage": Usage(inputs, outputs, 0, Source.UPSTREAM),
        "wait": 5 * MS,
        "ttft": 5 * MS + first,
        "tpot": tpot,
        "attempts": 1,
    } | fields
    return Ended(seq=1, time=0, id="r", tenant="t", **given)  # type: ignore[arg-type]


def engine(dice: random.Random, a: float, b: float, noise: float = 0.0) -> tuple[int, int, int]:
    """Tokens in and out and the time of one request at an engine with a and b ns per token."""
    inputs, outputs = int(dice.lognormvariate(6, 1)), 1 + int(dice.lognormvariate(4, 1))
    return inputs, outputs, int((20 * MS + a * inputs + b * outputs) * dice.gauss(1, noise))


@given(st.lists(st.tuples(st.integers(1, 9999), st.integers(1, 9999), st.integers(1, 10**9)), min_size=4, max_size=40))
@settings(max_examples=60, deadline=None)
def test_the_fit_is_least_squares(rows: list[tuple[int, int, int]]) -> None:
    """Against numpy's solver, wherever the problem is well posed."""
    fit = fit_of([Sample(*row) for row in rows])
    table = np.array([(x, y, 1) for x, y, _ in rows], dtype=float)
    times = np.array([t for _, _, t in rows], dtype=float)
    if fit is None:
        deviations = table[:, :2] - table[:, :2].mean(axis=0)
        spread = (deviations**2).sum(axis=0).prod()
        assert spread == 0 or 1 - (deviations[:, 0] @ deviations[:, 1]) ** 2 / spread < 0.07
        return
    solved = np.linalg.lstsq(table, times, rcond=None)[0]
    found = np.array([fit.a, fit.b, fit.c], dtype=object) / fit.scale
    assert np.allclose(table @ found.astype(float), table @ solved, rtol=1e-6, atol=1.0)


@pytest.mark.parametrize("true", [0.5, 3.0, 20.0])
def test_a_known_ratio_is_found(true: float) -> None:
    """Within 5 %, with noise of 10 %, from a start that is wrong by a factor."""
    dice = random.Random(1)
    calibration = Calibration(Fraction(4))
    for _ in range(4000):
        calibration.observe(ended(*engine(dice, 0.2 * MS, 0.2 * MS * true, noise=0.1)))
    assert calibration.ratio == pytest.approx(true, rel=0.05)


def test_outliers_are_left_out() -> None:
    """One in twenty took fifty times as long: a client that read slowly. They would move a plain fit far."""
    dice = random.Random(2)
    samples = []
    for _ in range(512):
        inputs, outputs, ns = engine(dice, 0.1 * MS, 0.6 * MS, noise=0.05)
        samples.append(Sample(inputs, outputs, ns * 50 if dice.random() < 0.05 else ns))
    found = ratio_of(samples)
    plain = fit_of(samples)
    assert found == pytest.approx(6, rel=0.05)
    assert plain is not None
    assert abs(plain.b / plain.a - 6) > 0.6


def test_no_change_is_larger_than_its_bound() -> None:
    """Each by at most a quarter, all together by at most a factor of 16, once in 64 requests, on a coarse grid."""
    dice = random.Random(3)
    calibration = Calibration(Fraction(2))
    before, changes = Fraction(2), 0
    for number in range(1, 3001):
        changed = calibration.observe(ended(*engine(dice, 0.001 * MS, 5 * MS)))
        assert changed == (calibration.ratio != before)
        if changed:
            changes += 1
            assert number % EVERY == 0
            assert before < calibration.ratio <= before * STEP + Fraction(1, 64)
            assert calibration.ratio.denominator <= 64
        before = calibration.ratio
    assert calibration.ratio == 2 * REACH
    assert changes <= 15


@pytest.mark.parametrize(
    "kind",
    ["same lengths", "proportional", "noise alone", "faster with more"],
)
def test_what_cannot_tell_changes_nothing(kind: str) -> None:
    dice = random.Random(4)
    calibration = Calibration(Fraction(3))
    for _ in range(1000):
        inputs, outputs, ns = engine(dice, MS, 2 * MS)
        if kind == "same lengths":
            inputs, outputs = 100, 100
        elif kind == "proportional":
            outputs = 1 + inputs // 10
        elif kind == "faster with more":
            ns = max(10_000 * MS - inputs * MS - outputs * MS, MS)
        else:
            inputs, outputs, ns = 10, 10, dice.randrange(1, 1000) * MS
        calibration.observe(ended(inputs, outputs, ns))
    assert calibration.ratio == 3


@pytest.mark.parametrize(
    "fields",
    [
        {"outcome": Outcome.CANCELLED_RUNNING},
        {"outcome": Outcome.FAILED_MIDSTREAM},
        {"usage": Usage(10, 10, 0, Source.COUNTED)},
        {"usage": Usage(10, 0, 0, Source.UPSTREAM)},
        {"attempts": 2},
        {"ttft": 0},
    ],
)
def test_only_whole_answers_of_one_upstream_count(fields: dict[str, object]) -> None:
    assert sample_of(ended(10, 10, 10 * MS, **fields)) is None


def test_a_sample_is_the_time_at_the_engine_and_the_tokens_it_worked_on() -> None:
    """Without the wait here, without input that was cached."""
    record = ended(100, 11, 100 * MS, usage=Usage(100, 11, 40, Source.UPSTREAM))
    assert sample_of(record) == Sample(60, 11, 100 * MS)


def test_what_was_found_before_is_kept_within_the_bounds() -> None:
    assert Calibration(Fraction(2), Fraction(5, 2)).ratio == Fraction(5, 2)
    assert Calibration(Fraction(2), Fraction(1000)).ratio == 2 * REACH
    assert Calibration(Fraction(2), Fraction(1, 1000)).ratio == Fraction(2, REACH)
