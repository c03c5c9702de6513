"""What every trace format is read into."""

from __future__ import annotations

from msgspec import Struct

from fairq.core.errors import FairqError


class Measured(Struct, frozen=True, omit_defaults=True):
    """What a real server did with the request, where the trace says so. Seconds.

    queued    when the server took it in, on the trace's clock (its arrival, where nothing finer is recorded)
    ttft      from `queued` to the first token
    latency   from `queued` to the last token
    scheduled from `queued` to the beginning of its prefill
    A request that the server refused has neither a first nor a last token.
    """

    queued: float
    ttft: float | None = None
    latency: float | None = None
    scheduled: float | None = None

    @property
    def refused(self) -> bool:
        return self.latency is None


class Request(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One recorded request.

    arrival         seconds since the start of the trace
    client          who sent it; empty when the trace does not say
    input_tokens    length of the prompt
    output_tokens   length of the answer
    blocks          ids of the prompt's blocks of `Trace.block_tokens` tokens; two prompts share exactly the
                    blocks at their beginning whose ids are equal
    limit           its max_tokens; None: no less than its answer
    cancel          seconds after its arrival at which its client leaves; None: it stays
    predicted       what its client says its answer will be long; None: nothing
    after, think    the place (from 0) of an earlier request of the trace; it arrives `think` seconds after that one has
                    left the server, whatever `arrival` says: a conversation's next turn. None: it arrives at `arrival`
    """

    arrival: float
    input_tokens: int
    output_tokens: int
    client: str = ""
    blocks: tuple[int, ...] = ()
    limit: int | None = None
    cancel: float | None = None
    predicted: int | None = None
    after: int | None = None
    think: float = 0.0
    measured: Measured | None = None


class TraceError(FairqError):
    """A trace that cannot be read. One line: file and line, key and value where one is at fault, rule."""

    def __init__(self, place: str, rule: str, key: str | None = None, value: object = None) -> None:
        super().__init__(f"{place}: {rule}" if key is None else f"{place}: {key} = {value!r}: {rule}")
        self.place, self.key, self.value, self.rule = place, key, value, rule
