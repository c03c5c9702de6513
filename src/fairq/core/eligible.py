"""Eligible: the earliest deadline among those that are eligible, for schedulers that ask for both (EEVDF)."""

from heapq import heappop, heappush
from typing import Final

from fairq.core.number import Number
from fairq.core.ranking import Ranking

push: Final = heappush  # compiled, a name from elsewhere is looked up at each use
pop: Final = heappop

Key = tuple[Number, Number]
"""Eligible from, deadline."""


class Eligible(Ranking[str, Key]):
    """Names with keys; `earliest` is the only way to ask it (the heap of a plain ranking stays empty).

    Everybody waits in `pending` until found eligible, then in `ready` by deadline. So `earliest` is O(log n) amortised
    while the mean grows; where it has gone back, whoever is not eligible any more is sent back when it comes to the
    top. Who has another key by now has been put again: such an entry goes when it comes to the top.

    pending    eligible from -> names; equal ones, of which there are many, become so together
    starts     its keys, a heap
    ready      deadline -> names, a heap: of equal ones only names are compared
    deadlines  its keys, a heap
    """

    __slots__ = ("deadlines", "entries", "pending", "ready", "starts")

    def __init__(self) -> None:
        super().__init__()
        self.pending: dict[Number, list[str]] = {}
        self.starts: list[Number] = []
        self.ready: dict[Number, list[str]] = {}
        self.deadlines: list[Number] = []
        self.entries = 0  # names in both

    def put(self, name: str, key: Key) -> None:
        self.key[name] = key
        self.wait(name, key[0])
        if self.entries > 4 * len(self.key) + 64:
            keys = dict(self.key)
            self.clear()
            self.key.update(keys)
            for one, (since, _) in keys.items():
                self.wait(one, since)

    def wait(self, name: str, since: Number) -> None:
        """Until it is eligible."""
        self.entries += 1
        names = self.pending.get(since)
        if names is None:
            self.pending[since] = [name]
            push(self.starts, since)
        else:
            names.append(name)

    def drop(self, name: str) -> None:
        self.key.pop(name, None)

    def clear(self) -> None:
        super().clear()
        for held in (self.pending, self.starts, self.ready, self.deadlines):
            held.clear()
        self.entries = 0

    def earliest(self, total: Number, weight: Number) -> str | None:
        """Of those with (eligible from) * weight <= total the one of least (deadline, name); no division is needed."""
        keys, starts, ready, deadlines = self.key, self.starts, self.ready, self.deadlines
        while starts and starts[0] * weight <= total:
            since: Number = pop(starts)
            for name in self.pending.pop(since):
                key = keys.get(name)
                if key is None or key[0] != since:
                    self.entries -= 1
                elif (names := ready.get(key[1])) is None:
                    ready[key[1]] = [name]
                    push(deadlines, key[1])
                else:
                    push(names, name)
        while deadlines:
            deadline = deadlines[0]
            names = ready[deadline]
            while names:
                name = names[0]
                key = keys.get(name)
                if key is not None and key[1] == deadline:
                    if key[0] * weight <= total:
                        return name
                    self.wait(name, key[0])
                pop(names)
                self.entries -= 1
            del ready[deadline]
            pop(deadlines)
        return None

    def nearest(self) -> str:
        """Who becomes eligible first, where nobody is; there must be one. O(n)."""
        return min(self.key, key=lambda name: (self.key[name], name))
