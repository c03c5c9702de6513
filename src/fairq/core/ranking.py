"""Ranking: names with keys, of which the least is at hand.

Every policy that says "the one with the least X" keeps one. `first` is O(1), `put` and `drop` O(log n) amortised.
Stale entries stay inside the heap until they reach its top or outnumber the live ones.
"""

from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, TypeVar

Name = TypeVar("Name", bound=Any)  # what is ranked; orders as the last tie-break
Key = TypeVar("Key", bound=Any)  # int, Fraction or a tuple of them


class Ranking(dict[Name, Key]):
    """A dict to read, name -> key; `put`, `drop` and `clear` are the only ways to change it.

    heap  its first entry is the least (key, name); there is one if the dict has any
    """

    __slots__ = ("heap",)

    def __init__(self) -> None:
        self.heap: list[tuple[Key, Name]] = []

    def first(self) -> tuple[Key, Name] | None:
        """The least (key, name)."""
        return self.heap[0] if self.heap else None

    def put(self, name: Name, key: Key) -> None:
        """Add `name`, or move it."""
        heap = self.heap
        self[name] = key
        if heap and heap[0][1] == name:
            heapreplace(heap, (key, name))
            first = heap[0]
            if self.get(first[1]) != first[0]:
                self._expose()
        else:
            heappush(heap, (key, name))
            if len(heap) > 2 * len(self) + 64:
                self.heap = [(key, name) for name, key in self.items()]
                heapify(self.heap)

    def drop(self, name: Name) -> None:
        """Remove `name`; nothing happens when it is not there."""
        if self.pop(name, None) is not None and (heap := self.heap)[0][1] == name:
            heappop(heap)
            if heap and self.get(heap[0][1]) != heap[0][0]:
                self._expose()

    def clear(self) -> None:
        super().clear()
        self.heap.clear()

    def _expose(self) -> None:
        """Take stale entries off the top."""
        heap, get = self.heap, self.get
        while heap and get(heap[0][1]) != heap[0][0]:
            heappop(heap)
