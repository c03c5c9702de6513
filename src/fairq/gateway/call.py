"""One admitted request: its wait, its attempts at upstreams, its response, and the one event that ends it.

Life as seen from here: `dispatch` sends it to an upstream and may come twice; the upstream's answer streams through;
whoever ends it first (upstream, client, a time limit, fairq) leads to exactly one `Finished`, or to `reject` while it
waits. A response is passed on byte for byte, except for usage that the client did not ask for.
"""

from typing import TYPE_CHECKING, Final

from fairq.core import events as ev
from fairq.core.commands import Dispatch, Ended
from fairq.core.cost import Source, Usage
from fairq.core.job import Request
from fairq.core.lifecycle import Outcome
from fairq.gateway.answering import Answering
from fairq.gateway.backend import Backend
from fairq.gateway.http1.client import Transfer
from fairq.gateway.http1.exchange import Exchange
from fairq.gateway.http1.failure import Failure
from fairq.gateway.http1.framing import Framing
from fairq.gateway.http1.heads import ResponseHead
from fairq.gateway.openai.bodies import Peeked
from fairq.gateway.openai.rewrite import rewrite
from fairq.gateway.promised import as_stream
from fairq.gateway.reading import Reading
from fairq.gateway.relay import Answer, Relay
from fairq.gateway.replies import SENTENCES, passed_on

if TYPE_CHECKING:
    from fairq.gateway.pool import Pool

TRY_ELSEWHERE: Final = frozenset({502, 503, 504})  # what a proxy or a starting engine says before it did any work
FAILED: Final = {"connect": Outcome.FAILED_CONNECT, "timeout": Outcome.FAILED_TIMEOUT}


