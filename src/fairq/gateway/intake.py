"""The way of a request from its first header to the queue: who, what, where, and may it wait?

Refusals are in the order of what they cost: the head is judged before a byte of the body is read.
"""

import time
from typing import TYPE_CHECKING, Final

from fairq.core.job import Request
from fairq.core.lifecycle import Outcome
from fairq.gateway.admission import Full
from fairq.gateway.call import Call
from fairq.gateway.config_sections import Endpoint
from fairq.gateway.http1.exchange import Exchange
from fairq.gateway.http1.heads import RequestHead
from fairq.gateway.identity import Refusal
from fairq.gateway.openai.bodies import Peeked
from fairq.gateway.openai.errors import BadRequest
from fairq.gateway.openai.peek import ENDPOINTS, peek
from fairq.gateway.pool import SECOND, Pool
from fairq.gateway.reading import Reading, given_id, new_id
from fairq.gateway.replies import SENTENCES, error_reply

if TYPE_CHECKING:
    from fairq.gateway.gateway import Gateway

TOKENS_PER_MESSAGE: Final = 4  # of a chat template
TOKENS_PER_IMAGE: Final = (
    576  # a 336-pixel image in a LLaVA-like model; a stated guess, the cost model learns from usage
)
SHORTEST_WAIT: Final = 1_000_000  # ns; who waits for nothing still gets a slot that is free


