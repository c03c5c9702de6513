"""Prompts that begin alike: the ids of their blocks."""

from __future__ import annotations

Text = tuple[tuple[object, int], ...]
"""Pieces of a prompt in order: what it is, and how many tokens. Equal pieces are equal text."""


class Blocks:
    """Gives every distinct beginning of a prompt, in whole blocks and at its end, an id of its own."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._ids: dict[object, int] = {}

    def of(self, text: Text) -> tuple[int, ...]:
        """Ids of the blocks of a prompt; two prompts share exactly those that end before they differ."""
        ids, parent = [], -1
        room, inside = self.size, []
        for what, tokens in text:
            start = 0
            while start < tokens:
                taken = min(room, tokens - start)
                inside.append((what, start, taken))
                start += taken
                room -= taken
                if not room:
                    parent = self._id(parent, inside)
                    ids.append(parent)
                    room, inside = self.size, []
        if inside:
            ids.append(self._id(parent, inside))
        return tuple(ids)

    def _id(self, parent: int, inside: list[tuple[object, int, int]]) -> int:
        return self._ids.setdefault((parent, tuple(inside)), len(self._ids))


def tokens(text: Text) -> int:
    return sum(size for _, size in text)
