"""What a user may set about simulated servers; one object for the command line and for the child process."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairq.core.errors import ConfigError, UnknownName
from fairq.engines.model import DEFAULT_PRESET, PRESETS, EngineModel


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Several servers of one kind. Limits left at None are the preset's.

    ConfigError names a value that breaks a rule.
    """

    count: int = 1
    host: str = "127.0.0.1"
    port: int = 0  # of the first; the others follow. 0: any free ports
    preset: str = DEFAULT_PRESET
    speed: float = 1.0  # 10 makes every step ten times shorter than the preset says
    model: str = "simulated"  # the name that clients ask for
    max_sequences: int | None = None
    pool_tokens: int | None = None
    context_length: int | None = None
    median_output: int = 150  # tokens of an answer that no limit cuts off
    prefix_cache: bool = True
    seed: int = 0  # another seed says other things

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ConfigError("engine.count", self.count, "must be at least 1")
        if not 0 <= self.port <= 65_535 or self.port + self.count > 65_536:
            raise ConfigError("engine.port", self.port, f"the ports of {self.count} servers must lie within 0 to 65535")
        if not 0 < self.speed <= 1e6:
            raise ConfigError("engine.speed", self.speed, "must be above 0 and at most 1000000")
        if self.median_output < 1:
            raise ConfigError("engine.median_output", self.median_output, "must be at least 1")
        self.engine_model()

    def engine_model(self) -> EngineModel:
        """The preset with this object's limits."""
        if self.preset not in PRESETS:
            raise UnknownName("engine.preset", self.preset, PRESETS)
        preset = PRESETS[self.preset]

        def or_preset(value: int | None, default: int) -> int:
            return default if value is None else value

        return replace(
            preset,
            max_sequences=or_preset(self.max_sequences, preset.max_sequences),
            pool_tokens=or_preset(self.pool_tokens, preset.pool_tokens),
            context_length=or_preset(self.context_length, preset.context_length),
        )
