"""The HTTP/1.1 server of the data plane."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from fairq.gateway.http1.connection import Connection
from fairq.gateway.http1.deadlines import Deadlines
from fairq.gateway.http1.errors import BadMessage
from fairq.gateway.http1.exchange import Exchange
from fairq.gateway.http1.headers import Headers
from fairq.gateway.http1.limits import Limits

Refuse = Callable[[int, str], tuple[Headers, bytes]]


class Peer:
    """What one address holds at the moment."""

    __slots__ = ("buffered", "connections")

    def __init__(self) -> None:
        self.connections = self.buffered = 0


def refuse_plainly(status: int, reason: str) -> tuple[Headers, bytes]:
    """The body of an error that the server itself answers, when the application has no form for it."""
    return [(b"content-type", b"text/plain; charset=utf-8")], f"{status} {reason}\n".encode()


class Server:
    """Listens and gives each request to `app` as soon as its head is complete.

    `app` sets the exchange's callbacks and answers now or later. `refuse` makes headers and body of the errors that the
    server answers itself (malformed requests, limits). `deadlines` is for tests, which bring their own clock.
    """

    def __init__(
        self,
        app: Callable[[Exchange], None],
        limits: Limits | None = None,
        refuse: Refuse | None = None,
        *,
        deadlines: Deadlines | None = None,
    ) -> None:
        self.app = app
        self.limits = limits or Limits()
        self.refuse = refuse or refuse_plainly
        self.draining = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.connections: set[Connection] = set()
        self.buffered = 0  # bytes of all connections, as Limits.buffered_bytes counts them
        self.port = 0
        self._peers: dict[str, Peer] = {}
        self._listener: asyncio.Server | None = None
        self._empty = asyncio.Event()
        self._own_deadlines = deadlines is None
        self._deadlines = deadlines

    @property
    def deadlines(self) -> Deadlines:
        assert self._deadlines is not None, "the server has not been started"
        return self._deadlines

    async def start(self, host: str, port: int) -> None:
        """Listen on `host`; `port` 0 takes a free one, which `self.port` then says. Raises OSError."""
        self.loop = loop = asyncio.get_running_loop()
        if self._deadlines is None:
            self._deadlines = Deadlines(loop.time)
        listener: Any = await loop.create_server(self._connection, host, port, backlog=4096)
        self._listener = listener
        if self._own_deadlines:
            self._deadlines.start()
        self.port = listener.sockets[0].getsockname()[1]  # in a tuple, says asyncio's type; uvloop has a list

    def _connection(self) -> asyncio.Protocol:
        return cast(asyncio.Protocol, Connection(self))

    async def drain(self, grace: float) -> None:
        """Stop accepting, close idle connections, give running exchanges `grace` seconds, then abort the rest."""
        self.draining = True
        if self._listener is not None:
            self._listener.close()
        for connection in list(self.connections):
            connection.close_if_idle()
        if self.connections and grace > 0:
            self._empty.clear()
            try:
                async with asyncio.timeout(grace):
                    await self._empty.wait()
            except TimeoutError:
                pass
        for connection in list(self.connections):
            connection.abort()  # their exchanges end as gone
        while self.connections:
            self._empty.clear()
            await self._empty.wait()
        if self._own_deadlines and self._listener is not None:
            self.deadlines.stop()
        self._listener = None

    # -- what connections report

    def admit(self, connection: Connection) -> BadMessage | None:
        """Count a new connection; the refusal to send if it is one too many."""
        host = connection.peer[0]
        peer = self._peers.get(host)
        if peer is None:
            peer = self._peers[host] = Peer()
        peer.connections += 1
        connection.use = peer
        self.connections.add(connection)
        if len(self.connections) > self.limits.connections:
            return BadMessage(503, "too many connections")
        if peer.connections > self.limits.connections_per_peer:
            return BadMessage(429, "too many connections from this address")
        return None

    def hold(self, peer: Peer, change: int) -> None:
        """Count buffered bytes up or down. Raises BadMessage when there are too many; they are counted all the same."""
        self.buffered += change
        peer.buffered += change
        if change > 0:
            if self.buffered > self.limits.buffered_bytes:
                raise BadMessage(503, "too many bytes are being buffered")
            if peer.buffered > self.limits.buffered_bytes_per_peer:
                raise BadMessage(429, "too many bytes are being buffered for this address")

    def discard(self, connection: Connection) -> None:
        if connection not in self.connections:
            return
        self.connections.discard(connection)
        connection.use.connections -= 1
        if connection.use.connections == 0:
            del self._peers[connection.peer[0]]
        if not self.connections:
            self._empty.set()
