"""How long one step of a simulated engine takes, and what an engine can hold."""

from __future__ import annotations

from dataclasses import dataclass

from fairq.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class StepModel:
    """One iteration of continuous batching takes

        a + b * prompt tokens prefilled + c * sequences decoding + d * context tokens of those sequences

    nanoseconds: the weights are read once, prefill is compute, each sequence has some overhead, and
    attention reads the cache.
    """

    a: int
    b: int
    c: int
    d: int

    def duration(self, prefill: int, decoding: int, context: int) -> int:
        """Nanoseconds of a step."""
        return self.a + self.b * prefill + self.c * decoding + self.d * context


@dataclass(frozen=True, slots=True)
class EngineModel:
    """A step model and the limits of the engine it times."""

    step: StepModel
    max_sequences: int = 32  # running at once
    pool_tokens: int = 10_000  # key-value cache
    block_tokens: int = 16  # the cache is handed out in blocks of this size
    step_tokens: int = 2_048  # prefilled and decoded in one step
    context_length: int = 4_096  # prompt and output of one sequence

    def __post_init__(self) -> None:
        for name in ("max_sequences", "pool_tokens", "block_tokens", "step_tokens", "context_length"):
            if getattr(self, name) < 1:
                raise ConfigError(f"engine.{name}", getattr(self, name), "must be at least 1")
        if self.step.a < 1:
            raise ConfigError("engine.step.a", self.step.a, "a step takes at least 1 ns")
        if min(self.step.b, self.step.c, self.step.d) < 0:
            raise ConfigError("engine.step", self.step, "times are not negative")
        if self.step_tokens < self.max_sequences:
            rule = f"must be at most step_tokens = {self.step_tokens}, so that all can decode"
            raise ConfigError("engine.max_sequences", self.max_sequences, rule)
        if self.blocks_for(self.context_length) > self.blocks:
            rule = f"one such sequence must fit into pool_tokens = {self.pool_tokens}"
            raise ConfigError("engine.context_length", self.context_length, rule)

    @property
    def blocks(self) -> int:
        return self.pool_tokens // self.block_tokens

    def blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.block_tokens)


PRESETS = {
    # Fitted to the artifact of "Fairness in Serving Large Language Models" (OSDI 2024, arXiv 2401.00588),
    # a 24 GB A10G with Llama-2-7b: decode 28 ms + 0.2 ms per sequence + 1.2 µs per context token, prefill
    # 0.22 ms per token, a pool of 10,000 tokens. It reproduces the artifact's throughput within 1 %.
    "a10g-llama2-7b": EngineModel(StepModel(a=28_000_000, b=220_000, c=200_000, d=1_200)),
}
DEFAULT_PRESET = "a10g-llama2-7b"
