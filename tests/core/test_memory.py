"""What policies remember survives JSON exactly."""

import json
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq.core.memory import JSON_INT, KINDS, pack, unpack
from fairq.core.ranking import Ranking

scalars = st.integers() | st.text(max_size=3) | st.booleans() | st.none() | st.fractions()
values = st.recursive(
    scalars | st.sets(st.text(max_size=2), max_size=3),
    lambda inner: (
        st.dictionaries(st.text(max_size=2) | st.sampled_from(sorted(KINDS)), inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=8,
)


def exactly(value: Any) -> Any:
    """Equal only if the types are, too: 1, True and Fraction(1) differ."""
    if isinstance(value, dict):
        return {name: exactly(item) for name, item in value.items()}
    return tuple(map(exactly, value)) if isinstance(value, tuple) else (type(value), value)


@given(values)
@settings(max_examples=80, deadline=None)
def test_pack_and_unpack_are_inverses(value: Any) -> None:
    assert exactly(unpack(json.loads(json.dumps(pack(value))))) == exactly(value)


@pytest.mark.parametrize("tag", [JSON_INT, -JSON_INT, 1 << 256])
def test_tags_longer_than_json_integers_are_kept(tag: int) -> None:
    assert unpack(msgspec.json.decode(msgspec.json.encode(pack({"virtual_time": tag})))) == {"virtual_time": tag}


@pytest.mark.parametrize("keys", [{}, {"a": 3, "b": 1}, {"a": (Fraction(1, 3), 2), "b": (0, 7)}])
def test_a_ranking_comes_back_in_order(keys: dict[str, Any]) -> None:
    ranking: Ranking[str, Any] = Ranking()
    for name, key in keys.items():
        ranking.put(name, key)
    again = unpack(json.loads(json.dumps(pack(ranking))))
    assert isinstance(again, Ranking)
    assert again.key == keys
    assert again.first() == ranking.first()
