"""What a policy remembers, as JSON and back: policies list their attributes instead of converting each.

Kept exactly: int, str, bool, None, Fraction, and dicts with text keys, tuples, sets of text and rankings of these.
What JSON has is written as it is, the rest as {kind: value}.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from fairq.core.ranking import Ranking

KINDS = frozenset({"int", "ratio", "set", "dict", "ranking"})
JSON_INT = 1 << 63
"""Integers from here on are written as text."""


def remembered(owner: object, names: Iterable[str]) -> dict[str, Any]:
    """These attributes of it, packed."""
    return {name: pack(getattr(owner, name)) for name in names}


def recall(owner: object, names: Iterable[str], state: Mapping[str, Any]) -> None:
    """The inverse of `remembered`."""
    for name in names:
        setattr(owner, name, unpack(state[name]))


def pack(value: Any) -> Any:
    if type(value) is int:
        return value if -JSON_INT <= value < JSON_INT else {"int": str(value)}
    if isinstance(value, Fraction):
        return {"ratio": [str(value.numerator), str(value.denominator)]}
    if isinstance(value, (set, frozenset)):
        return {"set": sorted(value)}
    if isinstance(value, Ranking):
        return {"ranking": {name: pack(key) for name, key in value.key.items()}}
    if isinstance(value, dict):
        packed = {name: pack(item) for name, item in value.items()}
        return {"dict": packed} if len(packed) == 1 and packed.keys() <= KINDS else packed
    return [pack(item) for item in value] if isinstance(value, tuple) else value


def unpack(value: Any) -> Any:
    """The inverse of `pack`."""
    if isinstance(value, list):
        return tuple(unpack(item) for item in value)
    if not isinstance(value, Mapping):
        return value
    if len(value) != 1 or not value.keys() <= KINDS:
        return {name: unpack(item) for name, item in value.items()}
    ((kind, inner),) = value.items()
    if kind == "int":
        return int(inner)
    if kind == "ratio":
        return Fraction(int(inner[0]), int(inner[1]))
    if kind == "set":
        return set(inner)
    if kind == "dict":
        return {name: unpack(item) for name, item in inner.items()}
    ranking: Ranking[str, Any] = Ranking()
    for name, key in inner.items():
        ranking.put(name, unpack(key))
    return ranking
