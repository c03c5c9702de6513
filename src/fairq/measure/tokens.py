"""What a client got from an engine, token by token, in memory that does not grow with the number of tokens."""

from __future__ import annotations

from fairq.measure.latency import tpot
from fairq.measure.service import WEIGHTS
from fairq.measure.sketch import Sketch


class TokenTimes:
    """Of one client, or of all.

    requests, served  that came; that got all their tokens
    input_tokens      of the prompts that were computed or found in the cache
    output_tokens     produced, also for requests that were then cancelled
    cached_tokens     of the prompts, found in the prefix cache
    ttft, tpot, gap, response, waiting  sketches in the caller's unit: to the first token; per token after it; between
                      neighbouring tokens; to the last token; to admission
    """

    __slots__ = (
        "cached_tokens",
        "gap",
        "input_tokens",
        "output_tokens",
        "requests",
        "response",
        "served",
        "tpot",
        "ttft",
        "waiting",
    )

    def __init__(self) -> None:
        self.requests = self.served = self.input_tokens = self.output_tokens = self.cached_tokens = 0
        self.ttft, self.tpot, self.gap, self.response, self.waiting = (Sketch() for _ in range(5))

    def came(self) -> None:
        self.requests += 1

    def left(
        self,
        arrival: float,
        admitted: float | None,
        first: float | None,
        last: float,
        lengths: tuple[int, int],
        *,
        cached: int = 0,
        served: bool = True,
    ) -> None:
        """It is out of the engine. `lengths`: input, output tokens; `first` None: it made no token."""
        given, made = lengths
        if admitted is not None:
            self.waiting.add(admitted - arrival)
            self.input_tokens += given
        self.output_tokens += made
        self.cached_tokens += cached
        self.served += served
        if first is None:
            return
        self.ttft.add(first - arrival)
        if served:
            self.response.add(last - arrival)
            per_token = tpot(first, last, made)
            if per_token is not None:
                self.tpot.add(float(per_token))

    def service(self, weights: tuple[int, int] = WEIGHTS) -> int:
        return weights[0] * self.input_tokens + weights[1] * self.output_tokens
