"""A cheap closed-loop client: `connections` requests under way at any time until `count` are answered."""

import asyncio
from typing import cast

BODY = (
    b'{"model":"mock","messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"'
    + b"Explain start-time fair queueing to me. " * 21
    + b'"}],"max_tokens":64,"temperature":0.7,"stream":%b}'
)
HEAD = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: */*\r\n"
    b"Authorization: Bearer bench\r\nUser-Agent: OpenAI/Python 1.99\r\nContent-Length: %d\r\n\r\n"
)


def request(stream: bool) -> bytes:
    body = BODY % (b"true" if stream else b"false")
    return HEAD % len(body) + body


class Client(asyncio.Protocol):
    """One connection. An answer ends where its framing says; anything but 200 is an error."""

    def __init__(self, run: "Run") -> None:
        self.run = run

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.next()

    def next(self) -> None:
        if self.run.begin():
            self.head, self.left, self.tail = b"", -1, b""
            self.transport.write(self.run.request)
        else:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self.left == -1:
            self.head += data
            at = self.head.find(b"\r\n\r\n")
            if at < 0:
                return
            head, data = self.head[:at].lower(), self.head[at + 4 :]
            if not head.startswith(b"http/1.1 200"):
                self.run.errors += 1
            where = head.find(b"content-length:")
            self.left = int(head[where + 15 :].split(b"\r\n", 1)[0]) if where >= 0 else -2
        if self.left >= 0:
            self.left -= len(data)
            done = self.left <= 0
        else:
            self.tail = (self.tail + data)[-7:]
            done = self.tail.endswith(b"\r\n0\r\n\r\n")
        if done:
            self.run.ended()
            self.next()

    def connection_lost(self, error: Exception | None) -> None:
        self.run.closed()


class Run:
    def __init__(self, port: int, connections: int, count: int, stream: bool) -> None:
        self.port, self.connections, self.count = port, connections, count
        self.request = request(stream)
        self.begun = self.done = self.errors = self.open = 0
        self.over = asyncio.Event()

    async def go(self, seconds: float) -> int:
        """Answers received. TimeoutError when they do not come."""
        loop = asyncio.get_running_loop()
        self.open = self.connections
        for _ in range(self.connections):
            await loop.create_connection(lambda: Client(self), "127.0.0.1", self.port)
        async with asyncio.timeout(seconds):
            await self.over.wait()
        if self.errors or self.done != self.count:
            raise RuntimeError(f"{self.errors} errors, {self.done} of {self.count} answered")
        return self.done

    def begin(self) -> bool:
        self.begun += 1
        return self.begun <= self.count

    def ended(self) -> None:
        self.done += 1

    def closed(self) -> None:
        self.open -= 1
        if not self.open:
            self.over.set()
