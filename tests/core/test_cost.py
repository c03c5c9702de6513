"""What a request costs, before and after; and how estimates learn."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq.core.cost import CostModel, Source, Usage
from fairq.core.estimator import KEYS, Estimator
from fairq.core.job import Request

PLAIN = CostModel(alpha=Fraction(1), beta=Fraction(2), default_output=100, bytes_per_token=Fraction(4))


def request(**fields: object) -> Request:
    return Request(**{"id": "r", "flow": "A", "model": "m", **fields})  # type: ignore[arg-type]


def used(prompt: int, completion: int, cached: int = 0, source: Source = Source.UPSTREAM) -> Usage:
    return Usage(prompt, completion, cached, source)


def cost(rates: CostModel, **fields: object) -> int:
    return Estimator(rates).estimate(request(**fields)).cost


def test_input_tokens_cost_alpha_and_predicted_output_tokens_beta() -> None:
    assert cost(PLAIN, input_tokens=50) == 50 + 2 * 100
    assert cost(PLAIN, input_bytes=50) == 13 + 2 * 100  # 50 bytes are 12.5 tokens, rounded up
    assert cost(PLAIN, input_bytes=50, extra_tokens=7) == 20 + 2 * 100


def test_a_prediction_never_exceeds_the_limit_of_the_request() -> None:
    """B-6: a limit below the prediction counts, a huge or missing one does not reserve anything."""
    assert cost(PLAIN, input_tokens=1, output_limit=5) == 1 + 2 * 5
    assert cost(PLAIN, input_tokens=1, output_limit=0) == 1
    assert cost(PLAIN, input_tokens=1, output_limit=10**9) == cost(PLAIN, input_tokens=1) == 201


def test_a_prediction_never_exceeds_what_the_context_has_room_for() -> None:
    model = CostModel(alpha=Fraction(1), beta=Fraction(2), default_output=100, context_length=120)
    assert cost(model, input_tokens=50) == 50 + 2 * 70
    assert cost(model, input_tokens=500) == 120


def test_choices_and_prompt_arrays_multiply_outputs() -> None:
    assert cost(PLAIN, input_tokens=50, choices=4) == 50 + 4 * 200
    assert cost(PLAIN, input_tokens=50, prompts=3) == 50 + 3 * 200
    assert cost(PLAIN, input_tokens=50, prompts=3, choices=2, output_limit=1) == 50 + 6 * 2


def test_alpha_and_beta_may_be_any_rationals_and_costs_are_rounded_up() -> None:
    model = CostModel(alpha=Fraction(1, 3), beta=Fraction(7, 5), default_output=100)
    assert cost(model, input_tokens=10, output_limit=3) == ceil(Fraction(10, 3) + Fraction(21, 5))
    assert cost(CostModel(alpha=Fraction(0), beta=Fraction(1, 1000)), output_limit=1) == 1


def test_multipliers_of_model_adapter_and_tier_multiply() -> None:
    model = CostModel(
        alpha=Fraction(1),
        beta=Fraction(0),
        models={"big": Fraction(5, 2)},
        adapters={"lora": Fraction(2)},
        tiers={"priority": Fraction(3, 2)},
    )
    assert cost(model, input_tokens=10, model="big") == 25
    assert cost(model, input_tokens=10, model="big", adapter="lora") == 50
    assert cost(model, input_tokens=10, model="big", adapter="lora", tier="priority") == 75
    assert cost(model, input_tokens=10, model="unknown", adapter="unknown", tier="unknown") == 10


def test_multipliers_remember_configured_names_only() -> None:
    """Names come from clients, without end."""
    estimator = Estimator(CostModel(models={"big": Fraction(2)}))
    for number in range(1000):
        estimator.estimate(request(model=f"m{number}", adapter=f"a{number}", tier=f"t{number}"))
        estimator.estimate(request(model="big", adapter=f"a{number}"))
    assert len(estimator.multipliers) == 2


def test_cached_tokens_cost_less_by_the_discount() -> None:
    """B-11: 900 of 1,000 prompt tokens came from the cache."""
    model = CostModel(alpha=Fraction(1), beta=Fraction(2), cached_discount=Fraction(9, 10))
    estimator = Estimator(model)
    assert estimator.actual(request(), used(1000, 10, cached=900)) == 1000 - 810 + 20
    assert Estimator(PLAIN).actual(request(), used(1000, 10, cached=900)) == 1020


def test_a_tenant_that_hits_the_cache_is_expected_to_hit_it_again() -> None:
    estimator = Estimator(CostModel(alpha=Fraction(1), beta=Fraction(0), cached_discount=Fraction(1)))
    before = estimator.estimate(request(input_tokens=1000)).cost
    for _ in range(50):
        estimator.learn(request(), used(1000, 1, cached=800), natural_end=True)
    assert before == 1000
    assert abs(estimator.estimate(request(input_tokens=1000)).cost - 200) <= 2


def test_input_is_charged_too() -> None:
    """B-12: a tenant that only sends long prompts pays for them."""
    assert Estimator(PLAIN).actual(request(), used(100_000, 0)) == 100_000


def test_a_request_that_never_reached_an_engine_used_nothing() -> None:
    assert Estimator(PLAIN).actual(request(), Usage()) == 0


def test_an_endpoint_of_fixed_cost_costs_that() -> None:
    estimator = Estimator(PLAIN)
    assert estimator.estimate(request(size=7, input_tokens=1000)).cost == 7
    assert estimator.actual(request(size=7), used(1000, 1000)) == 7


@pytest.mark.parametrize(
    ("reported", "clipped"),
    [
        (used(-5, 10), used(0, 10)),
        (used(10**9, 10**9, 10**9), used(200, 400, 200)),
        (used(50, 10, 60), used(50, 10, 50)),
        (used(50, -1, -1), used(50, 0, 0)),
        (used(200, 400, 200), used(200, 400, 200)),
    ],
)
def test_no_upstream_can_report_more_than_its_context_holds(reported: Usage, clipped: Usage) -> None:
    estimator = Estimator(CostModel(context_length=100))
    assert estimator.clipped(request(prompts=2, choices=2), reported) == clipped


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_estimates_converge_to_what_a_tenant_really_does(first: int, then: int) -> None:
    """B-9, `fixed`: a tenant changes its habits; after 100 requests the estimate is within one token of them."""
    estimator = Estimator(PLAIN)
    for output in (first, then):
        for _ in range(100):
            estimator.learn(request(), used(10, output), natural_end=True)
        assert abs(estimator.estimate(request(input_tokens=1)).output_tokens - output) <= 1


def test_an_estimate_follows_within_a_few_requests() -> None:
    """B-9: predicted 100, produces 1,000. The prior weighs as one sample: 550 after one request, 700 after two."""
    estimator = Estimator(PLAIN)
    seen = []
    for _ in range(7):
        estimator.learn(request(), used(10, 1000), natural_end=True)
        seen.append(estimator.estimate(request(input_tokens=1)).output_tokens)
    assert seen == [ceil(1000 - Fraction(900, n)) for n in range(2, 9)]


def test_bytes_per_token_are_learned() -> None:
    estimator = Estimator(PLAIN)
    for _ in range(100):
        estimator.learn(request(input_bytes=1000), used(500, 1), natural_end=True)
    assert abs(estimator.estimate(request(input_bytes=1000)).input_tokens - 500) <= 1
    for _ in range(100):
        estimator.learn(request(input_bytes=1000, extra_tokens=300), used(400, 1), natural_end=True)
    assert abs(estimator.estimate(request(input_bytes=1000, extra_tokens=5)).input_tokens - 105) <= 1


def test_an_output_that_was_cut_off_teaches_only_what_is_news() -> None:
    """Aborted after 3 tokens: it may have been about to say any number. After 900: it is long."""
    estimator = Estimator(PLAIN)
    estimator.learn(request(), used(10, 3, source=Source.COUNTED), natural_end=False)
    assert estimator.estimate(request(input_tokens=1)).output_tokens == 100
    for _ in range(60):
        estimator.learn(request(), used(10, 900, source=Source.COUNTED), natural_end=False)
    assert abs(estimator.estimate(request(input_tokens=1)).output_tokens - 900) <= 1


def test_tenants_and_models_are_told_apart() -> None:
    estimator = Estimator(PLAIN)
    for _ in range(50):
        estimator.learn(request(flow="B", model="m"), used(10, 3), natural_end=True)
        estimator.learn(request(flow="A", model="other"), used(10, 3), natural_end=True)
    assert estimator.estimate(request(input_tokens=1)).output_tokens == 100


def test_habits_of_tenants_long_unseen_are_forgotten() -> None:
    estimator = Estimator(PLAIN)
    regular = request(flow="regular", input_tokens=1)
    for number in range(3 * KEYS):
        estimator.learn(request(flow=f"made-up-{number}"), used(10, 7), natural_end=True)
        if number % 1000 == 0:
            estimator.learn(regular, used(10, 3), natural_end=True)
        assert len(estimator.habits) + len(estimator.fading) <= KEYS
    assert estimator.estimate(regular).output_tokens < 10
    assert estimator.estimate(request(flow="made-up-0", input_tokens=1)).output_tokens == 100


def test_new_rates_keep_what_was_learned() -> None:
    estimator = Estimator(PLAIN)
    for _ in range(100):
        estimator.learn(request(), used(10, 10), natural_end=True)
    estimator.adopt(CostModel(alpha=Fraction(0), beta=Fraction(5, 2)))
    assert estimator.estimate(request(input_tokens=1)).cost == 25


numbers = st.integers(0, 3000)


@given(
    alpha=st.fractions(0, 5, max_denominator=30),
    beta=st.fractions(0, 5, max_denominator=30),
    discount=st.fractions(0, 1, max_denominator=30),
    multiplier=st.fractions(Fraction(1, 30), 9, max_denominator=30),
    usage=st.tuples(numbers, numbers, numbers),
)
def test_the_price_is_the_formula_rounded_up(
    alpha: Fraction, beta: Fraction, discount: Fraction, multiplier: Fraction, usage: tuple[int, int, int]
) -> None:
    prompt, completion, cached = usage[0], usage[1], min(usage[2], usage[0])
    estimator = Estimator(CostModel(alpha=alpha, beta=beta, cached_discount=discount, models={"m": multiplier}))
    exact = (alpha * (prompt - discount * cached) + beta * completion) * multiplier
    assert estimator.actual(request(), used(prompt, completion, cached)) == max(1, ceil(exact))


@given(st.lists(st.tuples(st.sampled_from("AB"), numbers, numbers, st.booleans()), max_size=40), st.integers(0, 40))
def test_what_was_learned_survives_a_restart(samples: list[tuple[str, int, int, bool]], cut: int) -> None:
    one, other = Estimator(PLAIN), Estimator(PLAIN)
    for number, (tenant, prompt, completion, natural) in enumerate(samples):
        if number == cut:
            other.restore(one.state())
        for estimator in (one, other) if number >= cut else (one,):
            estimator.learn(request(flow=tenant, input_bytes=100), used(prompt, completion), natural)
    if cut < len(samples):
        assert one.state() == other.state()
        assert all(one.estimate(request(flow=name)) == other.estimate(request(flow=name)) for name in "AB")
