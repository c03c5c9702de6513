"""The way of a request from its first header to the queue: who, what, where, and may it wait?

Refusals are in the order of what they cost: the head is judged before a byte of the body is read.
"""

import secrets
import time
from functools import partial
from typing import TYPE_CHECKING

from fairq.core import events as ev
from fairq.core.job import Request
from fairq.core.lifecycle import Outcome
from fairq.gateway.admission import Full
from fairq.gateway.call import Call
from fairq.gateway.config_sections import Endpoint
from fairq.gateway.http1.exchange import Exchange
from fairq.gateway.openai.errors import BadRequest
from fairq.gateway.openai.peek import ENDPOINTS, Peeked, peek
from fairq.gateway.pool import SECOND, Pool
from fairq.gateway.replies import SENTENCES, error_reply
from fairq.gateway.tenants import Refusal

if TYPE_CHECKING:
    from fairq.gateway.gateway import Gateway

TOKENS_PER_MESSAGE = 4  # of a chat template
TOKENS_PER_IMAGE = 576  # a 336-pixel image in a LLaVA-like model; a stated guess, the cost model learns from usage
MAX_ID = 128


def request_id(exchange: Exchange) -> str:
    """The client's own x-request-id if it is at most 128 visible ASCII characters, else a new one."""
    given = exchange.header(b"x-request-id")
    if given is not None and 0 < len(given) <= MAX_ID and given.isascii():
        text = given.decode("ascii")
        if text.isprintable() and " " not in text:
            return text
    return secrets.token_hex(8)


