"""One upstream of a pool, as the gateway talks to it: its connections, its credential, its health, its models."""

import asyncio
import ssl
from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec

from fairq.gateway.config import Config
from fairq.gateway.config_sections import Upstream as UpstreamConfig
from fairq.gateway.health import Health
from fairq.gateway.http1.client import Transfer, Upstream
from fairq.gateway.http1.failure import Failure
from fairq.gateway.http1.framing import Framing
from fairq.gateway.http1.headers import field_lines, forwardable, request_line
from fairq.gateway.http1.heads import RequestHead, ResponseHead
from fairq.gateway.http1.receiver import Receiver
from fairq.gateway.openai.listing import decode_listing
from fairq.gateway.relay import Pace
from fairq.gateway.tenants import not_forwarded
from fairq.gateway.waiting import CallLater, Timer

MAX_ANSWER = 1 << 20  # bytes of an answer to our own questions
MAX_MODELS = 1000
LIST_EVERY = 60.0  # seconds


class Get(Receiver):
    """One small question to an upstream. `then(status, body, detail)` is called once, with status 0 and what was wrong
    when no whole answer came in time."""

    def __init__(self, backend: "Backend", path: str, seconds: float, then: Callable[[int, bytes, str], None]) -> None:
        self._then, self._status, self._body = then, 0, b""
        self._seconds = seconds
        fields = [(b"host", backend.host_header), *backend.credential]
        self._transfer: Transfer | None = backend.client.send(b"GET", path.encode(), fields, b"", self)
        self._timer = backend.call_later(seconds, self._expire)

    @property
    def over(self) -> bool:
        return self._transfer is None

    def stop(self) -> None:
        """Without an answer, and without a word to who asked."""
        self._timer.cancel()
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            transfer.abort()

    def on_head(self, head: ResponseHead, framing: Framing) -> None:
        self._status = head.status

    def on_data(self, data: bytes, chunks: bytes | None = None) -> None:
        self._body += data
        if len(self._body) > MAX_ANSWER:
            self._give_up(f"an answer of more than {MAX_ANSWER} bytes")

    def on_end(self) -> None:
        if self.over:
            return  # the answer was too long
        self._timer.cancel()
        self._transfer = None
        self._then(self._status, self._body, "")

    def on_fail(self, failure: Failure) -> None:
        self._transfer = None
        self._give_up(failure.detail)

    def _expire(self) -> None:
        self._give_up(f"no whole answer within {self._seconds:g} s")

    def _give_up(self, detail: str) -> None:
        self.stop()
        self._then(0, b"", detail)


class Backend:
    """
    changed    called with the reason when it enters or leaves the rotation by its health
    may_leave  may it leave for failing requests alone?
    models     what it lists, as far as it was asked
    """

    def __init__(
        self,
        config: Config,
        upstream: UpstreamConfig,
        call_later: CallLater,
        changed: Callable[[str], None],
        may_leave: Callable[[], bool],
        *,
        lists_models: bool,
    ) -> None:
        self.config, self.name, self.model = upstream, upstream.label, upstream.model
        self.call_later = call_later
        self.draining = False
        self.models: tuple[str, ...] = ()
        url = urlsplit(upstream.url)
        tls = ssl.create_default_context(cafile=upstream.ca) if url.scheme == "https" else None
        self.client = Upstream(url.hostname or "", url.port or (443 if tls else 80), tls=tls)
        self.host_header = url.netloc.encode()
        self.credential: list[tuple[bytes, bytes]] = []
        if upstream.credential is not None:
            self.credential = [(b"authorization", b"Bearer " + upstream.credential.get_secret_value().encode())]
        self.pace = Pace()
        self.health = Health(upstream.health, changed, self._probe_soon, may_leave)
        self._listed_at = -LIST_EVERY
        self._probe: Get | None = None
        self._listing: Get | None = None
        self._timer: Timer | None = None
        self._is_closing = False
        self.reconfigure(config, lists_models=lists_models)

    def reconfigure(self, config: Config, *, lists_models: bool) -> None:
        self._lists_models = lists_models
        own = not_forwarded(config, own_credential=bool(self.credential))
        self.not_forwarded = own | {b"host", b"accept-encoding", b"x-request-id", b"content-encoding"}
        self.client.limits = config.client_limits()

    def request_fields(self, head: RequestHead) -> bytes:
        """The request line, and the fields that a client's request brings to this upstream, but for framing."""
        target = head.path.encode() + (b"?" + head.query if head.query else b"")
        fields = [(b"host", self.host_header), *forwardable(head.headers, self.not_forwarded), *self.credential]
        return request_line(head.method, target) + field_lines(fields)

    def watch(self) -> None:
        """Probe now and then. The first probe is at once, so that a wrong address is known early."""
        health = self.config.health
        if self._probe is None or self._probe.over:
            self._probe = Get(self, health.path, health.timeout, self._probed)
        self._timer = self.call_later(health.interval, self.watch)

    def succeed(self, last: "Backend") -> None:
        """Of the same name: an operator's drain goes on, and at the same address so does what was learned there."""
        self.draining = last.draining
        if last.config.url == self.config.url:
            self.models, self.pace = last.models, last.pace
            self.health.succeed(last.health)

    def retire(self) -> None:
        """Out of the pool. What still runs there goes on, and says nothing of its health: another may have its name."""
        self._stop_watching()
        self.health.retire()

    async def finish(self) -> None:
        """Close when the last request has ended, or at `close`."""
        while self.client.transfers and not self._is_closing:  # noqa: ASYNC110 - nobody is in a hurry
            await asyncio.sleep(0.2)
        await self.client.close()

    async def close(self) -> None:
        self._is_closing = True
        self.retire()
        await self.client.close()

    def _probed(self, status: int, body: bytes, detail: str) -> None:
        self.health.probed(status, detail)
        now = asyncio.get_running_loop().time()
        if self._lists_models and self.health.well and now - self._listed_at >= LIST_EVERY:
            self._listed_at = now
            self._listing = Get(self, "/v1/models", self.config.health.timeout, self._list)

    def _list(self, status: int, body: bytes, detail: str) -> None:
        """A server that does not list its models serves them all the same."""
        try:
            listed = decode_listing(body).data if status == 200 else []
        except msgspec.DecodeError:
            return
        self.models = tuple(model.id for model in listed[:MAX_MODELS]) or self.models

    def _probe_soon(self) -> None:
        if self._timer is not None and (self._probe is None or self._probe.over):
            self._timer.cancel()
            self._timer = self.call_later(0, self.watch)

    def _stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for question in (self._probe, self._listing):
            if question is not None:
                question.stop()
