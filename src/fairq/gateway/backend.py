"""One upstream of a pool, as the gateway talks to it: its connections, its credential, and whether it is well."""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from fairq.gateway.config import Config
from fairq.gateway.config_sections import Health as HealthConfig
from fairq.gateway.config_sections import Upstream as UpstreamConfig
from fairq.gateway.http1.client import Transfer, Upstream
from fairq.gateway.http1.failure import Failure
from fairq.gateway.http1.framing import Framing
from fairq.gateway.tenants import not_forwarded

CallLater = Callable[[float, Callable[[], None]], Any]


class Health:
    """Out of rotation once `failures` in a row have failed, the last of them a probe; back at the first good probe.

    A failing request counts, and asks for a probe at once; but it cannot take an upstream out alone: a request may
    fail by its own fault. A probe passes with any answer below 500: servers without the probed path are alive too.
    """

    def __init__(
        self, config: HealthConfig, changed: Callable[[bool], None], probe_now: Callable[[], None]
    ) -> None:
        self.config, self.well = config, True
        self._changed, self._probe_now, self._failures = changed, probe_now, 0

    def failed(self) -> None:
        """A request failed without an answer."""
        self._failures += 1
        if self.well:
            self._probe_now()

    def answered(self, status: int) -> None:
        """A request was answered."""
        if self.well and status < 500:
            self._failures = 0

    def probed(self, well: bool) -> None:
        self._failures = 0 if well else self._failures + 1
        if self.well != well and (well or self._failures >= self.config.failures):
            self.well = well
            self._changed(well)


class Probe:
    """One GET of the health path."""

    def __init__(self, backend: "Backend", call_later: CallLater) -> None:
        self._health = backend.health
        config = backend.config.health
        headers = [(b"host", backend.host_header), *backend.credential]
        self._transfer: Transfer | None = backend.client.send(b"GET", config.path.encode(), headers, b"", self)
        self._timer = call_later(config.timeout, self._too_late)

    def on_head(self, status: int, reason: bytes, headers: list[tuple[bytes, bytes]], framing: Framing) -> None:
        self._timer.cancel()
        self._health.probed(status < 500)

    def on_data(self, data: bytes) -> None: ...

    def on_end(self) -> None:
        self._transfer = None

    def on_fail(self, failure: Failure) -> None:
        if not failure.started:
            self._timer.cancel()
            self._health.probed(False)
        self._transfer = None

    @property
    def over(self) -> bool:
        return self._transfer is None

    def _too_late(self) -> None:
        self.stop()
        self._health.probed(False)

    def stop(self) -> None:
        self._timer.cancel()
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            transfer.abort()


class Backend:
    def __init__(
        self, config: Config, upstream: UpstreamConfig, changed: Callable[[bool], None], call_later: CallLater
    ) -> None:
        self.config, self.name, self.model = upstream, upstream.label, upstream.model
        self.draining = False
        url = urlsplit(upstream.url)
        tls: ssl.SSLContext | None = None
        if url.scheme == "https":
            tls = ssl.create_default_context(cafile=str(upstream.ca) if upstream.ca else None)
        port = url.port or (443 if tls else 80)
        self.client = Upstream(url.hostname or "", port, tls=tls, limits=config.client_limits())
        self.host_header = url.netloc.encode()
        self.credential: list[tuple[bytes, bytes]] = []
        if upstream.credential is not None:
            self.credential = [(b"authorization", b"Bearer " + upstream.credential.get_secret_value().encode())]
        self.health = Health(upstream.health, changed, self._probe_soon)
        self._call_later = call_later
        self._probe: Probe | None = None
        self._timer: Any = None
        self.reconfigure(config)

    def reconfigure(self, config: Config) -> None:
        own = not_forwarded(config, own_credential=bool(self.credential))
        self.not_forwarded = own | {b"host", b"accept-encoding", b"x-request-id", b"content-encoding"}

    def watch(self) -> None:
        """Probe now and then. The first probe is at once, so that a wrong address is known early."""
        if self._probe is None or self._probe.over:
            self._probe = Probe(self, self._call_later)
        self._timer = self._call_later(self.config.health.interval, self.watch)

    def _probe_soon(self) -> None:
        if self._timer is not None and (self._probe is None or self._probe.over):
            self._timer.cancel()
            self._timer = self._call_later(0, self.watch)

    async def retire(self) -> None:
        """Out of rotation: closed when its last request has ended."""
        self._stop_watching()
        while self.client.transfers:  # noqa: ASYNC110 - nobody is in a hurry
            await asyncio.sleep(0.2)
        await self.client.close()

    async def close(self) -> None:
        self._stop_watching()
        await self.client.close()

    def _stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._probe is not None:
            self._probe.stop()
