"""The quantities a configuration holds: durations, sizes, weights, counts, switches.

Every kind reads what people write (``60s``, ``64MiB``, ``3/2``), refuses the rest with the rule it breaks, and prints
back in the same notation, so that the schema, the documentation and an error speak one language.
"""

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

SECONDS: dict[str, int | Fraction] = {"ms": Fraction(1, 1000), "s": 1, "m": 60, "h": 3600, "d": 86400}
BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
# A tag has 20 fractional bits: beyond these limits a weight would round a charge away or make tags needlessly long.
MAX_WEIGHT = 10**6

_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z]*)")
_RATIONAL = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)(?:/([0-9]{1,15}(?:\.[0-9]{1,15})?))?")


class FromEnvironment(str):
    """Text that came out of ``${NAME}``: a number field may read it as a number, a plain quoted string may not."""

    __slots__ = ()


def broken(rule: str, *, hidden: bool = False) -> PydanticCustomError:
    """The error of a broken rule; a hidden one never shows the value that broke it."""
    return PydanticCustomError("hidden" if hidden else "rule", "{rule}", {"rule": rule})


def _quantity(value: object, units: Mapping[str, int | Fraction], rule: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise broken(rule)
    if isinstance(value, str):
        match = _QUANTITY.fullmatch(value.strip())
        if match is None or (match[2] and match[2] not in units):
            raise broken(rule)
        return Fraction(match[1]) * units.get(match[2], 1)
    if not 0 <= value < 10**15:
        raise broken(rule)
    return Fraction(str(value))


def duration(value: object) -> float:
    """Seconds from a number of seconds or from text such as ``250ms``, ``60s``, ``5m``, ``2h``, ``30d``."""
    return float(_quantity(value, SECONDS, "must be a duration such as 250ms, 60s, 5m, 2h or 30d"))


def period(value: object) -> float:
    """A duration longer than 0."""
    seconds = duration(value)
    if not seconds:
        raise broken("must be longer than 0")
    return seconds


def size(value: object, least: int = 1) -> int:
    """Bytes from a whole number or from text such as ``64MiB`` or ``64MB``."""
    rule = "must be a size such as 65536, 64KiB, 64MB or 1GiB"
    exact = _quantity(value, BYTES, rule)
    if exact.denominator != 1:
        raise broken(rule)
    if exact < least:
        raise broken(f"must be at least {least}")
    return int(exact)


def rate(value: object) -> int:
    """Bytes per second, 0 for no limit."""
    return size(value, least=0)


def rational(value: object) -> Fraction:
    """An exact non-negative rational from ``3``, ``1.5`` or ``"3/2"``; a decimal is read as written, not as binary."""
    rule = 'must be a number or a fraction such as 3, 1.5 or "3/2", not negative'
    if isinstance(value, Fraction) and value >= 0:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise broken(rule)
    match = _RATIONAL.fullmatch(str(value).strip())
    if match is None and isinstance(value, float) and math.isfinite(value) and value >= 0:
        return Fraction(str(value))  # 1e-07 and the like
    if match is None:
        raise broken(rule)
    divisor = Fraction(match[2] or 1)
    if not divisor:
        raise broken(rule)
    return Fraction(match[1]) / divisor


def weight(value: object) -> Fraction:
    """A positive rational between 1/1000000 and 1000000."""
    rule = f'must be a positive number or fraction such as 3, 1.5 or "3/2", from 1/{MAX_WEIGHT} to {MAX_WEIGHT}'
    try:
        exact = rational(value)
    except PydanticCustomError:
        raise broken(rule) from None
    if not Fraction(1, MAX_WEIGHT) <= exact <= MAX_WEIGHT:
        raise broken(rule)
    return exact


def share(value: object) -> Fraction:
    """A rational from 0 to 1."""
    exact = rational(value)
    if exact > 1:
        raise broken("must be from 0 to 1")
    return exact


def switch(value: object) -> object:
    """``true`` and ``false``, and the words on and off, which YAML 1.2 leaves as text."""
    if isinstance(value, str) and value.lower() in ("on", "off", "true", "false"):
        return value.lower() in ("on", "true")
    return value


def number(value: object) -> object:
    """A whole number given by the environment arrives as text."""
    return int(value) if isinstance(value, FromEnvironment) and value.isdecimal() else value


def show_duration(seconds: float) -> str:
    """The shortest exact notation: ``250ms``, ``90s``, ``5m``, ``30d``."""
    exact = Fraction(str(seconds))
    for unit in ("d", "h", "m", "s", "ms"):
        if exact and (exact / SECONDS[unit]).denominator == 1:
            return f"{exact / SECONDS[unit]}{unit}"
    return f"{seconds:g}s"


def show_size(count: int) -> str:
    """The largest binary unit that divides it: ``64MiB``; else the plain number."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if count and count % BYTES[unit] == 0:
            return f"{count // BYTES[unit]}{unit}"
    return str(count)


def kind(
    read: Callable[[Any], Any], schema: dict[str, Any], show: Callable[[Any], Any] = lambda v: v
) -> tuple[Any, ...]:
    return PlainValidator(read), PlainSerializer(show), WithJsonSchema(schema)


_AMOUNT = ["number", "string"]
Duration = Annotated[float, *kind(duration, {"type": _AMOUNT, "format": "duration"}, show_duration)]
Period = Annotated[float, *kind(period, {"type": _AMOUNT, "format": "duration"}, show_duration)]
Rate = Annotated[int, *kind(rate, {"type": ["integer", "string"], "format": "size"}, show_size)]
Size = Annotated[int, *kind(size, {"type": ["integer", "string"], "format": "size"}, show_size)]
Weight = Annotated[Fraction, *kind(weight, {"type": _AMOUNT, "format": "weight"}, str)]
Rational = Annotated[Fraction, *kind(rational, {"type": _AMOUNT, "format": "rational"}, str)]
Share = Annotated[Fraction, *kind(share, {"type": _AMOUNT, "format": "share"}, str)]
Switch = Annotated[bool, BeforeValidator(switch), WithJsonSchema({"enum": [True, False, "on", "off"]})]
Count = Annotated[int, Field(ge=1, le=10**9), BeforeValidator(number)]
Port = Annotated[int, Field(ge=0, le=65535), BeforeValidator(number)]
