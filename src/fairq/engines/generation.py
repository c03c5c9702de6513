"""From a request to the sequences it makes in the engine: what will be said, and how long that is."""

from __future__ import annotations

from dataclasses import dataclass

from fairq.engines.batching import Sequence
from fairq.engines.model import EngineModel
from fairq.engines.openai import BadRequest, Generation, prompt_tokens
from fairq.engines.text import PrefixCache, cut_at_stop, generator, natural_length, words


@dataclass(slots=True)
class Choice:
    """One continuation: `pieces[k]` is the text of its k-th token."""

    index: int
    pieces: list[str]
    finish: str
    sequence: Sequence


class Writer:
    """Decides what the simulated model says: a function of the seeds, the prompt and the choice's number."""

    def __init__(self, model: EngineModel, seed: int, median_output: int, prefixes: PrefixCache | None) -> None:
        self._model = model
        self._seed = seed
        self._median = median_output
        self._prefixes = prefixes

    def choices(self, request: Generation, prompts: list[bytes]) -> list[Choice]:
        """`n` choices for each prompt, in OpenAI's order. BadRequest when a prompt is too long."""
        each = request.n or 1
        return [
            self._choice(request, prompt, number, index * each + number)
            for index, prompt in enumerate(prompts)
            for number in range(each)
        ]

    def sequence(self, prompt: bytes, output: int) -> Sequence:
        """A prompt of the engine, with what the prefix cache knows of it."""
        tokens = prompt_tokens(prompt)
        known = self._prefixes.cached(prompt) if self._prefixes else 0
        return Sequence(tokens, output, min(known, tokens - 1))

    def room(self, prompt: bytes) -> int:
        """How many tokens can follow the prompt."""
        tokens = prompt_tokens(prompt)
        room = self._model.context_length - tokens
        if room < 1:
            raise BadRequest(
                400,
                f"the context length is {self._model.context_length} tokens; the prompt has {tokens} "
                f"and leaves no room for an answer",
                "context_length_exceeded",
            )
        return room

    def _choice(self, request: Generation, prompt: bytes, number: int, index: int) -> Choice:
        room = self.room(prompt)
        limit = min(request.limit or room, room)
        source = (self._seed, request.seed, number, prompt)
        natural = natural_length(generator("length", *source), self._median)
        finish = "length" if request.ignore_eos or natural > limit else "stop"
        pieces = words(generator("words", *source), limit if finish == "length" else natural)
        pieces, stopped = cut_at_stop(pieces, request.stops)
        return Choice(index, pieces, "stop" if stopped else finish, self.sequence(prompt, len(pieces)))
