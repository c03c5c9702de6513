"""The Unix socket between the data plane and the console: ledger lines out, admin commands in.

Out, one line each: `POOL \\t LEDGER LINE`, after a head per pool; and replies, with an empty pool. In: a JSON object,
{"id": 1, "do": "weight", "tenant": "a", "weight": "3/2"}. Whoever may open the socket may command: its mode is 0600.
Which pools the disk refuses to record is said unasked, at first and at each change: the ledger cannot tell.

A console that does not read is cut off, never waited for; it comes back and gets heads again.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from fairq.core.errors import FairqError
from fairq.core.lines import encode
from fairq.gateway.gateway import Gateway
from fairq.gateway.pool import Pool
from fairq.gateway.recording import Recorder
from fairq.ledger.segment import head_of

MAX_UNREAD = 32 << 20


class Order(msgspec.Struct, tag_field="do", forbid_unknown_fields=True):
    """Something an operator wants."""

    id: int


class Weight(Order, tag="weight"):
    tenant: str
    weight: str


class Pause(Order, tag="pause"):
    tenant: str
    paused: bool


class DrainUpstream(Order, tag="drain"):
    pool: str
    upstream: str
    draining: bool


class Reload(Order, tag="reload"):
    """Read the configuration file again."""


class AskAbout(Order, tag="about"):
    """Who is there? The answer comes after the heads of all pools."""


class Address(msgspec.Struct):
    pool: str
    name: str
    url: str


class About(msgspec.Struct):
    """`ledger`: its directory, absolute."""

    pid: int
    ledger: str
    upstreams: list[Address]


class Reply(msgspec.Struct, omit_defaults=True):
    """Unasked, `id` is 0 and `unrecorded` is there: what the disk says, by pool that it refuses."""

    id: int
    error: str = ""
    changed: list[str] = []
    about: About | None = None
    unrecorded: dict[str, str] | None = None


decode_order = msgspec.json.Decoder(Weight | Pause | DrainUpstream | Reload | AskAbout).decode


class Control:
    def __init__(self, gateway: Gateway, reload: Callable[[], Awaitable[list[str]]], recorder: Recorder) -> None:
        self._gateway, self._reload, self._recorder = gateway, reload, recorder
        recorder.on_change = self._tell
        self._readers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def start(self, path: Path) -> None:
        """Raises OSError."""
        path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, path)
        path.chmod(0o600)

    def send(self, pool: str, lines: bytes) -> None:
        """Whole ledger lines of one pool, to every console that listens."""
        if not self._readers:
            return
        prefix = pool.encode() + b"\t"
        self._spread(prefix + lines[:-1].replace(b"\n", b"\n" + prefix) + b"\n")

    def _tell(self) -> None:
        self._spread(self._unrecorded())

    def _unrecorded(self) -> bytes:
        return _line(Reply(0, unrecorded=self._recorder.unrecorded))

    def _spread(self, data: bytes) -> None:
        for reader in list(self._readers):
            transport = reader.transport
            if transport.get_write_buffer_size() > MAX_UNREAD:
                self._readers.discard(reader)
                transport.abort()
            else:
                reader.write(data)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for reader in list(self._readers):
            reader.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for pool in self._gateway.pools.values():
            writer.write(b"%b\t%b\n" % (pool.name.encode(), encode(self._head(pool))))
        writer.write(self._unrecorded())
        self._readers.add(writer)
        try:
            while line := await reader.readline():
                writer.write(_line(await self._obey(line)))
                await writer.drain()
        except (ConnectionError, ValueError):  # gone, or a line beyond any order's size
            pass
        finally:
            self._readers.discard(writer)
            writer.close()

    def _head(self, pool: Pool) -> object:
        return head_of(
            pool.scheduler,
            wall=time.time_ns(),
            monotonic=time.monotonic_ns(),
            config=self._gateway.config.hash(),
        )

    def _about(self) -> About:
        pools = self._gateway.pools.values()
        return About(
            os.getpid(),
            str(self._gateway.config.ledger.dir.absolute()),
            [Address(pool.name, name, backend.config.url) for pool in pools for name, backend in pool.backends.items()],
        )

    async def _obey(self, line: bytes) -> Reply:
        id_ = 0
        try:
            order = decode_order(line)
            id_ = order.id
            match order:
                case Weight():
                    self._gateway.set_weight(order.tenant, order.weight)
                case Pause():
                    self._gateway.pause(order.tenant, order.paused)
                case DrainUpstream():
                    self._gateway.drain_upstream(order.pool, order.upstream, order.draining)
                case Reload():
                    return Reply(id_, changed=await self._reload())
                case AskAbout():
                    return Reply(id_, about=self._about())
        except (FairqError, OSError, msgspec.DecodeError) as error:
            return Reply(id_, error=str(error))
        return Reply(id_)


def _line(reply: Reply) -> bytes:
    return b"\t%b\n" % msgspec.json.encode(reply)
