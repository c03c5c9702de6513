"""The prefix cache: which blocks of past prompts are still in memory, and which go first.

A radix tree over blocks. The id of a block stands for the whole prompt up to its end, so a node's children need no
table of their own: one dict holds all nodes, each with its parent. A parent stays longer than its children, so the
longest match is found by halving. A block that running sequences use has a reference count. One that nobody uses stays
until its memory is wanted; then the least recently used goes. Nodes of one prompt are let go leaf first, so the queue
of the unused never holds a parent before its child, and what is dropped is always a leaf.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairq.core.errors import check


class PrefixCache:
    """users   of each block in memory: how many running sequences hold it
    hits, asked   blocks found, and blocks looked for, over all admissions
    """

    __slots__ = ("_idle", "_parent", "asked", "evicted", "hits", "users")

    def __init__(self) -> None:
        self.users: dict[int, int] = {}
        self._parent: dict[int, int | None] = {}
        self._idle: dict[int, None] = {}  # blocks without user, least recently used first
        self.hits = self.asked = self.evicted = 0

    @property
    def idle(self) -> int:
        """Blocks in memory that nobody uses: as good as free."""
        return len(self._idle)

    @property
    def held(self) -> int:
        """Blocks in memory that somebody uses."""
        return len(self.users) - len(self._idle)

    @property
    def hit_ratio(self) -> float | None:
        return self.hits / self.asked if self.asked else None

    def match(self, prefix: Sequence[int]) -> int:
        """Blocks at its beginning that are in memory. Changes nothing. O(log of their number): parents stay longer."""
        users, low, high = self.users, 0, len(prefix)
        while low < high:
            middle = (low + high) // 2
            if prefix[middle] in users:
                low = middle + 1
            else:
                high = middle
        return low

    def unused(self, prefix: Sequence[int], matched: int) -> int:
        """Of its first blocks, those that nobody uses yet: `take` moves so many from idle to held."""
        count = 0
        for i in range(matched - 1, -1, -1):
            if prefix[i] not in self._idle:
                break  # a block's parent has at least its users
            count += 1
        return count

    def take(self, prefix: Sequence[int], most: int | None = None) -> int:
        """A sequence is admitted: it uses the blocks that match, at most `most` of them; how many. Counts the hits."""
        matched = self.match(prefix)
        self.asked += len(prefix)
        if most is not None:
            matched = min(matched, most)
        self.hits += matched
        for block in prefix[:matched]:
            self._idle.pop(block, None)
            self.users[block] += 1
        return matched

    def add(self, prefix: Sequence[int], start: int, end: int) -> int:
        """Blocks start..end of a sequence that holds those before have been computed; it uses them from now on.

        How many were there already, because another sequence computed them meanwhile: its own copies are free.
        """
        double = 0
        for i in range(start, end):
            block = prefix[i]
            if block in self.users:
                double += 1
                self._idle.pop(block, None)
                self.users[block] += 1
            else:
                self.users[block] = 1
                self._parent[block] = prefix[i - 1] if i else None
        return double

    def release(self, prefix: Sequence[int], count: int) -> int:
        """A sequence that uses the first `count` blocks has left; how many of them nobody uses now."""
        freed = 0
        for block in reversed(prefix[:count]):
            self.users[block] -= 1
            if not self.users[block]:
                self._idle[block] = None
                freed += 1
        return freed

    def evict(self, count: int) -> int:
        """Drop the least recently used of those that nobody uses, at most `count`; how many."""
        count = min(count, len(self._idle))
        for _ in range(count):
            block = next(iter(self._idle))
            del self._idle[block], self.users[block], self._parent[block]
        self.evicted += count
        return count

    def validate(self) -> None:
        """For tests. Raises ValidationFailed."""
        for block, users in self.users.items():
            check(users >= 0, f"block {block} has {users} users")
            check((users == 0) == (block in self._idle), f"block {block}: idle and used at once, or neither")
            parent = self._parent[block]
            check(parent is None or parent in self.users, f"block {block} has lost its parent")
            check(parent is None or self.users[parent] >= users, f"block {block} has more users than its parent")
        order = {block: place for place, block in enumerate(self._idle)}
        for block, place in order.items():
            parent = self._parent[block]
            check(parent is None or order.get(parent, place + 1) > place, f"block {block} would go after its parent")


def hit_ratio(prefixes: Sequence[Sequence[int]] | None = None, blocks: int | None = None) -> float | None:
    """The share of blocks found when the prompts come one by one, into a cache of `blocks` (None: without limit)."""
    cache, room = PrefixCache(), blocks
    for prefix in prefixes or ():
        matched = cache.take(prefix)
        wanted = len(prefix) - matched
        if room is not None:
            room -= wanted
            if room < 0:
                room += cache.evict(-room)
            if room < 0:  # the prompt alone is longer than the cache: its end is not kept
                wanted, room = wanted + room, 0
        cache.add(prefix, matched, matched + wanted)
        cache.release(prefix, matched + wanted)
    return cache.hit_ratio
