"""How long an iteration takes, and what an engine can hold."""

from msgspec import Struct

from fairq.core.errors import ConfigError, UnknownName


class Cost(Struct, frozen=True):
    """An iteration takes

        a + b * prefilled + c * batch + d * context + e * moved

    nanoseconds. Orca's selective batching is the reason for the terms: what is a matrix product over all tokens of the
    batch (weights are read once, a; a prompt's tokens are computed, b; each decoding sequence adds a row, c) is kept
    apart from attention, which every sequence does over its own context and nobody shares (d).

    prefilled  prompt tokens computed
    batch      sequences that decode
    context    tokens that these attend to, their own new one included
    moved      tokens of cache swapped out or in
    """

    a: int
    b: int
    c: int
    d: int
    e: int = 0

    def duration(self, prefilled: int, batch: int, context: int, moved: int = 0) -> int:
        return self.a + self.b * prefilled + self.c * batch + self.d * context + self.e * moved

    def check(self) -> None:
        """Raises ConfigError."""
        if self.a < 1:
            raise ConfigError("cost.a", self.a, "an iteration takes at least 1 ns")
        for name in "bcde":
            if getattr(self, name) < 0:
                raise ConfigError(f"cost.{name}", getattr(self, name), "must be at least 0")


class Limits(Struct, frozen=True, kw_only=True):
    """What an engine can hold, and by which rules.

    pool_tokens    the cache, in tokens; handed out in blocks of block_tokens
    watermark      blocks that an admission must leave free
    max_sequences  running at once
    step_tokens    tokens computed in one iteration: each decoding sequence is one, prompts get what is left
    prefill        chunked: prompts are cut into what the step has room for (vLLM V1)
                   first: an iteration is either whole prompts of newcomers, or one token for all (vLLM 0.x, LightLLM)
    admit_every    with `first`: newcomers are looked at after so many decodes, or when nothing runs (LightLLM: 10)
    reserve        prompt: blocks for the prompt; they grow by the token, and when none is left somebody is preempted
                   limit: blocks for prompt and max_tokens (Orca); nobody is preempted
                   peak: as many as never overflow if everybody ran to its limit (LightLLM); nobody is preempted
    preemption     recompute: the cache is dropped, prompt and answer so far are computed again; swap: it is moved
    victim         last: the last admitted (vLLM V1); latest: the latest arrival (vLLM 0.x); priority: the least urgent
    prefix_cache   blocks of prompts stay while there is room, and are shared by prompts that begin alike
    prefix_tokens  what a block of a prefix is, in tokens: whole blocks of the pool
    head           stop: a head that does not fit keeps everybody waiting; skip: the next in turn that fits goes
    """

    pool_tokens: int
    block_tokens: int = 16
    watermark: int = 0
    max_sequences: int = 256
    step_tokens: int = 2048
    prefill: str = "chunked"
    admit_every: int = 0
    reserve: str = "prompt"
    preemption: str = "recompute"
    victim: str = "last"
    head: str = "stop"
    prefix_cache: bool = False
    prefix_tokens: int = 16

    @property
    def blocks(self) -> int:
        return self.pool_tokens // self.block_tokens

    def blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.block_tokens)

    def check(self) -> None:
        """Raises ConfigError, UnknownName."""
        for name in ("pool_tokens", "block_tokens", "max_sequences", "step_tokens"):
            if getattr(self, name) < 1:
                raise ConfigError(f"engine.{name}", getattr(self, name), "must be at least 1")
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise UnknownName(f"engine.{name}", getattr(self, name), known)
        if self.prefix_cache and self.prefix_tokens % self.block_tokens:
            rule = f"must be a multiple of block_tokens = {self.block_tokens}"
            raise ConfigError("engine.prefix_tokens", self.prefix_tokens, rule)
        if self.blocks <= self.watermark:
            raise ConfigError("engine.watermark", self.watermark, f"must be less than the {self.blocks} blocks")
        if self.prefill == "chunked" and self.step_tokens < self.max_sequences:
            rule = f"must be at least max_sequences = {self.max_sequences}, so that all can decode"
            raise ConfigError("engine.step_tokens", self.step_tokens, rule)
        if self.admit_every and self.prefill == "chunked":
            raise ConfigError("engine.admit_every", self.admit_every, "goes with prefill = first")
        if self.reserve == "peak" and (self.block_tokens != 1 or self.prefill != "first"):
            raise ConfigError("engine.reserve", "peak", "goes with prefill = first and block_tokens = 1")


CHOICES = {
    "prefill": ("chunked", "first"),
    "reserve": ("prompt", "limit", "peak"),
    "preemption": ("recompute", "swap"),
    "victim": ("last", "latest", "priority"),
    "head": ("stop", "skip"),
}


class Preset(Struct, frozen=True):
    cost: Cost
    limits: Limits


PRESETS = {
    # Fitted to the artifact of "Fairness in Serving Large Language Models" (OSDI 2024): one A10G with 24 GB, decode
    # 28 ms + 0.2 ms per sequence + 1.2 us per context token, prefill 0.22 ms per token; LightLLM's rules. A token of
    # Llama-2-7b is 512 KiB of cache: 21 us over PCIe 4 x16.
    "a10g-llama2-7b": Preset(
        Cost(a=28_000_000, b=220_000, c=200_000, d=1_200, e=21_000),
        Limits(
            pool_tokens=10_000,
            block_tokens=1,
            max_sequences=1_000,
            step_tokens=3_072,
            prefill="first",
            admit_every=10,
            reserve="peak",
        ),
    ),
    # vLLM 0.19 with Llama-3.1-8B, as the per-request timings in LLMServingSim were recorded (data/vllm): an order of
    # magnitude from the card's bandwidth and compute; `fairq calibrate` fits the coefficients to a file of timings.
    "rtx4090-llama3.1-8b": Preset(
        Cost(a=16_500_000, b=95_000, c=20_000, d=130, e=5_200),
        Limits(pool_tokens=2588 * 16, max_sequences=256, step_tokens=2048),
    ),
    "rtxpro6000-llama3.1-8b": Preset(
        Cost(a=10_000_000, b=45_000, c=20_000, d=75, e=5_200),
        Limits(pool_tokens=400_000, max_sequences=128, step_tokens=2048),
    ),
}
DEFAULT_PRESET = "a10g-llama2-7b"
