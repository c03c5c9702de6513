"""Workloads whose prompts begin alike. Lengths are tokens, times seconds."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from fairq.traces.request import Request
from fairq.workloads.arrivals import allowed, poisson
from fairq.workloads.lengths import geometric
from fairq.workloads.prompts import Blocks, Text, tokens


def _request(blocks: Blocks, text: Text, output: int, client: str, at: float) -> Request:
    return Request(arrival=at, client=client, input_tokens=tokens(text), output_tokens=output, blocks=blocks.of(text))


def shared_prefix(
    chance: Random,
    *,
    rate: float = 2,
    duration: float = 60,
    clients: int = 4,
    prefix: int = 1024,
    input: float = 128,
    output: float = 128,
    block: int = 16,
) -> list[Request]:
    """Poisson arrivals; each client has a system prompt of `prefix` tokens before every question of its own."""
    blocks, made = Blocks(block), []
    for place, at in enumerate(poisson(chance, rate, duration)):
        client = f"c{chance.randrange(clients)}"
        text: Text = ((client, prefix), (place, geometric(chance, input)))
        made.append(_request(blocks, text, geometric(chance, output), client, at))
    return made


def multi_turn(
    chance: Random,
    *,
    conversations: float = 1,
    duration: float = 60,
    clients: int = 4,
    turns: int = 5,
    system: int = 64,
    input: float = 64,
    output: float = 128,
    think: float = 5,
    block: int = 16,
) -> list[Request]:
    """`conversations` begin per second, each of `turns` requests: every prompt is all that was said so far.

    A turn comes after the answer before it, and about `think` seconds of reading (exponential).
    """
    blocks, told = Blocks(block), []
    allowed(conversations * duration * turns)
    for number, at in enumerate(poisson(chance, conversations, duration)):
        client = f"c{chance.randrange(clients)}"
        text: Text = (("system", system),)
        turn = []
        for k in range(turns):
            text = (*text, ((number, k, "said"), geometric(chance, input)))
            answer = geometric(chance, output)
            turn.append((_request(blocks, text, answer, client, at), chance.expovariate(1 / think) if k else 0.0))
            text = (*text, ((number, k, "answered"), answer))
        told.append(turn)
    made: list[Request] = []
    for turn in told:
        for k, (request, pause) in enumerate(turn):
            made.append(replace(request, after=len(made) - 1, think=pause) if k else request)
    return made


def tree_of_thoughts(
    chance: Random,
    *,
    trees: int = 4,
    clients: int = 4,
    branches: int = 2,
    height: int = 4,
    prefix: int = 546,
    output: int = 256,
    every: float = 10,
    block: int = 16,
) -> list[Request]:
    """`trees` per client, one every `every` seconds. A thought is `output` tokens after all thoughts above it.

    A tree asks for branches + branches^2 + ... + branches^height thoughts: 30 with two branches, 340 with four, as in
    "Locality-aware Fair Scheduling in LLM Serving" (arXiv 2501.14312). A thought waits for the one above it.
    """
    blocks, made = Blocks(block), []
    allowed(trees * clients * sum(branches**depth for depth in range(1, min(height, 64) + 1)))
    for number in range(trees):
        for c in range(clients):
            name: Text = ((("tree", number, c), prefix),)
            level: list[tuple[Text, int | None]] = [(name, None)]
            for depth in range(height):
                below: list[tuple[Text, int | None]] = []
                for text, above in level:
                    for _ in range(branches):
                        request = _request(blocks, text, output, f"c{c}", number * every)
                        made.append(replace(request, after=above))
                        thought = ((number, c, depth, len(made)), output)
                        below.append(((*text, thought), len(made) - 1))
                level = below
    return made


def document_questions(
    chance: Random,
    *,
    rate: float = 1,
    duration: float = 60,
    clients: int = 4,
    documents: int = 4,
    document: int = 21_449,
    input: float = 32,
    output: int = 15,
    block: int = 16,
) -> list[Request]:
    """Poisson arrivals of short questions about one of each client's `documents` long documents (LooGLE's lengths)."""
    blocks, made = Blocks(block), []
    for place, at in enumerate(poisson(chance, rate, duration)):
        client = f"c{chance.randrange(clients)}"
        text: Text = (((client, chance.randrange(documents)), document), (place, geometric(chance, input)))
        made.append(_request(blocks, text, output, client, at))
    return made
