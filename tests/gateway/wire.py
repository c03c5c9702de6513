"""A client that is only bytes: it sees what went over the wire, and leaves when and how a test says.

It shares no code with fairq's HTTP nor with a client library.
"""

import asyncio
import contextlib
import json
import socket
import struct
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self


def request(path: str, body: object = None, method: str = "POST", version: str = "HTTP/1.1", **headers: str) -> bytes:
    """A request with its content-length; `body` that is not bytes becomes JSON, None is no body."""
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} {path} {version}", "host: fairq.test"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body is not None:
        lines += [f"content-length: {len(data)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


@dataclass
class Reply:
    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""
    whole: bool = True  # False: it was cut off

    def header(self, name: str) -> str | None:
        """None when it is absent; ValueError when it came twice."""
        values = [value for key, value in self.headers if key == name]
        if len(values) > 1:
            raise ValueError(f"{name} came {len(values)} times")
        return values[0] if values else None

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Any:
        return self.json["error"]


class Wire:
    """One connection to a gateway.

    async with Wire(w.gateway.server.port) as wire:
        wire.send(request(CHAT, chat()))
        reply = await wire.reply()
    """

    def __init__(self, port: int, receive_buffer: int = 0) -> None:
        """`receive_buffer`: bytes that the kernel may take for us; 0: its own choice."""
        self.port, self.receive_buffer = port, receive_buffer

    async def __aenter__(self) -> Self:
        sock = socket.socket()
        if self.receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.port))
        self.reader, self.writer = await asyncio.open_connection(sock=sock)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.leave()

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def leave(self) -> None:
        """In good order (FIN)."""
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    def reset(self) -> None:
        """Without a word (RST)."""
        if self.writer.is_closing():
            return
        linger = struct.pack("ii", 1, 0)
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort()

    def stop_reading(self) -> None:
        """As a client that hangs: what comes fills the buffers on the way."""
        self.writer.transport.pause_reading()  # type: ignore[attr-defined]

    async def head(self) -> Reply:
        """The next response's head, interim ones passed over."""
        while True:
            text = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = text.removesuffix("\r\n\r\n").split("\r\n")
            status = int(first.split(" ")[1])
            if status >= 200:
                break
        pairs = (line.split(":", 1) for line in lines)
        return Reply(status, [(name.lower(), value.strip()) for name, value in pairs])

    async def chunk(self) -> bytes:
        """The next chunk of a chunked body; empty at its end. IncompleteReadError when it is cut off."""
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def body(self, reply: Reply) -> Reply:
        """Read the rest of a response."""
        try:
            if reply.header("transfer-encoding") == "chunked":
                while piece := await self.chunk():
                    reply.body += piece
            elif (length := reply.header("content-length")) is not None:
                reply.body = await self.reader.readexactly(int(length))
            elif reply.status not in (204, 304):
                reply.body = await self.reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            reply.whole = False
        return reply

    async def reply(self) -> Reply:
        return await self.body(await self.head())

    async def ask(self, data: bytes) -> Reply:
        self.send(data)
        return await self.reply()

    async def closed(self) -> bool:
        """Until the gateway has closed its side, with nothing more sent."""
        try:
            return await self.reader.read() == b""
        except ConnectionError:
            return True


async def ask(port: int, data: bytes) -> Reply:
    """One request on a connection of its own."""
    async with Wire(port) as wire:
        return await wire.ask(data)
