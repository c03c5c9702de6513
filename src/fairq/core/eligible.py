"""Eligible: the earliest deadline among those that are eligible, for schedulers that ask for both (EEVDF)."""

from heapq import heapify, heappop, heappush
from typing import Any, Final

from fairq.core.number import Number
from fairq.core.ranking import Ranking

push: Final = heappush  # compiled, a name from elsewhere is looked up at each use
pop: Final = heappop

Key = Any
"""(eligible from, deadline). Which tuple it is counts: compiled code would copy one whose type it knew."""


class Eligible(Ranking[str, Key]):
    """Names with keys; `earliest` is the only way to ask it (the heap of a plain ranking stays empty).

    Everybody waits in `pending` until found eligible, then in `ready` by deadline. So `earliest` is O(log n) amortised
    while the mean grows; where it has gone back, whoever is not eligible any more is sent back when it comes to the
    top. An entry whose key is not the present one is stale, and goes when it comes to the top.
    """

    __slots__ = ("pending", "ready")

    def __init__(self) -> None:
        super().__init__()
        self.pending: list[Any] = []  # (eligible from, name, key)
        self.ready: list[Any] = []  # (deadline, name, key)

    def put(self, name: str, key: Key) -> None:
        self.key[name] = key
        push(self.pending, (key[0], name, key))
        if len(self.pending) + len(self.ready) > 4 * len(self.key) + 64:
            self.pending, self.ready = [(key[0], name, key) for name, key in self.key.items()], []
            heapify(self.pending)

    def drop(self, name: str) -> None:
        self.key.pop(name, None)

    def clear(self) -> None:
        super().clear()
        self.pending.clear()
        self.ready.clear()

    def earliest(self, total: Number, weight: Number) -> str | None:
        """Of those with (eligible from) * weight <= total the one of least (deadline, name); no division is needed."""
        pending, ready = self.pending, self.ready
        get: Any = self.key.get
        while pending:
            since, name, key = pending[0]
            if get(name) is key:
                if since * weight > total:
                    break
                push(ready, (key[1], name, key))
            pop(pending)
        while ready:
            _, name, key = ready[0]
            if get(name) is key:
                if key[0] * weight <= total:
                    first: str = name
                    return first
                push(pending, (key[0], name, key))
            pop(ready)
        return None

    def nearest(self) -> str:
        """Who becomes eligible first, where nobody is; there must be one. O(n)."""
        return min(self.key, key=lambda name: (self.key[name], name))
