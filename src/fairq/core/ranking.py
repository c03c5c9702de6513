"""Ranking: names with keys, of which the least is at hand.

Every policy that says "the one with the least X" keeps one. `first` is O(1), `put` and `drop` O(log n) amortised.
Only keys are compared in the heap; names are where keys are equal. Stale entries stay inside until they reach the top
or outnumber the live ones.
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
    """`put`, `drop` and `clear` are the only ways to change it. (It has dicts and is none: compiled, the methods of a
    subclass of dict are called by name.)

    key      name -> its key
    heap     all keys, each once, the least at the top
    names    key -> names that have it, or had it; a heap as well
    entries  how many names there are in those
    """

    __slots__ = ("entries", "heap", "key", "names")

    def __init__(self) -> None:
        self.key: dict[Name, Key] = {}
        self.heap: list[Key] = []
        self.names: dict[Key, list[Name]] = {}
        self.entries = 0

    def __contains__(self, name: object) -> bool:
        return name in self.key

    def __iter__(self) -> Iterator[Name]:
        return iter(self.key)

    def __len__(self) -> int:
        return len(self.key)

    def first(self) -> tuple[Key, Name] | None:
        """The least (key, name)."""
        if not self.heap:
            return None
        key = self.heap[0]
        return key, self.names[key][0]

    def least(self) -> Name | None:
        """The name of it."""
        return self.names[self.heap[0]][0] if self.heap else None

    def put(self, name: Name, key: Key) -> None:
        """Add `name`, or move it."""
        heap, names = self.heap, self.names
        self.key[name] = key
        equals = names.get(key)
        if heap and equals is None:
            top = heap[0]
            firsts = names[top]
            if len(firsts) == 1 and firsts[0] == name:  # the usual case: the first goes on, alone with both its keys
                del names[top]
                names[key] = firsts
                replace(heap, key)
                self._expose()
                return
        if equals is None:
            names[key] = [name]
            push(heap, key)
        else:
            push(equals, name)
        self.entries += 1
        if names[heap[0]][0] == name:
            self._expose()
        if self.entries > 2 * len(self.key) + 64:
            self._rebuild()

    def drop(self, name: Name) -> None:
        """Remove `name`; nothing happens when it is not there."""
        if self.key.pop(name, None) is not None:
            self._expose()

    def clear(self) -> None:
        self.key.clear()
        self.heap.clear()
        self.names.clear()
        self.entries = 0

    def _expose(self) -> None:
        """Take stale entries off the top."""
        heap, names, keys = self.heap, self.names, self.key
        while heap:
            top = heap[0]
            equals = names[top]
            if keys.get(equals[0]) == top:
                return
            if len(equals) > 1:
                pop(equals)
            else:
                del names[top]
                pop(heap)
            self.entries -= 1

    def _rebuild(self) -> None:
        self.names.clear()
        for name, key in self.key.items():
            self.names.setdefault(key, []).append(name)
        for equals in self.names.values():
            heapify(equals)
        self.heap[:] = self.names
        heapify(self.heap)
        self.entries = len(self.key)
