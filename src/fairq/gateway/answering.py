"""What the client of one request is told: comments while it waits, errors, and fairq's own header fields."""

from typing import TYPE_CHECKING, Final

from fairq.core.commands import Dispatch
from fairq.core.job import Request
from fairq.core.lifecycle import Outcome
from fairq.gateway.http1.exchange import Exchange
from fairq.gateway.http1.headers import field_lines
from fairq.gateway.http1.receiver import Receiver
from fairq.gateway.openai.errors import error_event, waiting_comment
from fairq.gateway.relay import Answer, Relay
from fairq.gateway.replies import SENTENCES, STREAM, error_reply, named
from fairq.gateway.waiting import Comments

if TYPE_CHECKING:
    from fairq.gateway.pool import Pool

Fields = list[tuple[bytes, bytes]]
COMPLETED: Final = Outcome.COMPLETED


class Answering(Receiver):
    """Base of Call, which knows when."""

    __slots__ = (
        "_comments",
        "_dispatched",
        "_exchange",
        "_is_stream",
        "_outcome",
        "_relay",
        "pool",
        "request",
    )

    def __init__(self, pool: "Pool", exchange: Exchange, request: Request) -> None:
        self.pool, self.request, self._exchange = pool, request, exchange
        self._comments: Comments | None = None
        self._dispatched: Dispatch | None = None
        self._relay: Relay | Answer | None = None
        self._outcome = COMPLETED
        self._is_stream = False  # what the client gets, or will get, is an event stream

    def comment_every(self, seconds: float) -> None:
        """Tell the client now and then that it still waits. From the first comment on, its status is 200."""
        self._comments = Comments(seconds, self._comment, self.pool.call_later)

    def _our_fields(self) -> bytes:
        """`_our_headers`, and the outcome of a response that is known to be none, as lines."""
        dispatched = self._dispatched
        if dispatched is None or self.pool.show_upstream or self._outcome is not COMPLETED:
            headers = self._our_headers()
            if self._outcome is not COMPLETED:
                headers.append(named(self._outcome))
            return field_lines(headers)
        waited = (dispatched.time - self.request.arrival) // 1_000_000
        return b"x-request-id: %b\r\nx-fairq-queue-ms: %d\r\n" % (self.request.id.encode(), waited)

    def _our_headers(self) -> Fields:
        fields = [(b"x-request-id", self.request.id.encode())]
        if self._dispatched is not None:
            waited = self._dispatched.time - self.request.arrival
            fields.append((b"x-fairq-queue-ms", b"%d" % (waited // 1_000_000)))
            if self.pool.show_upstream:
                fields.append((b"x-fairq-upstream", self._dispatched.upstream.encode()))
        return fields

    def _comment(self) -> None:
        exchange, position = self._exchange, self.pool.dispatcher.position(self.request)
        if not position:  # that it waits no more is decided, and will be done in a moment
            return
        if not exchange.started:
            self._is_stream = True
            exchange.start(200, [(b"content-type", b"text/event-stream"), *self._our_headers(), *STREAM])
        exchange.write(waiting_comment(position))

    def _stop_comments(self) -> None:
        if self._comments is not None:
            self._comments.stop()
            self._comments = None

    def _answer_error(self, outcome: Outcome) -> None:
        if self._exchange.started:
            self._break_off(outcome, SENTENCES[outcome], outcome.value)
            return
        retry_after = self.pool.retry_after(outcome, self.request.flow if outcome is Outcome.EXPIRED else "")
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
