"""Rankings against sorted lists, and numbers against rationals."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from fairq.core.eligible import Eligible
from fairq.core.number import TAG_BITS, exact, fixed, of_json, to_json
from fairq.core.ranking import Ranking

steps = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.none() | st.integers(-5, 5)), max_size=200)

asked = st.tuples(
    st.sampled_from("abcdef"), st.none() | st.tuples(st.integers(0, 4), st.integers(0, 4)), st.integers(0, 4)
)


@given(st.lists(asked, max_size=200))
def test_the_earliest_deadline_is_found_among_the_eligible_also_where_the_mean_goes_back(
    given_steps: list[tuple[str, tuple[int, int] | None, int]],
) -> None:
    waiters, model = Eligible(), dict[str, tuple[int, int]]()
    for name, key, mean in given_steps:
        if key is None:
            waiters.drop(name)
            model.pop(name, None)
        else:
            waiters.put(name, key)
            model[name] = key
        eligible = [(deadline, other) for other, (since, deadline) in model.items() if since <= mean]
        assert waiters.earliest(2 * mean, 2) == min(eligible, default=(0, None))[1]
        assert len(waiters.pending) + len(waiters.ready) <= 4 * 6 + 64


def test_who_waits_for_long_is_not_entered_without_end() -> None:
    waiters = Eligible()
    for step in range(1000):
        waiters.put(str(step % 3), (step % 7, step % 5))
        waiters.earliest(step % 4, 1)
        assert len(waiters.pending) + len(waiters.ready) <= 77


@given(steps)
def test_the_least_key_is_first_however_names_move_and_leave(given_steps: list[tuple[str, int | None]]) -> None:
    ranking: Ranking[str, int] = Ranking()
    model: dict[str, int] = {}
    for name, key in given_steps:
        if key is None:
            ranking.drop(name)
            model.pop(name, None)
        else:
            ranking.put(name, key)
            model[name] = key
        assert ranking.key == model
        assert ranking.first() == min(((key, name) for name, key in model.items()), default=None)
        assert ranking.least() == (min(model, key=lambda name: (model[name], name)) if model else None)
    ranking.clear()
    assert ranking.first() is None
    assert not ranking


def test_stale_entries_never_outnumber_the_live_ones_for_long() -> None:
    ranking: Ranking[int, int] = Ranking()
    for name in range(10):
        ranking.put(name, 0)
    for step in range(10_000):
        ranking.put(step % 10, 10_000 - step if step % 2 else step)
        assert sum(map(len, ranking.names.values())) == ranking.entries <= 2 * 10 + 65


weights = st.fractions(Fraction(1, 1000), 1000, max_denominator=1000)


@given(st.integers(1, 1 << 40), weights)
def test_tags_are_the_quotient_rounded_up_to_the_grid(amount: int, weight: Fraction) -> None:
    above, below = weight.as_integer_ratio()
    true = Fraction(amount) / weight
    assert exact(amount, above, below) == true
    grid = Fraction(fixed(amount, above, below), 1 << TAG_BITS)
    assert 0 <= grid - true < Fraction(1, 1 << TAG_BITS)
    assert grid > 0


@given(st.fractions() | st.integers())
def test_numbers_survive_json(number: Fraction | int) -> None:
    assert of_json(to_json(number)) == number
