"""One admitted request: its wait, its attempts at upstreams, its response, and the one event that ends it.

Life as seen from here: `dispatch` sends it to an upstream and may come twice; the upstream's answer streams through;
whoever ends it first (upstream, client, a time limit, fairq) leads to exactly one `Finished`, or to `reject` while it
waits. A response is passed on byte for byte, except for usage that the client did not ask for.
"""

from typing import TYPE_CHECKING

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
from fairq.gateway.http1.headers import field_lines
from fairq.gateway.http1.heads import ResponseHead
from fairq.gateway.openai.errors import error_event, waiting_comment
from fairq.gateway.openai.peek import Peeked
from fairq.gateway.openai.rewrite import rewrite
from fairq.gateway.reading import Reading
from fairq.gateway.relay import Relay
from fairq.gateway.replies import SENTENCES, STREAM, Passed, error_reply, named, passed_on
from fairq.gateway.waiting import Comments

if TYPE_CHECKING:
    from fairq.gateway.pool import Pool

Fields = list[tuple[bytes, bytes]]

TRY_ELSEWHERE = frozenset({502, 503, 504})  # what a proxy or a starting engine says before it did any work
FAILED = {"connect": Outcome.FAILED_CONNECT, "timeout": Outcome.FAILED_TIMEOUT}


