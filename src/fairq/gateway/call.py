"""One admitted request: its wait, its attempts at upstreams, its response, and the one event that ends it.

Life as seen from here: `dispatch` sends it to an upstream and may come twice; the upstream's answer streams through;
whoever ends it first (upstream, client, a time limit, fairq) leads to exactly one `Finished`, or to `reject` while it
waits. A response is passed on byte for byte, except for usage that the client did not ask for.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairq.core import events as ev
from fairq.core.commands import Dispatch, Ended
from fairq.core.cost import Source, Usage
from fairq.core.job import Request
from fairq.core.lifecycle import Outcome
from fairq.gateway.backend import Backend
from fairq.gateway.http1.client import Transfer
from fairq.gateway.http1.exchange import Exchange
from fairq.gateway.http1.failure import Failure
from fairq.gateway.http1.framing import Framing
from fairq.gateway.http1.headers import forwardable
from fairq.gateway.openai.errors import error_event, waiting_comment
from fairq.gateway.openai.peek import Peeked
from fairq.gateway.openai.rewrite import rewrite
from fairq.gateway.openai.scan import BodyReader, UsageScanner
from fairq.gateway.openai.strip import UsageStripper
from fairq.gateway.replies import SENTENCES, STREAM, error_reply

if TYPE_CHECKING:
    from fairq.gateway.pool import Pool

TRY_ELSEWHERE = frozenset({502, 503, 504})  # what a proxy or a starting engine says before it did any work
FAILED = {"connect": Outcome.FAILED_CONNECT, "timeout": Outcome.FAILED_TIMEOUT}
REPLACED = frozenset({b"x-request-id", b"cache-control", b"x-accel-buffering", b"date", b"server"})  # of a response


class Call:
    """Also the receiver of its upstream's response."""

    __slots__ = (
        "_asked_usage",
        "_backend",
        "_body",
        "_comments",
        "_dispatched",
        "_exchange",
        "_finished",
        "_first",
        "_last",
        "_outcome",
        "_peeked",
        "_pool",
        "_reader",
        "_sent",
        "_status",
        "_stripper",
        "_transfer",
        "_upstream_done",
        "request",
        "size",
    )

    def __init__(self, pool: "Pool", exchange: Exchange, request: Request, peeked: Peeked | None, body: bytes) -> None:
        self.request = request
        self.size = len(body)
        self._pool, self._exchange, self._peeked, self._body = pool, exchange, peeked, body
        self._transfer: Transfer | None = None
        self._dispatched: Dispatch | None = None
        self._backend: Backend | None = None
        self._reader: UsageScanner | BodyReader | None = None
        self._stripper: UsageStripper | None = None
        self._asked_usage = False
        self._status = self._first = self._last = 0
        self._outcome = Outcome.COMPLETED
        self._upstream_done = self._finished = self._sent = False
        self._comments: Any = None
        exchange.on_gone = self._on_gone
        exchange.on_done = self._on_done
        exchange.on_pause = self._on_pause
        exchange.on_resume = self._on_resume

    # What the dispatcher asks for
    def dispatch(self, command: Dispatch) -> None:
        self._stop_comments()
        self._dispatched = command
        upstream = self._backend = self._pool.backends[command.upstream]
        exchange, body = self._exchange, self._body
        if self._peeked is not None:
            body = rewrite(
                body,
                self._peeked,
                strip=self._pool.strip,
                model=upstream.model,
                cache_salt=self._pool.terms(self.request.flow).cache_salt,
            )
            self._asked_usage = self._peeked.stream and not self._peeked.include_usage
        headers = [
            (b"host", upstream.host_header),
            *forwardable(exchange.headers, upstream.not_forwarded),
            *upstream.credential,
            (b"x-request-id", self.request.id.encode()),
        ]
        target = exchange.path.encode() + (b"?" + exchange.query if exchange.query else b"")
        self._transfer = upstream.client.send(exchange.method, target, headers, body, self)

    def reject(self, outcome: Outcome) -> None:
        self._stop_comments()
        self._finished = True
        self._body = b""
        self._answer_error(outcome)

    def abort(self) -> None:
        self._on_gone()

    def ended(self, record: Ended) -> None:
        self._finished = True
        self._pool.log(record)

    def cut(self) -> None:
        """The gateway stops and has waited long enough."""
        exchange = self._exchange
        self._drop_transfer()
        self._finish(Outcome.FAILED_MIDSTREAM if exchange.started else Outcome.REFUSED_SHUTTING_DOWN)
        exchange.abort()

    # What the upstream says (http1.client.Receiver)
    def on_head(self, status: int, reason: bytes, headers: list[tuple[bytes, bytes]], framing: Framing) -> None:
        pool, exchange, request = self._pool, self._exchange, self.request
        upstream = self._backend
        assert upstream is not None
        if status in TRY_ELSEWHERE and not exchange.started and pool.dispatcher.can_retry(request.id):
            upstream.health.failed()
            self._drop_transfer()
            self._attempt_failed(Outcome.FAILED_UPSTREAM)
            return
        upstream.health.answered(status)
        self._body = b""
        self._sent = True
        self._status = status
        if status >= 400:
            self._outcome = Outcome.FAILED_UPSTREAM
        content_type = next((value for name, value in headers if name == b"content-type"), b"")
        streams = content_type.startswith(b"text/event-stream")
        self._reader = UsageScanner() if streams else BodyReader()
        if streams and self._asked_usage:
            self._stripper = UsageStripper()
        if exchange.started:  # waiting comments went out
            if not streams:
                self._drop_transfer()
                self._fail(Outcome.FAILED_UPSTREAM, f"the upstream answered {status}")
            return
        out = forwardable(headers, REPLACED)
        out += self._our_headers()
        if streams:
            out += STREAM
        length = framing.length if framing.kind == "length" and self._stripper is None else None
        if framing.kind == "none":
            length = 0
        exchange.start(status, out, length=length)

    def on_data(self, data: bytes) -> None:
        self._last = now = self._pool.clock()
        if not self._first:
            self._first = now
        reader = self._reader
        assert reader is not None
        reader.feed(data)
        stripper = self._stripper
        if stripper is not None:
            data = stripper.feed(data)
        self._exchange.write(data)

    def on_end(self) -> None:
        self._transfer = None
        self._upstream_done = True
        if self._reader is not None:
            self._reader.finish()
            if self._reader.error is not None and self._is_stream:
                self._outcome = Outcome.FAILED_MIDSTREAM  # the upstream said so itself, in an event
        if self._stripper is not None:
            self._exchange.write(self._stripper.finish())
        self._exchange.finish()
        if not self._finished:  # the client still has bytes to take
            self._pool.dispatcher.emit(ev.SlotFreed, id=self.request.id)

    def on_fail(self, failure: Failure) -> None:
        self._transfer = None
        assert self._backend is not None
        self._backend.health.failed()
        outcome = FAILED.get(failure.kind, Outcome.FAILED_UPSTREAM)
        if not failure.started and not self._exchange.started:
            self._attempt_failed(outcome)
        elif not failure.started and self._pool.dispatcher.can_retry(self.request.id):
            self._attempt_failed(outcome)  # only comments went out: nothing of the response is lost
        else:
            if self._reader is not None:
                self._reader.finish()
            self._fail(Outcome.FAILED_MIDSTREAM, f"the upstream failed: {failure.detail}")

    # What the client does
    def _on_gone(self) -> None:
        self._stop_comments()
        if self._finished:
            return
        if self._dispatched is None:
            self._pool.dispatcher.emit(ev.Cancelled, id=self.request.id)
            return
        self._drop_transfer()
        if self._pool.dispatcher.is_retrying(self.request.id):
            self._pool.dispatcher.emit(ev.Cancelled, id=self.request.id)
        else:
            self._finish(Outcome.STALLED_CLIENT if self._exchange.stalled else Outcome.CANCELLED_RUNNING)

    def _on_done(self) -> None:
        if not self._finished and self._dispatched is not None:
            self._finish(self._outcome)

    def _on_pause(self) -> None:
        if self._transfer is not None:
            self._transfer.pause()

    def _on_resume(self) -> None:
        if self._transfer is not None:
            self._transfer.resume()

    # Waiting comments: a proxy in front may cut a connection that is silent for long
    def comment_every(self, seconds: float, call_later: Callable[[float, Callable[[], None]], Any]) -> None:
        def comment() -> None:
            exchange = self._exchange
            if not exchange.started:
                exchange.start(200, [(b"content-type", b"text/event-stream"), *self._our_headers(), *STREAM])
            exchange.write(waiting_comment(self._pool.dispatcher.position(self.request)))
            self._comments = call_later(seconds, comment)

        self._comments = call_later(seconds, comment)

    def _stop_comments(self) -> None:
        if self._comments is not None:
            self._comments.cancel()
            self._comments = None

    # Endings
    @property
    def _is_stream(self) -> bool:
        return isinstance(self._reader, UsageScanner)

    def _attempt_failed(self, outcome: Outcome) -> None:
        self._pool.dispatcher.emit(ev.AttemptFailed, id=self.request.id, outcome=outcome)

    def _fail(self, outcome: Outcome, message: str) -> None:
        """The response broke off. A stream says so in its last event; anything else is cut, so that it cannot be
        taken for whole."""
        exchange = self._exchange
        self._outcome = outcome
        if self._is_stream or (exchange.started and self._reader is None):
            inside = isinstance(self._reader, UsageScanner) and self._reader.inside_event
            exchange.write(error_event(message, "upstream_error", None, outcome.value, inside_event=inside))
            exchange.finish(close=True)
        else:
            exchange.abort()
        if not self._finished:
            self._finish(outcome)

    def _finish(self, outcome: Outcome) -> None:
        reader = self._reader
        reason = reader.finish_reason if reader is not None else None
        self._pool.dispatcher.emit(
            ev.Finished,
            id=self.request.id,
            outcome=outcome,
            usage=self._usage(),
            status=self._status,
            first_byte=self._first,
            last_byte=self._last,
            finish=reason or "",
        )

    def _usage(self) -> Usage:
        """What was used: as the upstream reported it, else counted by what was delivered, else nothing."""
        reader = self._reader
        if reader is not None and reader.usage is not None:
            return reader.usage
        if self._dispatched is None or self._status >= 400 or not self._sent:
            return Usage()
        inputs = self._dispatched.input_tokens
        if isinstance(reader, UsageScanner):
            return Usage(inputs, reader.chunks, 0, Source.COUNTED)
        return Usage(inputs, self._dispatched.output_tokens if self._upstream_done else 0, 0, Source.COUNTED)

    def _answer_error(self, outcome: Outcome) -> None:
        exchange = self._exchange
        if exchange.started:
            exchange.write(error_event(SENTENCES[outcome], outcome.value, None, outcome.value))
            exchange.finish(close=True)
            return
        retry_after = self._pool.retry_after(outcome)
        headers, body = error_reply(outcome.status, SENTENCES[outcome], outcome=outcome, retry_after=retry_after)
        closing = outcome is Outcome.REFUSED_SHUTTING_DOWN
        exchange.respond(outcome.status, [*headers, *self._our_headers()], body, close=closing)

    def _our_headers(self) -> list[tuple[bytes, bytes]]:
        out = [(b"x-request-id", self.request.id.encode())]
        if self._dispatched is not None:
            waited = self._dispatched.time - self.request.arrival
            out.append((b"x-fairq-queue-ms", b"%d" % (waited // 1_000_000)))
            if self._pool.show_upstream:
                out.append((b"x-fairq-upstream", self._dispatched.upstream.encode()))
        return out

    def _drop_transfer(self) -> None:
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            self._sent = transfer.link is not None
            transfer.abort()
