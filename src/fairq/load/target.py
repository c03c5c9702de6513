"""Where the load goes: an address taken apart, and a first question that finds out whether anyone is there."""

from __future__ import annotations

import asyncio
import re
import ssl
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from fairq.core.errors import ConfigError
from fairq.gateway.http1 import ClientLimits, Failure, Framing, Receiver, ResponseHead, Upstream

Headers = list[tuple[bytes, bytes]]
PATIENCE = 10  # seconds, for questions that need no thinking
STARTING = 3.0  # seconds that a server gets to begin to listen: `fairq serve & fairq load ...`


class Unreachable(ConfigError):
    """Nobody answers as expected. One line: the option, its address, the cause."""


class _NoAnswer(Exception):
    """The transport's reason. `starting`: nobody listens there, or not yet."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(re.sub(r"^\[Errno -?\d+\] ", "", failure.detail))
        self.starting = failure.kind == "connect"


class Target(Struct, frozen=True):
    """An origin and a path in front of everything, as in http://127.0.0.1:8080/v1. `key`: the option that named it."""

    key: str
    url: str
    host: str
    port: int
    tls: bool
    prefix: str

    @classmethod
    def parse(cls, key: str, url: str) -> Target:
        """ConfigError, named after `key`, unless it is an http or https address. A final /v1 is understood."""
        try:
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            parts, port = urlsplit(""), 0
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or parts.query
            or parts.username
            or not _plain(url)
        ):
            raise ConfigError(key, url, "must be an address like http://127.0.0.1:8080")
        prefix = parts.path.rstrip("/").removesuffix("/v1")
        return cls(key, url, parts.hostname, port, parts.scheme == "https", prefix)

    def connect(self, timeout: float) -> Upstream:
        """A keep-alive pool of connections. `timeout`: seconds of silence before an answer counts as lost."""
        tls = ssl.create_default_context() if self.tls else None
        limits = ClientLimits(first_byte_seconds=timeout, idle_seconds=timeout, idle_connections=65_536)
        return Upstream(self.host, self.port, tls=tls, limits=limits)

    def head(self, more: Headers) -> Headers:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return [(b"host", f"{host}:{self.port}".encode()), (b"user-agent", b"fairq-load"), *more]

    def unreachable(self, rule: str) -> Unreachable:
        return Unreachable(self.key, self.url, rule)

    def path(self, path: str) -> bytes:
        return (self.prefix + path).encode()


def _plain(url: str) -> bool:
    return url.isascii() and url.isprintable() and " " not in url


class _Answer(Receiver):
    """Receives one small response whole. Who asked may have given up meanwhile; then it is dropped."""

    def __init__(self) -> None:
        self.whole: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
        self._status, self._body = 0, b""

    def on_head(self, head: ResponseHead, framing: Framing) -> None:
        self._status = head.status

    def on_data(self, data: bytes, chunks: bytes | None = None) -> None:
        self._body += data

    def on_end(self) -> None:
        if not self.whole.done():
            self.whole.set_result((self._status, self._body))

    def on_fail(self, failure: Failure) -> None:
        if not self.whole.done():
            self.whole.set_exception(_NoAnswer(failure))


async def ask(target: Target, upstream: Upstream, path: str, headers: Headers) -> tuple[int, Any]:
    """GET a JSON document: status and value (None when it is not JSON). `headers` are whole, see `Target.head`.

    One that was started a moment ago is waited for. Unreachable when nobody answers.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + STARTING
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                answer = _Answer()
                upstream.send(b"GET", target.path(path), headers, b"", answer)
                try:
                    status, body = await answer.whole
                    break
                except _NoAnswer as error:
                    if not error.starting or loop.time() > deadline:
                        raise target.unreachable(f"does not answer: {error}") from None
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise target.unreachable(f"no answer to GET {path} within {PATIENCE} s") from None
    try:
        return status, msgspec.json.decode(body)
    except msgspec.DecodeError:
        return status, None


async def choose_model(target: Target, upstream: Upstream, headers: Headers, wanted: str | None) -> str:
    """`wanted`, or the first model that the target lists, or `default` when it lists none (a gateway in front of
    servers with any names). Unreachable when nobody answers or the key is refused."""
    status, found = await ask(target, upstream, "/v1/models", headers)
    if status in (401, 403):
        raise target.unreachable(f"GET /v1/models has status {status}: give --key or --keys")
    try:
        return wanted or (str(found["data"][0]["id"]) if found["data"] else "default")
    except (TypeError, KeyError, IndexError):
        raise target.unreachable(f"GET /v1/models (status {status}) lists no models: give --model") from None
