"""What a served simulated engine can hold. How long a step takes is the engine layer's cost model."""

from __future__ import annotations

from dataclasses import dataclass

from fairq.core.errors import ConfigError
from fairq.sim.engine.cost import PRESETS as SIMULATED
from fairq.sim.engine.cost import Cost


@dataclass(frozen=True, slots=True)
class EngineModel:
    """A cost model and the limits of the engine it times. What must hold is checked: ConfigError."""

    step: Cost
    max_sequences: int = 32  # running at once
    pool_tokens: int = 10_000  # key-value cache
    block_tokens: int = 16  # the cache is handed out in blocks of this size
    step_tokens: int = 2_048  # prefilled and decoded in one step
    context_length: int = 4_096  # prompt and output of one sequence

    def __post_init__(self) -> None:
        for name in ("max_sequences", "pool_tokens", "block_tokens", "step_tokens", "context_length"):
            if getattr(self, name) < 1:
                raise ConfigError(f"engine.{name}", getattr(self, name), "must be at least 1")
        self.step.check()
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


# The pool of each, and limits that a laptop's demonstration shows: a few dozen at once, and they wait for one another.
PRESETS = {
    name: EngineModel(preset.cost, pool_tokens=preset.limits.pool_tokens, block_tokens=16)
    for name, preset in SIMULATED.items()
}
DEFAULT_PRESET = "a10g-llama2-7b"
