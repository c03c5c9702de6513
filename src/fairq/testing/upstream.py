"""An upstream that does exactly what a test tells it to, and remembers everything it saw.

It shares no code with fairq's own HTTP, so the two check each other.

    async with ScriptedUpstream() as upstream:
        upstream.enqueue([*stream(10)[:4], Reset()])    # the next request's response
        ...                                             # point the client or gateway at upstream.url
        seen = await upstream.request(1)                # the first request, once it has arrived
        await seen.ended()                              # until its response is over, by whoever ended it

Requests for which nothing is enqueued get `default`: an answer in OpenAI's form that honours `stream`,
`stream_options.include_usage` and `max_tokens`. Paths in `routes` (GET /health and /v1/models from the
start) are answered from there and consume nothing.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter, deque
from collections.abc import Callable
from types import TracebackType

from fairq.testing.clock import eventually
from fairq.testing.connection import Connection, Received
from fairq.testing.replies import Early, Script, answer, completion, stream


def openai_like(seen: Received) -> Script:
    """What an OpenAI-compatible server would answer, with `max_tokens` (or 3) tokens."""
    if seen.method != "POST":
        return answer({"error": {"message": "not found", "type": "invalid_request_error"}}, 404)
    asked = seen.json
    chat = seen.target.startswith("/v1/chat")
    tokens = asked.get("max_completion_tokens") or asked.get("max_tokens") or 3
    if not asked.get("stream"):
        return completion(tokens, chat=chat, finish="length")
    wants_usage = (asked.get("stream_options") or {}).get("include_usage")
    return stream(tokens, chat=chat, finish="length", usage_shape="separate" if wants_usage else "none")


class ScriptedUpstream:
    """See the module. Binds 127.0.0.1 on a free port; `tls` serves https."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.host = "127.0.0.1"
        self.port = 0
        self.default: Script | Callable[[Received], Script] = openai_like
        self.routes: dict[str, Script] = {
            "GET /health": answer({"status": "ok"}),
            "GET /v1/models": answer({"object": "list", "data": [{"id": "scripted", "object": "model"}]}),
        }
        self.requests: list[Received] = []  # those not answered from routes
        self.record = True  # False: `requests` stays as it is, for runs that watch memory
        self.seen = 0  # requests so far, recorded or not
        self.routed: Counter[str] = Counter()  # answers given from routes
        self.malformed: list[bytes] = []  # what could not be read as a request
        self.connections = 0  # accepted so far
        self.active = 0  # requests whose headers have arrived and whose response is not over
        self.most_active = 0
        self.disconnects = 0  # requests whose peer went away before the response was whole
        self._tls = tls
        self._queue: deque[Script | Callable[[Received], Script]] = deque()
        self._open: set[Connection] = set()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self.host}:{self.port}"

    @property
    def open_connections(self) -> int:
        return len(self._open)

    async def start(self) -> None:
        """Listen; after a `stop`, on the same port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self), self.host, self.port, ssl=self._tls, reuse_address=True
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Refuse connections from now on and reset the open ones."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._open):
            connection.reset()
        await eventually(lambda: not self._open, "connections of the scripted upstream closed")

    async def __aenter__(self) -> ScriptedUpstream:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def enqueue(self, *scripts: Script | Callable[[Received], Script]) -> None:
        """Scripts for the next requests, one each, in the order in which the requests arrive."""
        self._queue.extend(scripts)

    async def request(self, number: int, within: float = 5.0) -> Received:
        """The request with this number (from 1), once it is there with its whole body."""
        await eventually(
            lambda: len(self.requests) >= number and self.requests[number - 1].complete,
            f"request {number} at the upstream",
            within,
        )
        return self.requests[number - 1]

    async def release(self, name: str | int, times: int = 1, within: float = 5.0) -> None:
        """Wait until a response stands at this gate, and let that one through; the same for `times` passages."""
        for _ in range(times):
            await eventually(lambda: self.standing_at(name), f"a response at gate {name!s}", within)
            self._waiting[str(name)].popleft().set_result(None)

    def standing_at(self, name: str | int) -> int:
        """How many responses stand at this gate."""
        gate = self._waiting.get(str(name), deque())
        while gate and gate[0].done():  # its connection went away
            gate.popleft()
        return sum(1 for each in gate if not each.done())

    def close_idle(self) -> int:
        """Close connections that have no request going on, as servers do after their keep-alive time."""
        idle = [each for each in self._open if each.current is None]
        for connection in idle:
            connection.transport.close()
        return len(idle)

    def opened(self, connection: Connection) -> int:
        """Called by a connection; gives it its number."""
        self.connections += 1
        self._open.add(connection)
        return self.connections

    def lost(self, connection: Connection) -> None:
        """Called by a connection."""
        self._open.discard(connection)

    def began(self, seen: Received) -> None:
        """Called by a connection when a request's headers are there."""
        self.seen += 1
        if self.record:
            self.requests.append(seen)
        self.active += 1
        self.most_active = max(self.most_active, self.active)

    def ended(self, seen: Received) -> None:
        """Called by a connection when a response is over."""
        self.active -= 1
        self.disconnects += seen.ending == "disconnected"

    def stand(self, name: str) -> asyncio.Future[None]:
        """A future that `release(name)` completes."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, deque()).append(future)
        return future

    def starts_early(self) -> bool:
        """Whether the next request's script wants to start before the body is there."""
        following = self._queue[0] if self._queue else self.default
        return isinstance(following, list) and following[:1] == [Early()]

    def script_for(self, seen: Received) -> Script:
        """What to answer; consumes what was enqueued."""
        chosen = self._queue.popleft() if self._queue else self.default
        return chosen if isinstance(chosen, list) else chosen(seen)
