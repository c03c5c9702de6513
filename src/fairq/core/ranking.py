"""Ranking: names with keys, of which the least is at hand.

Every policy that says "the one with the least X" keeps one. `first` is O(1), `put` and `drop` O(log n) amortised.
Stale entries stay inside the heap until they reach its top or outnumber the live ones.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, Final, Generic, TypeVar

push: Final = heappush  # compiled, a name from elsewhere is looked up at each use
pop: Final = heappop
replace: Final = heapreplace

Name = TypeVar("Name", bound=Any)  # what is ranked; orders as the last tie-break
Key = TypeVar("Key", bound=Any)  # int, Fraction or a tuple of them


class Ranking(Generic[Name, Key]):
    """`put`, `drop` and `clear` are the only ways to change it. (It has a dict and is none: compiled, the methods of a
    subclass of dict are called by name.)

    key   name -> its key
    heap  its first entry is the least (key, name); there is one if there is any name
    """

    __slots__ = ("heap", "key")

    def __init__(self) -> None:
        self.key: dict[Name, Key] = {}
        self.heap: list[tuple[Key, Name]] = []

    def __contains__(self, name: object) -> bool:
        return name in self.key

    def __iter__(self) -> Iterator[Name]:
        return iter(self.key)

    def __len__(self) -> int:
        return len(self.key)

    def first(self) -> tuple[Key, Name] | None:
        """The least (key, name)."""
        return self.heap[0] if self.heap else None

    def put(self, name: Name, key: Key) -> None:
        """Add `name`, or move it."""
        heap, keys = self.heap, self.key
        keys[name] = key
        if heap and heap[0][1] == name:
            replace(heap, (key, name))
            first = heap[0]
            if keys.get(first[1]) != first[0]:
                self._expose()
        else:
            push(heap, (key, name))
            if len(heap) > 2 * len(keys) + 64:
                self.heap = [(key, name) for name, key in keys.items()]
                heapify(self.heap)

    def drop(self, name: Name) -> None:
        """Remove `name`; nothing happens when it is not there."""
        if self.key.pop(name, None) is not None and (heap := self.heap)[0][1] == name:
            pop(heap)
            if heap and self.key.get(heap[0][1]) != heap[0][0]:
                self._expose()

    def clear(self) -> None:
        self.key.clear()
        self.heap.clear()

    def _expose(self) -> None:
        """Take stale entries off the top."""
        heap, get = self.heap, self.key.get
        while heap and get(heap[0][1]) != heap[0][0]:
            pop(heap)
