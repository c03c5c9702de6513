"""A request while it is in an engine, and what became of it."""

from __future__ import annotations

from fairq.core.job import Generation


class Call:
    """Times are nanoseconds, lengths tokens.

    output        what it will produce: its true length, or its limit
    cancel_at     when its client leaves, None if it stays
    admitted      when it entered the batch first
    first, finish when its first token was made; when it left
    reason        stop, limit, cancel, error (it could never fit) or refused (by the policy); empty while it lives
    cached        prompt tokens that were in the prefix cache when it was admitted
    produced      output tokens so far
    prefilled     of `target` tokens that must be in the cache before it makes the next token: the prompt, and after a
                  preemption by recompute the answer so far too
    blocks        of the cache that it spans, while it runs; the first `shared` blocks of its prefix others may use too
    """

    __slots__ = (
        "admitted",
        "arrival",
        "base",
        "blocks",
        "cached",
        "cancel_at",
        "finish",
        "first",
        "job",
        "order",
        "output",
        "preemptions",
        "prefilled",
        "produced",
        "prompt",
        "reason",
        "shared",
        "target",
    )

    def __init__(self, job: Generation, cancel_at: int | None = None) -> None:
        size = job.size
        assert size is not None, "a simulation knows how long an answer is"
        self.job = job
        self.arrival = job.arrival
        self.cancel_at = cancel_at
        self.prompt = self.target = job.prompt
        self.output = min(size, job.limit)
        self.admitted: int | None = None
        self.first: int | None = None
        self.finish: int | None = None
        self.reason = ""
        self.prefilled = self.produced = self.cached = self.blocks = self.preemptions = self.shared = 0
        self.order = -1  # of its last admission
        self.base = 0  # the clock at which it would have had no token yet, while it decodes

    @property
    def held(self) -> int:
        """Tokens in the cache. The newest output token enters it with the next one."""
        return self.prefilled if self.prefilled < self.target or not self.produced else self.prompt + self.produced - 1

    def ended(self) -> str:
        """The reason of one that has produced all it will."""
        return "limit" if (self.job.size or 0) > self.job.limit else "stop"
