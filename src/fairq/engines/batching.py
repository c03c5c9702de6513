"""Continuous batching with chunked prefill, first come first served, without clock or I/O."""

from __future__ import annotations

from dataclasses import dataclass

from fairq.engines.model import EngineModel


@dataclass(slots=True, eq=False)
class Sequence:
    """One prompt and its continuation; counts are tokens.

    `output` is how many tokens it will produce (a simulator knows), `cached` how many of the prompt's
    tokens need no prefill.
    """

    prompt: int
    output: int
    cached: int = 0
    prefilled: int = 0
    produced: int = 0
    blocks: int = 0  # of the pool; 0 while it waits


class Engine:
    """The scheduler of an LLM engine: iterations over a batch whose members come and go between steps.

    Each step gives one token to every sequence whose prompt is prefilled, and spends what is left of the
    step's token budget on prompts, oldest first; a sequence's first token comes out of the step that ends
    its prefill. A sequence is admitted in order of arrival, when there is room for its whole prompt and
    output, so nothing is ever preempted; a head that does not fit waits and is not overtaken.

    The caller owns time: `begin()` plans a step and says how long it takes, `finish()` carries it out.
    """

    def __init__(self, model: EngineModel) -> None:
        self.model = model
        self.free_blocks = model.blocks
        self.waiting: dict[Sequence, None] = {}  # in order of arrival
        self.running: dict[Sequence, None] = {}  # in order of admission
        self._decoding: list[Sequence] | None = None  # the planned step; None between steps
        self._chunks: list[tuple[Sequence, int]] = []

    def arrive(self, sequence: Sequence) -> None:
        """Queue a sequence. ValueError when it could never be admitted or has nothing to do."""
        total = sequence.prompt + sequence.output
        if not 0 <= sequence.cached < sequence.prompt or sequence.output < 1:
            raise ValueError(f"not 0 <= cached < prompt and 1 <= output: {sequence}")
        if total > self.model.context_length:
            raise ValueError(f"{total} tokens, but the context length is {self.model.context_length}")
        self.waiting[sequence] = None

    def cancel(self, sequence: Sequence) -> None:
        """Forget a sequence and free its blocks at once; a step under way loses its token.

        Does nothing when it has already left.
        """
        self.waiting.pop(sequence, None)
        if sequence in self.running:
            self._leave(sequence)

    def begin(self) -> int | None:
        """Admit and plan the next step. Its duration in nanoseconds, or None when there is no work."""
        assert self._decoding is None, "a step is under way"
        decoding: list[Sequence] = []
        chunks: list[tuple[Sequence, int]] = []
        context = 0
        unfinished: list[Sequence] = []
        for sequence in self.running:
            if sequence.prefilled == sequence.prompt:
                decoding.append(sequence)
                context += sequence.prompt + sequence.produced
            else:
                unfinished.append(sequence)
        budget = self.model.step_tokens - len(decoding)
        for sequence in unfinished:
            budget = self._prefill(sequence, budget, chunks)
        while budget and (admitted := self._admit()):
            budget = self._prefill(admitted, budget, chunks)
        if not decoding and not chunks:
            return None
        self._decoding, self._chunks = decoding, chunks
        return self.model.step.duration(sum(size for _, size in chunks), len(decoding), context)

    def finish(self) -> list[Sequence]:
        """Carry the planned step out: the sequences that got one token each, in order of admission.

        A sequence with `produced == output` among them has left the engine.
        """
        assert self._decoding is not None, "no step is under way"
        advanced = [sequence for sequence in self._decoding if sequence in self.running]
        for sequence, size in self._chunks:
            if sequence in self.running:
                sequence.prefilled += size
                if sequence.prefilled == sequence.prompt:
                    advanced.append(sequence)
        for sequence in advanced:
            sequence.produced += 1
            if sequence.produced == sequence.output:
                self._leave(sequence)
        self._decoding = None
        return advanced

    @property
    def kv_usage(self) -> float:
        """Share of the pool that is reserved, 0 to 1."""
        return 1 - self.free_blocks / self.model.blocks

    def _admit(self) -> Sequence | None:
        if not self.waiting or len(self.running) >= self.model.max_sequences:
            return None
        head = next(iter(self.waiting))
        blocks = self.model.blocks_for(head.prompt + head.output)
        if blocks > self.free_blocks:
            return None
        del self.waiting[head]
        self.running[head] = None
        self.free_blocks -= blocks
        head.blocks = blocks
        head.prefilled = head.cached
        return head

    def _prefill(self, sequence: Sequence, budget: int, chunks: list[tuple[Sequence, int]]) -> int:
        """Plan as much of the prompt as the budget allows; what is left of the budget."""
        size = min(budget, sequence.prompt - sequence.prefilled)
        if size:
            chunks.append((sequence, size))
        return budget - size

    def _leave(self, sequence: Sequence) -> None:
        del self.running[sequence]
        self.free_blocks += sequence.blocks
        sequence.blocks = 0
