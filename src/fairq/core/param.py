"""Param: a parameter of a policy, declared once."""

from fractions import Fraction
from typing import Any

from msgspec import Struct

from fairq.core.errors import ConfigError, UnknownName


class Param(Struct, frozen=True, kw_only=True):
    """A parameter of a policy, declared once: it drives command line, files, URLs and forms.

    The kind is the default's type: bool, int, Fraction or str. `text` is a message key, not a text.
    """

    name: str
    default: bool | int | Fraction | str
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    text: str = ""

    def parse(self, owner: str, given: object) -> bool | int | Fraction | str:
        """`given` may be a string (command line) or already typed. Raises ConfigError."""
        key = f"{owner}.{self.name}"
        kind = type(self.default)
        try:
            if kind is bool:
                value: Any = {"true": True, "on": True, "false": False, "off": False}[str(given).lower()]
            elif isinstance(given, float):
                raise ValueError
            elif kind is int:
                value = int(str(given))
            else:
                value = Fraction(str(given)) if kind is Fraction else str(given)
        except (ValueError, KeyError, ZeroDivisionError):
            rule = {bool: "must be true or false", int: "must be a whole number"}.get(kind, "must be a number")
            raise ConfigError(key, given, rule) from None
        if self.choices and value not in self.choices:
            raise UnknownName(key, str(value), self.choices)
        if self.low is not None and value < self.low:
            raise ConfigError(key, given, f"must be at least {self.low}")
        if self.high is not None and value > self.high:
            raise ConfigError(key, given, f"must be at most {self.high}")
        return value  # type: ignore[no-any-return]
