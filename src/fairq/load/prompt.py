"""Prompts of a wanted length, made from nothing but common words.

A recorded trace holds lengths, no text. A request is replayed with as many words as its prompt had tokens:
each of `WORDS` is one token with a space before it in the tokenisers of the usual models. The engine's own
count (chat template, special tokens) comes on top and is what its `usage` reports.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

_TEXT = (
    "the of and to in a is that for it with as on be at by this have from or one had not but what all "
    "were when we there can an your which their said if do will each about how up out them then she many "
    "some so these would other into has more her two like him see time could no make than first been its "
    "who now people my made over did down only way find use may water long little very after called just "
    "where most know"
)
WORDS = _TEXT.split()


def words(count: int, key: str) -> list[str]:
    """`count` words; the same key gives the same words, so that an equal key is an equal prefix block."""
    return random.Random(key).choices(WORDS, k=count)


def prompt(tokens: int, key: str, blocks: Sequence[int | str] = (), block_tokens: int = 512) -> str:
    """A prompt of `tokens` words (at least one).

    Without `blocks` the words follow from `key` alone: different requests share no prefix. With the recorded
    prefix blocks, each block of `block_tokens` words follows from its id: requests share the recorded prefix.
    """
    tokens = max(tokens, 1)
    if not blocks:
        return " ".join(words(tokens, key))
    text: list[str] = []
    for block in blocks[: -(-tokens // block_tokens)]:
        text += words(min(block_tokens, tokens - len(text)), f"block:{block}")
    if len(text) < tokens:
        text += words(tokens - len(text), key)
    return " ".join(text)
