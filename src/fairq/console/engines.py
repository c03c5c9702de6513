"""The waiting requests that engines report themselves, in the Prometheus text at /metrics beside their API."""

import asyncio
import urllib.request
from collections.abc import Iterable
from http.client import HTTPMessage
from typing import IO

from prometheus_client.parser import text_string_to_metric_families

from fairq.console.link import EngineAddress, Link, Unavailable
from fairq.console.live import Live

EVERY = 5.0  # seconds
PATIENCE = 2.0  # seconds
MAX_BYTES = 4 << 20
WAITING = frozenset({"vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred"})


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Addresses come from the configuration alone."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


_open = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({})).open


def waiting(text: str) -> float | None:
    """The number of waiting requests in the metrics of a vLLM, SGLang or llama.cpp server; None if it tells none."""
    found = [
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name in WAITING and sample.value >= 0  # a broken counter must not look like an empty queue
    ]
    return sum(found) if found else None


def ask(url: str) -> float | None:
    """One engine. None when it does not answer, or not in the way that is understood."""
    try:
        with _open(url + "/metrics", timeout=PATIENCE) as response:
            return waiting(response.read(MAX_BYTES).decode())
    except (OSError, ValueError):
        return None


async def watch(link: Link, live: Live, every: float = EVERY) -> None:
    """Until cancelled: ask who the upstreams are, then each of them."""
    while True:
        try:
            await link.ask_about()
        except Unavailable:
            live.engines = {}
            await live.until(lambda: live.connected, every)
        else:
            live.engines = await _ask_all(link.about.upstreams if link.about else ())
            await asyncio.sleep(every)


async def _ask_all(engines: Iterable[EngineAddress]) -> dict[tuple[str, str], float]:
    engines = list(engines)
    found = await asyncio.gather(*(asyncio.to_thread(ask, engine.url) for engine in engines))
    return {
        (engine.pool, engine.name): value for engine, value in zip(engines, found, strict=True) if value is not None
    }
