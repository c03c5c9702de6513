"""A quantity over time in memory that does not grow: neighbouring pieces of time become one when there are too many."""

from __future__ import annotations

from collections.abc import Iterator

PIECES = 160  # at most twice as many are kept


class Series:
    """Feed it intervals in order of time with `add`. Where nothing is added it is 0."""

    def __init__(self, piece: int = 1_000_000) -> None:
        """piece: how long a piece of time is at first"""
        self.piece = piece
        self._areas: list[float] = []
        self._most: list[float] = []

    def add(self, start: int, end: int, mean: float, most: float) -> None:
        """From start to end it was `mean` on average and `most` at most."""
        while end > self.piece * 2 * PIECES:
            self._halve()
        areas, most_of, piece = self._areas, self._most, self.piece
        missing = -(-end // piece) - len(areas)
        if missing > 0:
            areas += [0.0] * missing
            most_of += [0.0] * missing
        at = start // piece
        while start < end:
            until = min(end, (at + 1) * piece)
            areas[at] += mean * (until - start)
            if most > most_of[at]:
                most_of[at] = most
            start, at = until, at + 1

    def _halve(self) -> None:
        areas, most = self._areas, self._most
        if len(areas) % 2:
            areas.append(0.0)
            most.append(0.0)
        self._areas = [one + other for one, other in zip(areas[::2], areas[1::2], strict=True)]
        self._most = [max(pair) for pair in zip(most[::2], most[1::2], strict=True)]
        self.piece *= 2

    def points(self) -> Iterator[tuple[int, float, float]]:
        """(when it begins, mean, most) of every piece, all of them `piece` long."""
        for at, (area, most) in enumerate(zip(self._areas, self._most, strict=True)):
            yield at * self.piece, area / self.piece, most
