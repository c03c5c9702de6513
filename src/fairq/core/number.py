"""Exact numbers: how tags are normalised, and how they are written down.

A tag is `int` or `Fraction`, never a float, because an argmin is taken over tags and a float makes ties ambiguous.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Final

Number = int | Fraction
Normalize = Callable[[int, int, int], Number]

TAG_BITS: Final = 20
"""Fractional bits of the gateway's integer tags: one cost unit is 2**20 tag units."""

WIDEST: Final = 256
GRID_BITS: Final = 128


def exact(amount: int, numerator: int, denominator: int) -> Number:
    """amount / (numerator/denominator) as a rational; an int where it is whole, since ints are ten times cheaper."""
    scaled = amount * denominator
    return Fraction(scaled, numerator) if scaled % numerator else scaled // numerator


def fixed(amount: int, numerator: int, denominator: int) -> int:
    """The same, rounded up to the grid of 2**-TAG_BITS. Rounding up keeps meters strictly increasing."""
    scaled = amount * denominator << TAG_BITS
    return scaled if numerator == 1 else -(-scaled // numerator)


def in_parts(parts: int) -> Normalize:
    """Counts in 1/parts: whole, and exact, where `parts` is a multiple of every weight's numerator."""

    def normalize(amount: int, numerator: int, denominator: int) -> Number:
        return amount * denominator * parts // numerator

    return normalize


def bounded(value: Number) -> Number:
    """`value` itself while its denominator has at most WIDEST bits; else rounded down to the grid of 2**-GRID_BITS, so
    that denominators do not grow without end."""
    if isinstance(value, int) or value.denominator.bit_length() <= WIDEST:
        return value
    return quotient(Fraction((value.numerator << GRID_BITS) // value.denominator, 1 << GRID_BITS), 1)


def quotient(value: Number, by: Number) -> Number:
    """value / by, an int where it is whole."""
    if type(value) is int and type(by) is int:
        return Fraction(value, by) if value % by else value // by
    ratio = Fraction(value) / by if by != 1 else value
    return ratio.numerator if ratio.denominator == 1 else ratio


def to_json(value: Number) -> int | str:
    """Whole numbers as ints, however they came about; others as "7/2"."""
    if isinstance(value, int):
        return value
    return value.numerator if value.denominator == 1 else str(value)


def of_json(value: int | str) -> Number:
    """The inverse of `to_json`."""
    return value if isinstance(value, int) else Fraction(value)


def of_text(text: str) -> Number:
    """The inverse of `str`; for tags that may be longer than JSON's integers."""
    return quotient(Fraction(text), 1)


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)
