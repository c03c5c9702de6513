"""Rules about the key-value cache that both engines obey."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fairq.sim.engine.call import Call
from fairq.sim.engine.cost import Limits


def could_ever_fit(call: Call, limits: Limits) -> bool:
    """Alone in the engine, up to its limit."""
    tokens = call.prompt + call.job.limit
    if limits.reserve == "peak":
        return tokens < limits.pool_tokens  # LightLLM keeps one token free
    return limits.blocks_for(tokens) + limits.watermark <= limits.blocks


def peak(lengths: Iterable[tuple[int, int]]) -> int:
    """The most tokens in the cache at any later time, if every sequence runs to its limit and nobody else comes.

    lengths  (tokens in the cache, tokens still to come) of each. In order of what is still to come, longest first: when
             the k-th ends, k sequences have grown by as much as it had left.
    """
    most = total = 0
    for k, (has, left) in enumerate(sorted(lengths, key=lambda one: -one[1]), 1):
        total += has
        most = max(most, total + k * left)
    return most


def growing(call: Call) -> tuple[int, int]:
    """(has, left) as LightLLM counts them."""
    return call.prompt + max(call.produced, 1), call.job.limit - max(call.produced, 0) - 1


VICTIMS: dict[str, Callable[[Call], Any]] = {
    "last": lambda call: call.order,
    "latest": lambda call: (call.arrival, call.job.seq),
    "priority": lambda call: (-call.job.priority, call.arrival, call.job.seq),
}


def victim(running: Sequence[Call], rule: str) -> Call:
    """Who makes place when a sequence needs a block and none is free."""
    return max(running, key=VICTIMS[rule])