class Intake:
    """Of one request. Ends with a `Call` in a pool's queue, or with a refusal that is answered and recorded."""

    __slots__ = ("_exchange", "_extra", "_gateway", "_id", "_reading", "_tenant")

    _reading: Reading

    def __init__(self, gateway: "Gateway", exchange: Exchange, extra: Endpoint | None) -> None:
        """`extra`: the configured endpoint, None for a built-in one."""
        self._gateway, self._exchange, self._extra = gateway, exchange, extra
        self._id = self._tenant = ""

    def begin(self) -> None:
        """The head is complete."""
        gateway, exchange = self._gateway, self._exchange
        reading: Reading | None = exchange.head.note
        if reading is None or reading.identifier is not gateway.identifier or gateway.draining:
            reading = self._read(exchange.head)
            if reading is None:
                return
        else:
            self._id = reading.given or new_id()
        self._reading, self._tenant = reading, reading.tenant
        exchange.on_refused = self._body_refused
        exchange.on_gone = self._gone
        exchange.read_body(self._on_body, gateway.body_bytes)

    def _read(self, head: RequestHead) -> Reading | None:
        """What the head says, or None: then it is refused."""
        gateway, exchange = self._gateway, self._exchange
        given = given_id(head)
        self._id = given or new_id()
        if self._refuse_when_draining():
            return None
        identity = gateway.identifier.identify(head.headers, exchange.peer[0])
        if isinstance(identity, Refusal):
            self._refuse(identity.outcome, identity.message, code=identity.code, headers=identity.headers)
            return None
        self._tenant = identity.tenant
        if exchange.header(b"content-encoding") not in (None, b"identity"):
            self._refuse(Outcome.REFUSED_INVALID, "bodies with Content-Encoding are not accepted")
            return None
        wait = self._read_wait()
        if wait is None:
            rule = "x-fairq-max-queue-wait must be a number of seconds, at least 0"
            self._refuse(Outcome.REFUSED_INVALID, rule, code="invalid_wait")
            return None
        reading = Reading(gateway.identifier, identity.tenant, wait, given)
        if identity.by != "header":  # tenants that headers name are counted each time
            head.note = reading
        return reading

    def _read_wait(self) -> int | None:
        queue = self._gateway.config.queue
        given = self._exchange.values(b"x-fairq-max-queue-wait")
        if not given:
            return int(queue.time_to_live * SECOND)
        try:
            [seconds] = map(float, given)
        except ValueError:
            return None
        return int(min(seconds, queue.max_time_to_live) * SECOND) if seconds >= 0 else None

    def _body_refused(self, status: int, reason: str) -> None:
        """The transport refuses the rest of the request (too large, too slow, malformed)."""
        outcome = Outcome.REFUSED_TOO_LARGE if status == 413 else Outcome.REFUSED_INVALID
        self._refuse(outcome, reason, status=status, close=True)

    def _gone(self) -> None:
        """The client left before its request was complete."""
        outcome = Outcome.CANCELLED_WAITING
        self._gateway.refused(self._gateway.first_pool, self._id, self._tenant, outcome, outcome.status)

    def _on_body(self, body: bytes) -> None:
        self._exchange.on_refused = None
        try:
            call = self._judge(body)
        except Exception:  # the server answers 500 and prints it; the request must not be without an end
            outcome = Outcome.REFUSED_INVALID
            self._exchange.on_gone = None
            self._gateway.refused(self._gateway.first_pool, self._id, self._tenant, outcome, 500)
            raise
        if call is not None:
            call.pool.dispatcher.submit(call)

    def _judge(self, body: bytes) -> Call | None:
        gateway, extra = self._gateway, self._extra
        if gateway.draining and self._refuse_when_draining():
            return None
        peeked: Peeked | None = None
        # A body that is a JSON object is always looked into: an engine may take it for one whatever its type says.
        if extra is None or extra.cost != "fixed" or body.lstrip()[:1] == b"{":
            try:
                peeked = peek(self._exchange.head.path, body)
            except BadRequest as bad:
                self._refuse(Outcome.REFUSED_INVALID, bad.message, code=bad.code, param=bad.param)
                return None
            if peeked.remote_media and gateway.config.security.refuse_remote_images:
                rule = "images must be data: URLs here"
                self._refuse(Outcome.REFUSED_INVALID, rule, code="remote_image", param="messages")
                return None
        model = peeked.model if peeked is not None else ""
        pool = gateway.pool_for(model)
        if pool is None:
            message = f"the model {model[:256]!r} does not exist here"
            self._refuse(Outcome.REFUSED_UNKNOWN_MODEL, message, code="model_not_found", param="model")
            return None
        allowed = pool.terms(self._tenant).models
        if allowed is not None and model not in allowed:
            self._refuse(Outcome.REFUSED_FORBIDDEN, SENTENCES[Outcome.REFUSED_FORBIDDEN], pool=pool, param="model")
            return None
        return self._enter(pool, peeked, body)

    def _enter(self, pool: Pool, peeked: Peeked | None, body: bytes) -> Call | None:
        answer = pool.dispatcher.ask(self._tenant, len(body))
        if not isinstance(answer, list):
            outcome = Outcome.REFUSED_TOO_LARGE if answer is Full.NEVER else Outcome.REFUSED_QUEUE_FULL
            self._refuse(outcome, answer.value, pool=pool, bound_of=self._tenant if answer is Full.TENANT else "")
            return None
        for id_ in answer:
            pool.dispatcher.evict(id_)
        if self._id in pool.dispatcher.calls:
            self._id = new_id()  # the client uses one id for two living requests
        request = self._describe(peeked, len(body))
        streams = peeked is not None and peeked.stream
        counts_tokens = self._extra is None or self._extra.cost == "tokens"
        asks_usage = peeked is not None and streams and counts_tokens and not peeked.include_usage
        call = Call(pool, self._exchange, self._reading, request, peeked, body, asks_usage)
        if self._gateway.waiting_comments and streams:
            call.comment_every(self._gateway.waiting_comments)
        return call

    def _describe(self, peeked: Peeked | None, size: int) -> Request:
        gateway, extra = self._gateway, self._extra
        units = extra.units if extra is not None and extra.cost == "fixed" else None
        arrival = time.monotonic_ns()  # the body is whole: what came before was no wait in a queue
        expires = arrival + max(self._reading.wait, SHORTEST_WAIT)
        if peeked is None:
            return Request(
                id=self._id,
                flow=self._tenant,
                seq=gateway.next_arrival(),
                arrival=arrival,
                size=units,
                expires=expires,
            )
        model = peeked.model
        return Request(
            id=self._id,
            flow=self._tenant,
            seq=gateway.next_arrival(),
            arrival=arrival,
            size=units,
            model=model,
            adapter=model if model in gateway.adapters else "",
            tier=peeked.service_tier or "",
            # Where a further endpoint keeps its text is not known: then the whole body counts.
            input_bytes=peeked.prompt_bytes if extra is None else size,
            input_tokens=peeked.prompt_tokens,
            extra_tokens=TOKENS_PER_MESSAGE * peeked.messages + TOKENS_PER_IMAGE * peeked.images,
            output_limit=0 if extra is not None and extra.cost == "input" else peeked.limit,
            choices=peeked.choices,
            prompts=peeked.prompts,
            expires=expires,
        )

    def _refuse_when_draining(self) -> bool:
        outcome = Outcome.REFUSED_SHUTTING_DOWN
        if self._gateway.draining:
            self._refuse(outcome, SENTENCES[outcome], close=True)
        return self._gateway.draining

    def _refuse(
        self,
        outcome: Outcome,
        message: str,
        *,
        pool: Pool | None = None,
        status: int | None = None,
        code: str | None = None,
        param: str | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        close: bool = False,
        bound_of: str = "",
    ) -> None:
        gateway = self._gateway
        pool = pool or gateway.first_pool
        status = status or outcome.status
        self._exchange.on_gone = None
        gateway.refused(pool, self._id, self._tenant, outcome, status)
        told = any(name == b"retry-after" for name, _ in headers)
        retry_after = None if told else pool.retry_after(outcome, bound_of)
        ours, body = error_reply(status, message, outcome=outcome, code=code, param=param, retry_after=retry_after)
        self._exchange.respond(status, [*ours, *headers, (b"x-request-id", self._id.encode())], body, close=close)


BUILT_IN: Final = frozenset(ENDPOINTS)
