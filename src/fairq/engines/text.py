"""What a simulated engine says: text, lengths and vectors that are functions of the prompt alone."""

from __future__ import annotations

import math
from collections import OrderedDict
from hashlib import blake2b
from itertools import accumulate
from random import Random

TOKEN_BYTES = 4  # a prompt's token is four bytes of its text
BLOCK_TOKENS = 16  # prefixes are remembered in blocks of this size

_WORDS = (  # noqa: SIM905 - reads better than eighty quoted words
    "a each every some the this that one fair equal short long next early late quiet busy waiting patient "
    "ready tenant queue request token slot server clock meter weight share turn burst batch stream answer "
    "waits runs comes leaves joins shares serves counts charges balances follows repeats returns stays "
    "first again slowly soon often never always and or but then while until before after with without"
).split()


def token_count(text: str | bytes) -> int:
    """Tokens of a prompt's text."""
    data = text.encode() if isinstance(text, str) else text
    return -(-len(data) // TOKEN_BYTES)


def generator(*parts: object) -> Random:
    """A random generator that depends on nothing but `parts`, on any machine."""
    digest = blake2b("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"), digest_size=8)
    return Random(int.from_bytes(digest.digest(), "big"))


def natural_length(draw: Random, median: int) -> int:
    """How long an answer is that nobody cuts off: log-normal, as recorded ones roughly are; at least 1."""
    return max(1, round(median * math.exp(draw.gauss(0.0, 0.8))))


def words(draw: Random, count: int) -> list[str]:
    """`count` tokens, one word each."""
    chosen = draw.choices(_WORDS, k=count)
    return [word if number == 0 else f" {word}" for number, word in enumerate(chosen)]


def cut_at_stop(tokens: list[str], stops: list[str]) -> tuple[list[str], bool]:
    """The tokens up to the one that completes the first stop string, whose text ends before that string.

    Says whether a stop string was found.
    """
    text = "".join(tokens)
    ends = list(accumulate(map(len, tokens)))
    # the match completed first wins, and of those the longest
    found = [(at + len(stop), at) for stop in stops if (at := text.find(stop)) >= 0]
    if not found:
        return tokens, False
    end, start = min(found)
    last = next(number for number, reached in enumerate(ends) if reached >= end)
    begins = [0, *ends]
    return [token[: max(0, start - begins[n])] for n, token in enumerate(tokens[: last + 1])], True


def vector(text: bytes, dimensions: int) -> list[float]:
    """A unit vector."""
    draw = generator("embedding", text)
    raw = [draw.gauss(0.0, 1.0) for _ in range(dimensions)]
    length = math.sqrt(math.fsum(value * value for value in raw))
    return [value / length for value in raw]


class PrefixCache:
    """Remembers prompts by whole blocks from their start; least recently used blocks are forgotten first.

    A model of what an engine's prefix cache saves. It keeps a capacity of its own beside the pool.
    """

    def __init__(self, capacity_tokens: int) -> None:
        self.capacity = capacity_tokens // BLOCK_TOKENS
        self._blocks: OrderedDict[bytes, None] = OrderedDict()

    def cached(self, prompt: bytes) -> int:
        """Tokens of `prompt` that are known, a multiple of the block size; the whole prompt is known next time."""
        size = BLOCK_TOKENS * TOKEN_BYTES
        name = b""
        known = 0
        unbroken = True
        for start in range(0, len(prompt) - size + 1, size):
            name = blake2b(name + prompt[start : start + size], digest_size=16).digest()
            if name not in self._blocks:
                unbroken = False
            known += unbroken
            self._blocks[name] = None
            self._blocks.move_to_end(name)
        while len(self._blocks) > self.capacity:
            self._blocks.popitem(last=False)
        return known * BLOCK_TOKENS