class Call:
    """Also the receiver of its upstream's response.

    peeked      what its body says, None for a body that is not looked into
    asks_usage  its stream is asked for the usage that the client did not ask for
    """

    __slots__ = (
        "_asks_usage",
        "_backend",
        "_body",
        "_comments",
        "_dispatched",
        "_exchange",
        "_finished",
        "_is_stream",
        "_outcome",
        "_peeked",
        "_pool",
        "_reading",
        "_relay",
        "_sent",
        "_status",
        "_transfer",
        "request",
        "size",
    )

    def __init__(
        self,
        pool: "Pool",
        exchange: Exchange,
        reading: Reading,
        request: Request,
        peeked: Peeked | None,
        body: bytes,
        asks_usage: bool,
    ) -> None:
        self.request = request
        self.size = len(body)
        self._pool, self._exchange, self._peeked, self._body = pool, exchange, peeked, body
        self._reading, self._asks_usage = reading, asks_usage
        self._comments: Comments | None = None
        self._dispatched: Dispatch | None = None
        self._backend: Backend | None = None
        self._transfer: Transfer | None = None
        self._relay: Relay | None = None
        self._status = 0
        self._outcome = Outcome.COMPLETED
        self._is_stream = False  # what the client gets, or will get, is an event stream
        self._finished = self._sent = False
        exchange.on_gone = self._on_gone
        exchange.on_done = self._on_done
        exchange.on_pause = self._on_pause
        exchange.on_resume = self._on_resume

    def submit(self) -> None:
        self._pool.dispatcher.submit(self)

    def comment_every(self, seconds: float) -> None:
        """Tell the client now and then that it still waits. From the first comment on, its status is 200."""
        self._comments = Comments(seconds, self._comment, self._pool.call_later)

    # What the dispatcher asks for
    def dispatch(self, command: Dispatch) -> None:
        self._stop_comments()
        self._dispatched = command
        self._backend = self._pool.backends[command.upstream]
        try:
            self._transfer = self._send(self._backend)
        except Exception as error:  # whatever this request does to us, its slot must come back
            self._pool.report(error)
            self._attempt_failed(Outcome.FAILED_UPSTREAM)

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
        self._drop_transfer()
        if self._exchange.started:
            self._fail(Outcome.FAILED_MIDSTREAM, SENTENCES[Outcome.REFUSED_SHUTTING_DOWN])
        else:
            self._end_with_error(Outcome.REFUSED_SHUTTING_DOWN)

    # What the upstream says (http1.client.Receiver)
    def on_head(self, head: ResponseHead, framing: Framing) -> None:
        passed = self._answered(head)
        if passed is not None:
            # A stream is never of a fixed length: an error event may have to follow what there is of it.
            length = framing.length if framing.kind == "length" and not passed.streams else None
            fields = passed.fields + self._our_fields()
            self._exchange.start(head.status, fields, length=0 if framing.kind == "none" else length)

    def on_data(self, data: bytes, chunks: bytes | None = None) -> None:
        relay = self._relay
        assert relay is not None
        passed = relay.feed(data, self._pool.clock())
        self._exchange.write(passed, chunks if passed is data else None)

    def on_whole(self, head: ResponseHead, framing: Framing, body: bytes) -> None:
        self._transfer = None
        if head.status >= 300 or self._exchange.started or passed_on(head).streams:
            self.on_head(head, framing)
            if self._relay is not None and not self._finished:
                self.on_data(body)
                self.on_end()
            return
        passed = self._answered(head)
        relay = self._relay
        assert passed is not None
        assert relay is not None
        relay.take(body, self._pool.clock())
        try:
            self._exchange.pass_on(head.status, passed.fields + self._our_fields(), body)
        finally:
            if not self._finished:  # the client still has bytes to take
                self._pool.dispatcher.emit(ev.SlotFreed, id=self.request.id)

    def on_end(self) -> None:
        self._transfer = None
        relay = self._relay
        assert relay is not None
        try:
            rest = relay.finish()
            if relay.failed and self._outcome is Outcome.COMPLETED:
                self._outcome = Outcome.FAILED_MIDSTREAM
            self._exchange.write(rest)
            self._exchange.finish()
        finally:
            if not self._finished:  # the client still has bytes to take
                self._pool.dispatcher.emit(ev.SlotFreed, id=self.request.id)

    def on_fail(self, failure: Failure) -> None:
        self._transfer = None
        assert self._backend is not None
        self._backend.health.failed()
        if self._relay is None:
            self._attempt_failed(FAILED.get(failure.kind, Outcome.FAILED_UPSTREAM))
        elif not self._exchange.started:  # its head could not be passed on
            self._end_with_error(Outcome.FAILED_UPSTREAM)
        else:
            self._fail(Outcome.FAILED_MIDSTREAM, f"the upstream failed: {failure.detail}")

    # What the client does
    def _on_gone(self) -> None:
        self._stop_comments()
        if self._finished:
            return
        if self._dispatched is None or self._pool.dispatcher.is_retrying(self.request.id):
            self._pool.dispatcher.emit(ev.Cancelled, id=self.request.id)
        else:
            self._drop_transfer()
            self._finish(Outcome.STALLED_CLIENT if self._exchange.stalled else Outcome.CANCELLED_RUNNING)

    def _on_done(self) -> None:
        if not self._finished:
            self._finish(self._outcome)

    def _on_pause(self) -> None:
        if self._transfer is not None:
            self._transfer.pause()

    def _on_resume(self) -> None:
        if self._transfer is not None:
            self._transfer.resume()

    # Requests
    def _send(self, backend: Backend) -> Transfer:
        exchange, body = self._exchange, self._body
        if self._peeked is not None:
            salt = self._pool.terms(self.request.flow).cache_salt
            body = rewrite(
                body,
                self._peeked,
                strip=self._pool.strip,
                model=backend.model,
                cache_salt=salt,
                ask_usage=self._asks_usage,
            )
        fields = self._reading.request_fields(backend, exchange.head)
        fields += b"x-request-id: %b\r\n" % self.request.id.encode()
        return backend.client.send_behind(exchange.head.method, fields, body, self)

    def _drop_transfer(self) -> None:
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            self._sent = transfer.link is not None
            transfer.abort()

    # Responses
    def _answered(self, head: ResponseHead) -> Passed | None:
        """The upstream's head is there. What its client gets of it, if a response begins now."""
        backend, status = self._backend, head.status
        assert backend is not None
        if status in TRY_ELSEWHERE and self._pool.dispatcher.can_retry(self.request.id):
            backend.health.failed()
            self._drop_transfer()
            self._attempt_failed(Outcome.FAILED_UPSTREAM)
            return None
        backend.health.answered(status)
        self._body = b""
        self._status = status
        if status >= 300:  # redirects are not followed
            self._outcome = Outcome.FAILED_UPSTREAM
        passed = passed_on(head)
        self._relay = Relay(self.request.choices, passed.streams, self._asks_usage, backend.pace)
        if self._exchange.started:  # waiting comments went out
            if not passed.streams:
                self._drop_transfer()
                self._fail(Outcome.FAILED_UPSTREAM, f"the upstream answered {status}")
            return None
        self._is_stream = passed.streams
        return passed

    def _our_fields(self) -> bytes:
        """`_our_headers`, and the outcome of a response that is known to be none, as lines."""
        dispatched = self._dispatched
        if dispatched is None or self._pool.show_upstream or self._outcome is not Outcome.COMPLETED:
            headers = self._our_headers()
            if self._outcome is not Outcome.COMPLETED:
                headers.append(named(self._outcome))
            return field_lines(headers)
        waited = (dispatched.time - self.request.arrival) // 1_000_000
        return b"x-request-id: %b\r\nx-fairq-queue-ms: %d\r\n" % (self.request.id.encode(), waited)

    def _our_headers(self) -> Fields:
        fields = [(b"x-request-id", self.request.id.encode())]
        if self._dispatched is not None:
            waited = self._dispatched.time - self.request.arrival
            fields.append((b"x-fairq-queue-ms", b"%d" % (waited // 1_000_000)))
            if self._pool.show_upstream:
                fields.append((b"x-fairq-upstream", self._dispatched.upstream.encode()))
        return fields

    def _comment(self) -> None:
        exchange = self._exchange
        if not exchange.started:
            self._is_stream = True
            exchange.start(200, [(b"content-type", b"text/event-stream"), *self._our_headers(), *STREAM])
        exchange.write(waiting_comment(self._pool.dispatcher.position(self.request)))

    def _stop_comments(self) -> None:
        if self._comments is not None:
            self._comments.stop()
            self._comments = None

    def _answer_error(self, outcome: Outcome) -> None:
        if self._exchange.started:
            self._break_off(outcome, SENTENCES[outcome], outcome.value)
            return
        retry_after = self._pool.retry_after(outcome)
        fields, body = error_reply(outcome.status, SENTENCES[outcome], outcome=outcome, retry_after=retry_after)
        closing = outcome is Outcome.REFUSED_SHUTTING_DOWN
        self._exchange.respond(outcome.status, [*fields, *self._our_headers()], body, close=closing)

    def _break_off(self, outcome: Outcome, message: str, kind: str) -> None:
        """The response ends early. A stream says so in its last event; anything else is cut, so that it cannot be
        taken for whole."""
        if self._is_stream:
            inside = self._relay is not None and self._relay.inside_event
            self._exchange.write(error_event(message, kind, None, outcome.value, inside_event=inside))
            self._exchange.finish(close=True)
        else:
            self._exchange.abort()

    # Endings
    def _attempt_failed(self, outcome: Outcome) -> None:
        self._pool.dispatcher.emit(ev.AttemptFailed, id=self.request.id, outcome=outcome)

    def _fail(self, outcome: Outcome, message: str) -> None:
        self._outcome = outcome
        try:
            self._break_off(outcome, message, "upstream_error")
        finally:
            self._on_done()

    def _end_with_error(self, outcome: Outcome) -> None:
        """Of a request that has a slot and whose client has seen nothing yet."""
        self._status = outcome.status
        self._finish(outcome)
        self._answer_error(outcome)

    def _finish(self, outcome: Outcome) -> None:
        relay = self._relay
        if relay is not None:
            relay.settle()
        self._pool.dispatcher.emit(
            ev.Finished,
            id=self.request.id,
            outcome=outcome,
            usage=self._usage(),
            status=self._status,
            first_byte=relay.first if relay is not None else 0,
            last_byte=relay.last if relay is not None else 0,
            finish=relay.finish_reason if relay is not None else "",
        )

    def _usage(self) -> Usage:
        dispatched = self._dispatched
        if dispatched is None or self._status >= 300 or not (self._sent or self._status):
            return Usage()
        inputs, outputs = dispatched.input_tokens, dispatched.output_tokens
        if self._relay is not None:
            return self._relay.usage(inputs, outputs)
        if self._peeked is not None and self._peeked.stream:
            outputs = 0  # left before its first byte
        return Usage(inputs, outputs, 0, Source.COUNTED)
