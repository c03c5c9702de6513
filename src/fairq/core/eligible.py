"""Eligible: the earliest deadline among those that are eligible, for schedulers that ask for both (EEVDF, WF2Q)."""

from fairq.core.number import Number
from fairq.core.ranking import Ranking

Key = tuple[Number, Number]
"""(eligible from, deadline)"""


class Eligible(Ranking[str, Key]):
    """A ranking by (eligible from, deadline), with a second heap by deadline of those found eligible so far.

    `earliest` is O(log n) amortised while the mean grows; where it has gone back, whoever is not eligible any more is
    sent back when it comes to the top.
    """

    __slots__ = ("pending", "ready")

    def __init__(self) -> None:
        super().__init__()
        self.pending: Ranking[str, Number] = Ranking()  # by eligibility
        self.ready: Ranking[str, Number] = Ranking()  # by deadline

    def put(self, name: str, key: Key) -> None:
        super().put(name, key)
        self.ready.drop(name)
        self.pending.put(name, key[0])

    def drop(self, name: str) -> None:
        super().drop(name)
        self.ready.drop(name)
        self.pending.drop(name)

    def clear(self) -> None:
        super().clear()
        self.ready.clear()
        self.pending.clear()

    def earliest(self, total: Number, weight: Number) -> str | None:
        """Of those with (eligible from) * weight <= total the one of least (deadline, name); no division is needed."""
        pending, ready = self.pending, self.ready
        while (first := pending.first()) is not None and first[0] * weight <= total:
            pending.drop(first[1])
            ready.put(first[1], self[first[1]][1])
        while (first := ready.first()) is not None and self[first[1]][0] * weight > total:
            ready.drop(first[1])
            pending.put(first[1], self[first[1]][0])
        return None if first is None else first[1]