class Intake:
    """Of one request. Ends with a `Call` in a pool's queue, or with a refusal that is answered and recorded."""

    __slots__ = ("_exchange", "_gateway", "_id", "_tenant", "_wait", "arrival")

    def __init__(self, gateway: "Gateway", exchange: Exchange) -> None:
        self._gateway, self._exchange = gateway, exchange
        self.arrival = time.monotonic_ns()
        self._id = request_id(exchange)
        self._tenant = ""
        self._wait = 0

    def begin(self, extra: Endpoint | None) -> None:
        """The head is complete. `extra` is the configured endpoint, None for a built-in one."""
        gateway, exchange = self._gateway, self._exchange
        if gateway.draining:
            self._refuse(Outcome.REFUSED_SHUTTING_DOWN, SENTENCES[Outcome.REFUSED_SHUTTING_DOWN], close=True)
            return
        identity = gateway.identifier.identify(exchange.headers, exchange.peer[0])
        if isinstance(identity, Refusal):
            self._refuse(identity.outcome, identity.message, code=identity.code, headers=identity.headers)
            return
        self._tenant = identity.tenant
        if exchange.header(b"content-encoding") not in (None, b"identity"):
            self._refuse(Outcome.REFUSED_INVALID, "bodies with Content-Encoding are not accepted")
            return
        wait = self._read_wait()
        if wait is None:
            rule = "x-fairq-max-queue-wait must be a number of seconds, at least 0"
            self._refuse(Outcome.REFUSED_INVALID, rule, code="invalid_wait")
            return
        self._wait = wait
        exchange.on_refused = self._body_refused
        exchange.read_body(partial(self._on_body, extra), gateway.config.limits.body_bytes)

    def _read_wait(self) -> int | None:
        queue = self._gateway.config.queue
        given = self._exchange.header(b"x-fairq-max-queue-wait")
        if given is None:
            return int(queue.time_to_live * SECOND)
        try:
            seconds = float(given)
        except ValueError:
            return None
        return int(min(seconds, queue.max_time_to_live) * SECOND) if seconds >= 0 else None

    def _body_refused(self, status: int, reason: str) -> None:
        """The transport refuses the rest of the request (too large, too slow, malformed)."""
        self._refuse(
            Outcome.REFUSED_TOO_LARGE if status == 413 else Outcome.REFUSED_INVALID, reason, status=status, close=True
        )

    def _on_body(self, extra: Endpoint | None, body: bytes) -> None:
        exchange = self._exchange
        exchange.on_refused = None
        peeked: Peeked | None = None
        model = ""
        if extra is None or extra.cost != "fixed":
            try:
                peeked = peek(exchange.path if extra is None else "/v1/completions", body)
            except BadRequest as bad:
                self._refuse(Outcome.REFUSED_INVALID, bad.message, code=bad.code, param=bad.param)
                return
            if peeked.remote_media and self._gateway.config.security.refuse_remote_images:
                rule = "images must be data: URLs here"
                self._refuse(Outcome.REFUSED_INVALID, rule, code="remote_image", param="messages")
                return
            model = peeked.model
        pool = self._gateway.pool_for(model)
        if pool is None:
            message = f"the model {model[:256]!r} does not exist here"
            self._refuse(Outcome.REFUSED_UNKNOWN_MODEL, message, code="model_not_found", param="model")
            return
        allowed = pool.terms(self._tenant).models
        if allowed is not None and model not in allowed:
            self._refuse(Outcome.REFUSED_FORBIDDEN, SENTENCES[Outcome.REFUSED_FORBIDDEN], pool=pool, param="model")
            return
        self._enter(pool, peeked, model, extra, body)

    def _enter(self, pool: Pool, peeked: Peeked | None, model: str, extra: Endpoint | None, body: bytes) -> None:
        answer = pool.admission.ask(self._tenant, len(body))
        if isinstance(answer, Full):
            self._refuse(Outcome.REFUSED_QUEUE_FULL, answer.value, pool=pool)
            return
        for id_ in answer:
            pool.dispatcher.emit(ev.Evicted, id=id_)
        if self._id in pool.dispatcher.calls:
            self._id = secrets.token_hex(8)  # the client uses one id for two living requests
        exchange = self._exchange
        if exchange.closed:
            return
        request = self._describe(peeked, model, extra, len(body))
        call = Call(pool, exchange, request, peeked, body)
        comments = self._gateway.config.queue.waiting_comments
        if comments and peeked is not None and peeked.stream:
            call.comment_every(comments, pool.call_later)
        pool.dispatcher.submit(call)

    def _describe(self, peeked: Peeked | None, model: str, extra: Endpoint | None, size: int) -> Request:
        gateway = self._gateway
        fixed = extra.units if extra is not None and extra.cost == "fixed" else None
        limit = peeked.limit if peeked is not None and (extra is None or extra.cost == "tokens") else 0
        extra_tokens = text = 0
        if peeked is not None:
            # Where an extra endpoint keeps its text is not known here: then the whole body counts.
            text = peeked.prompt_bytes or (0 if extra is None else size)
            extra_tokens = TOKENS_PER_MESSAGE * peeked.messages + TOKENS_PER_IMAGE * peeked.images
        return Request(
            id=self._id,
            flow=self._tenant,
            seq=gateway.next_arrival(),
            arrival=self.arrival,
            size=fixed,
            model=model,
            adapter=model if model in gateway.config.cost.multipliers.adapters else "",
            tier=(peeked.service_tier or "") if peeked is not None else "",
            input_bytes=text,
            input_tokens=peeked.prompt_tokens if peeked is not None else None,
            extra_tokens=extra_tokens,
            output_limit=limit,
            choices=peeked.choices if peeked is not None else 1,
            prompts=peeked.prompts if peeked is not None else 1,
            expires=self.arrival + self._wait,
        )

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
    ) -> None:
        gateway = self._gateway
        pool = pool or gateway.first_pool
        status = status or outcome.status
        gateway.refused(pool, self._id, self._tenant, outcome, status)
        retry_after = None if any(name == b"retry-after" for name, _ in headers) else pool.retry_after(outcome)
        ours, body = error_reply(status, message, outcome=outcome, code=code, param=param, retry_after=retry_after)
        self._exchange.respond(status, [*ours, *headers, (b"x-request-id", self._id.encode())], body, close=close)


BUILT_IN = frozenset(ENDPOINTS)
