"""One line of a trace: named values, and where they stand in which file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from fairq.traces.request import TraceError


class Row:
    """Reads typed values out of one line. Every failure is a TraceError with file:line, key, value and rule.

    CSV values are text and JSON values are typed; both go through the same rules.
    """

    __slots__ = ("place", "values")

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        self.values, self.place = values, place

    def wrong(self, key: str, rule: str) -> TraceError:
        return TraceError(self.place, rule, key, self.values.get(key))

    def get(self, key: str) -> Any:
        value = self.values.get(key)
        if value is None:
            raise TraceError(self.place, f"{key} is missing")
        return value

    def has(self, key: str) -> bool:
        """It is there, and neither null nor empty text."""
        return self.values.get(key) not in (None, "")

    def earlier(self, key: str, place: int) -> int:
        """The place of a line before this one, which is at `place`; both from 0."""
        value = self.count(key)
        if value >= place:
            raise self.wrong(key, f"must be the place of an earlier request, less than {place}")
        return value

    def count(self, key: str) -> int:
        """An integer of at least 0, a number of tokens."""
        value = self.get(key)
        if isinstance(value, str) and value.strip().isdecimal():
            return int(value)
        if type(value) is not int or value < 0:
            raise self.wrong(key, "must be an integer of at least 0")
        return value

    def number(self, key: str) -> float:
        """A finite number."""
        value = self.get(key)
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise self.wrong(key, "must be a number")
        return number

    def seconds(self, key: str) -> float:
        """A number from 0 to 1e15, of seconds unless the caller scales it."""
        number = self.number(key)
        if number < 0:
            raise self.wrong(key, "must not be negative")
        if number > 1e15:
            raise self.wrong(key, "must be at most 1e15")
        return number

    def wait(self, key: str) -> float | None:
        """A number of seconds; negative means that the server refused the request."""
        number = self.number(key)
        return None if number < 0 else number

    def moment(self, key: str) -> tuple[datetime, float]:
        """A date and time with any number of fractional digits: its whole minute, and the seconds after that."""
        value = self.get(key)
        try:
            whole = datetime.fromisoformat(value[:19])
            fraction = float(f"0{value[19:]}") if value[19:] else 0.0
        except (TypeError, ValueError):
            raise self.wrong(key, "must be a time like 2023-11-16 18:17:03.9799600") from None
        return whole.replace(second=0), whole.second + fraction

    def text(self, key: str) -> str:
        """Text that is not empty; a JSON number is written out."""
        value = self.get(key)
        if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
            raise self.wrong(key, "must be text that is not empty")
        return str(value)

    def blocks(self, key: str) -> tuple[int, ...]:
        """Prefix block ids: a JSON list of integers, or integers separated by spaces."""
        value = self.get(key)
        if isinstance(value, str) and all(part.isdecimal() for part in value.split()):
            return tuple(map(int, value.split()))
        if not isinstance(value, list) or not all(type(block) is int for block in value):
            raise self.wrong(key, "must be a list of integers")
        return tuple(value)


def seconds_between(start: tuple[datetime, float], end: tuple[datetime, float]) -> float:
    """Seconds from `start` to `end`, each as `Row.moment` gives it: no digit of the fraction is lost on the way."""
    minutes: timedelta = end[0] - start[0]
    return minutes.total_seconds() + (end[1] - start[1])
