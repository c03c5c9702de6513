"""Ranking: a min-heap whose entries can be re-keyed and dropped.

Every policy that says "the one with the least X" keeps one. `first` is O(1), `put` and `drop` O(log n) amortised.
Stale entries stay inside the heap until they reach its top or outnumber the live ones.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, Generic, TypeVar

Name = TypeVar("Name", bound=Any)  # what is ranked; orders as the last tie-break
Key = TypeVar("Key", bound=Any)  # int, Fraction or a tuple of them


class Ranking(Generic[Name, Key]):
    __slots__ = ("_heap", "_key")

    def __init__(self) -> None:
        self._heap: list[tuple[Key, Name]] = []
        self._key: dict[Name, Key] = {}

    def __len__(self) -> int:
        return len(self._key)

    def __contains__(self, name: Name) -> bool:
        return name in self._key

    def __iter__(self) -> Iterator[Name]:
        return iter(self._key)

    def key(self, name: Name) -> Key:
        return self._key[name]

    def first(self) -> tuple[Key, Name] | None:
        """The least (key, name)."""
        return self._heap[0] if self._heap else None

    def put(self, name: Name, key: Key) -> None:
        """Add `name`, or move it."""
        heap, keys = self._heap, self._key
        keys[name] = key
        if heap and heap[0][1] == name:
            heapreplace(heap, (key, name))
            first = heap[0]
            if keys.get(first[1]) != first[0]:
                self._expose()
        else:
            heappush(heap, (key, name))
            if len(heap) > 2 * len(keys) + 64:
                self._compact()

    def drop(self, name: Name) -> None:
        """Remove `name`; nothing happens when it is not there."""
        if self._key.pop(name, None) is not None and self._heap[0][1] == name:
            self._expose()

    def clear(self) -> None:
        self._heap.clear()
        self._key.clear()

    def ordered(self) -> list[tuple[Key, Name]]:
        """All entries, least first; O(n log n), for displays."""
        return sorted((key, name) for name, key in self._key.items())

    def _expose(self) -> None:
        heap, get = self._heap, self._key.get
        while heap and get(heap[0][1]) != heap[0][0]:
            heappop(heap)

    def _compact(self) -> None:
        self._heap = [(key, name) for name, key in self._key.items()]
        heapify(self._heap)