class Call(Answering):
    """Also the receiver of its upstream's response.

    failure     why its last failed attempt failed, for the log; "" if none did
    peeked      what its body says, None for a body that is not looked into
    asks_usage  its stream is asked for the usage that the client did not ask for
    """

    __slots__ = (
        "_asks_usage",
        "_backend",
        "_body",
        "_failure",
        "_finished",
        "_peeked",
        "_reading",
        "_sent",
        "_status",
        "_transfer",
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
        super().__init__(pool, exchange, request)
        self.size = len(body)
        self._peeked, self._body = peeked, body
        self._reading, self._asks_usage = reading, asks_usage
        self._backend: Backend | None = None
        self._transfer: Transfer | None = None
        self._status = 0
        self._failure = ""
        self._finished = self._sent = False
        exchange.on_gone = self._on_gone
        exchange.on_done = self._on_done
        exchange.on_pause = self._on_pause
        exchange.on_resume = self._on_resume

    # What the dispatcher asks for
    def dispatch(self, command: Dispatch) -> None:
        if self._finished:  # its client left between two attempts
            return
        if self._comments is not None:
            self._stop_comments()
        self._dispatched = command
        try:
            self._backend = self.pool.backends[command.upstream]
            self._transfer = self._send(self._backend)
        except Exception as error:  # whatever this request does to us, its slot must come back
            self.pool.report(error)
            self._attempt_failed(Outcome.FAILED_UPSTREAM, f"it could not be sent: {type(error).__name__}")

    def reject(self, outcome: Outcome) -> None:
        self._stop_comments()
        self._finished = True
        self._body = b""
        self._answer_error(outcome)

    def abort(self) -> None:
        self._on_gone()

    def ended(self, record: Ended) -> None:
        self._finished = True
        self.pool.log(record, self._failure)

    def cut(self) -> None:
        """The gateway stops and has waited long enough."""
        self._drop_transfer()
        if self._exchange.started:
            self._fail(Outcome.FAILED_MIDSTREAM, SENTENCES[Outcome.REFUSED_SHUTTING_DOWN])
        else:
            self._end_with_error(Outcome.REFUSED_SHUTTING_DOWN)

    # What the upstream says (http1.client.Receiver)
    def on_head(self, head: ResponseHead, framing: Framing) -> None:
        if head.status in TRY_ELSEWHERE and self.pool.dispatcher.can_retry(self.request.id):
            assert self._backend is not None
            self._backend.health.answered(head.status)
            self._drop_transfer()
            self._attempt_failed(Outcome.FAILED_UPSTREAM, f"answered {head.status}")
            return
        passed, backend = passed_on(head), self._backend
        assert backend is not None
        self._answered(head.status)
        streams = passed.streams
        if self._exchange.started and not streams:  # waiting comments have promised a stream
            self._relay = late = as_stream(head, self.request.choices, backend.pace)
            self._outcome = late.outcome
            return
        self._relay = Relay(self.request.choices, streams, self._asks_usage, backend.pace)
        if self._exchange.started:
            return
        self._is_stream = streams
        # A stream is never of a fixed length: an error event may have to follow what there is of it.
        length = framing.length if framing.kind == "length" and not streams else None
        fields = passed.fields + self._our_fields()
        self._exchange.start(head.status, fields, length=0 if framing.kind == "none" else length)

    def on_data(self, data: bytes, chunks: bytes | None = None) -> None:
        relay = self._relay
        assert isinstance(relay, Relay)
        passed = relay.feed(data, self.pool.clock())
        self._exchange.write(passed, chunks if passed is data else None)

    def on_whole(self, head: ResponseHead, framing: Framing, body: bytes) -> None:
        self._transfer = None
        passed = passed_on(head)
        if head.status >= 300 or self._exchange.started or passed.streams:
            self.on_head(head, framing)
            if self._relay is not None and not self._finished:
                self.on_data(body)
                self.on_end()
            return
        self._answered(head.status)
        assert self._backend is not None
        self._backend.health.answered(head.status)
        self._relay = Answer(body, self.request.choices, self.pool.clock())
        try:
            self._exchange.pass_on(head.status, passed.fields + self._our_fields(), body)
        finally:
            if not self._finished:  # the client still has bytes to take
                self.pool.dispatcher.put(ev.SlotFreed, id=self.request.id)

    def on_end(self) -> None:
        self._transfer = None
        relay = self._relay
        assert isinstance(relay, Relay)
        try:
            rest = relay.finish()
            if relay.failed and self._outcome is Outcome.COMPLETED:
                self._outcome = Outcome.FAILED_MIDSTREAM
                self._note("said in its stream that it failed")
            elif (backend := self._backend) is not None:
                backend.health.answered(self._status)
            self._exchange.write(rest)
            self._exchange.finish()
        finally:
            if not self._finished:  # the client still has bytes to take
                self.pool.dispatcher.put(ev.SlotFreed, id=self.request.id)

    def on_fail(self, failure: Failure) -> None:
        self._transfer = None
        assert self._backend is not None
        self._backend.health.failed(failure.detail)
        if self._relay is None:
            self._attempt_failed(FAILED.get(failure.kind, Outcome.FAILED_UPSTREAM), failure.detail)
        elif not self._exchange.started:  # its head could not be passed on
            self._note(failure.detail)
            self._end_with_error(Outcome.FAILED_UPSTREAM)
        else:
            self._fail(Outcome.FAILED_MIDSTREAM, f"the upstream failed: {failure.detail}")

    # What the client does
    def _on_gone(self) -> None:
        self._stop_comments()
        if self._finished:
            return
        if self._dispatched is None or self.pool.dispatcher.is_retrying(self.request.id):
            self.pool.dispatcher.put(ev.Cancelled, id=self.request.id)
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
            salt = self.pool.terms(self.request.flow).cache_salt
            body = rewrite(
                body,
                self._peeked,
                strip=self.pool.strip,
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
    def _answered(self, status: int) -> None:
        """The upstream has answered, for good or ill."""
        self._body = b""
        self._status = status
        if status >= 300:  # redirects are not followed
            self._outcome = Outcome.FAILED_UPSTREAM

    # Endings
    def _note(self, failure: str) -> None:
        dispatched = self._dispatched
        self._failure = failure if dispatched is None else f"{dispatched.upstream}: {failure}"

    def _attempt_failed(self, outcome: Outcome, failure: str) -> None:
        self._note(failure)
        self.pool.dispatcher.put(ev.AttemptFailed, id=self.request.id, outcome=outcome)

    def _fail(self, outcome: Outcome, message: str) -> None:
        self._outcome = outcome
        self._note(message)
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
        self._finished = True
        relay = self._relay
        if isinstance(relay, Relay):
            relay.settle()
        first, last, reason = (0, 0, "") if relay is None else (relay.first, relay.last, relay.finish_reason)
        self.pool.dispatcher.put(
            ev.Finished,
            id=self.request.id,
            outcome=outcome,
            usage=self._usage(),
            status=self._status,
            first_byte=first,
            last_byte=last,
            finish=reason,
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
