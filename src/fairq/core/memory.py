"""What a policy remembers, as JSON and back: for policies that list their attributes instead of converting each.

Kept exactly: int, str, bool, None, Fraction, and dicts with text keys, tuples, sets of text and rankings of these.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from fairq.core.ranking import Ranking


def pack(value: Any) -> Any:
    if isinstance(value, Fraction):
        return {"ratio": [str(value.numerator), str(value.denominator)]}
    if isinstance(value, (set, frozenset)):
        return {"set": sorted(value)}
    if isinstance(value, Ranking):
        return {"ranking": {name: pack(key) for name, key in value.items()}}
    if isinstance(value, Mapping):
        return {"dict": {name: pack(item) for name, item in value.items()}}
    return [pack(item) for item in value] if isinstance(value, tuple) else value


def unpack(value: Any) -> Any:
    """The inverse of `pack`."""
    if isinstance(value, list):
        return tuple(unpack(item) for item in value)
    if not isinstance(value, Mapping):
        return value
    ((kind, inner),) = value.items()
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
