"""One request under way, and what is known of it afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct

from fairq.core.cost import Source, Usage
from fairq.core.lifecycle import Outcome
from fairq.gateway.http1 import Failure, Framing, Receiver, ResponseHead
from fairq.gateway.openai.scan import BodyReader, UsageScanner

FAILED = {"connect": Outcome.FAILED_CONNECT, "timeout": Outcome.FAILED_TIMEOUT}
NO_USAGE = Usage()


class Result(Struct, frozen=True, kw_only=True):
    """One request as its sender saw it. Times in ns on one clock that never goes back.

    late           how long after its planned time it was sent (concurrency cap, or a sender that was too slow)
    first, last    first and last piece of the answer's events; None unless it streamed
    wait           time in fairq's queue, as the answer says; None when it does not say
    outcome        fairq's word for it; `http-STATUS` for a refusal by a target that does not know these words;
                   `interrupted` when the run ended first
    usage          as the target reported it; of a stream that did not get so far, the pieces that came
    """

    place: int
    tenant: str
    sent: int
    end: int
    late: int = 0
    first: int | None = None
    last: int | None = None
    wait: int | None = None
    status: int = 0
    outcome: str
    detail: str = ""
    usage: Usage = NO_USAGE


class Call(Receiver):
    """Receives one response and hands its Result to `done`, once."""

    def __init__(self, place: int, tenant: str, late: int, done: Callable[[Call, Result], None]) -> None:
        self.place, self.tenant = place, tenant
        self._late, self._done = late, done
        self._sent = time.perf_counter_ns()
        self._first: int | None = None
        self._last: int | None = None
        self._wait: int | None = None
        self._status = 0
        self._outcome: str | None = None
        self._reader: UsageScanner | BodyReader = BodyReader()

    def on_head(self, head: ResponseHead, framing: Framing) -> None:
        self._status = head.status
        for name, value in head.headers:
            if name == b"x-fairq-queue-ms" and value.isdigit():
                self._wait = int(value) * 1_000_000
            elif name == b"x-fairq-outcome":
                self._outcome = value.decode("latin-1")
            elif name == b"content-type" and value.startswith(b"text/event-stream"):
                self._reader = UsageScanner()

    def on_data(self, data: bytes, chunks: bytes | None = None) -> None:
        self._reader.feed(data)
        # A comment (": waiting") is no piece of the answer.
        if isinstance(self._reader, UsageScanner) and not data.startswith(b":"):
            self._last = time.perf_counter_ns()
            self._first = self._first or self._last

    def on_end(self) -> None:
        self._reader.finish()
        if self._status >= 400:
            self._end(self._outcome or f"http-{self._status}", self._reader.error or "")
        elif self._reader.error is not None:
            self._end(Outcome.FAILED_MIDSTREAM, self._reader.error)
        elif isinstance(self._reader, UsageScanner) and not (self._reader.done or self._reader.finish_reason):
            self._end(Outcome.FAILED_MIDSTREAM, "the stream broke off: neither a finish reason nor [DONE]")
        else:
            self._end(self._outcome or Outcome.COMPLETED)

    def on_fail(self, failure: Failure) -> None:
        self._reader.finish()
        failed = Outcome.FAILED_MIDSTREAM if failure.started else FAILED.get(failure.kind, Outcome.FAILED_UPSTREAM)
        self._end(failed, failure.detail)

    def interrupt(self) -> None:
        """The run ended first. The caller aborts the transfer."""
        self._reader.finish()
        self._end("interrupted")

    def _end(self, outcome: str, detail: str = "") -> None:
        usage = self._reader.usage or NO_USAGE
        if usage is NO_USAGE and isinstance(self._reader, UsageScanner) and self._reader.chunks:
            usage = Usage(completion=self._reader.chunks, source=Source.COUNTED)
        self._done(
            self,
            Result(
                place=self.place,
                tenant=self.tenant,
                sent=self._sent,
                end=time.perf_counter_ns(),
                late=self._late,
                first=self._first,
                last=self._last,
                wait=self._wait,
                status=self._status,
                outcome=str(outcome),
                detail=detail,
                usage=usage,
            ),
        )
