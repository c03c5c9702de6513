"""The wire side of the scripted upstream: reads requests, plays scripts."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from fairq.testing.clock import eventually
from fairq.testing.replies import Close, Early, Gate, Hang, Pause, Reset, Script, Send, Step

if TYPE_CHECKING:
    from fairq.testing.upstream import ScriptedUpstream

Ending = Literal["", "done", "closed", "reset", "disconnected"]


@dataclass(slots=True)
class Received:
    """One request as it came off the wire, and how its response went."""

    number: int
    connection: int
    method: str
    target: str
    version: str
    headers: list[tuple[str, str]]  # in order, names and values as sent
    body: bytes = b""
    complete: bool = False  # the body has arrived whole
    trailers: list[tuple[str, str]] = field(default_factory=list)
    sent: int = 0  # response bytes the kernel has taken
    ending: Ending = ""  # "disconnected": the peer went away before the response was whole
    arrived_at: float = 0.0  # the loop's clock
    ended_at: float = 0.0

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        """The header's value; None when absent. ValueError when it came more than once."""
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        if len(values) > 1:
            raise ValueError(f"header {name} came {len(values)} times: {values}")
        return values[0] if values else None

    async def ended(self, within: float = 5.0) -> Ending:
        """Wait until the response is over; say how."""
        await eventually(lambda: self.ending, f"end of request {self.number} ({self.target})", within)
        return self.ending


class Connection(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, upstream: ScriptedUpstream) -> None:
        self.upstream = upstream
        self.buffer = bytearray()
        self.current: Received | None = None
        self.route = ""
        self.playing: asyncio.Task[None] | None = None
        self.writable = asyncio.Event()
        self.writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        # So that `sent` counts what the kernel took. Not 0: over TLS asyncio then pauses for ever.
        self.transport.set_write_buffer_limits(high=1, low=0)
        self.number = self.upstream.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.upstream.lost(self)
        self._end("disconnected")
        if self.playing is not None:
            self.playing.cancel()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        try:
            self._read()
        except ValueError:
            self.upstream.malformed.append(bytes(self.buffer))
            self.reset()

    def reset(self) -> None:
        linger = struct.pack("ii", 1, 0)  # closing now sends RST instead of FIN
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.transport.abort()

    def _read(self) -> None:
        if self.current is None and not self._read_head():
            return
        seen = self.current
        if seen is None or seen.complete or not self._read_body(seen):
            return  # what follows a complete request stays in the buffer until its response is over
        seen.complete = True
        if seen.ending:  # answered early, before the body was there
            self._next()
        elif self.playing is None:
            self._play(seen)

    def _read_head(self) -> bool:
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        first, *lines = self.buffer[:end].decode("latin-1").split("\r\n")
        method, target, version = first.split(" ")
        pairs = [line.split(":", 1) for line in lines]
        headers = [(name, value.strip()) for name, value in pairs]
        del self.buffer[: end + 4]
        upstream = self.upstream
        self.route = f"{method} {target}" if f"{method} {target}" in upstream.routes else ""
        seen = Received(upstream.seen + 1, self.number, method, target, version, headers)
        seen.arrived_at = asyncio.get_running_loop().time()
        self.current = seen
        if self.route:
            upstream.routed[self.route] += 1
        else:
            upstream.began(seen)
            if upstream.starts_early():
                self._play(seen)
                return True
        if (seen.header("expect") or "").lower() == "100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def _read_body(self, seen: Received) -> bool:
        if "chunked" not in (seen.header("transfer-encoding") or ""):
            missing = int(seen.header("content-length") or 0) - len(seen.body)
            seen.body += bytes(self.buffer[:missing])
            del self.buffer[:missing]
            return len(seen.body) == int(seen.header("content-length") or 0)
        while (line := self.buffer.find(b"\r\n")) >= 0:
            size = int(self.buffer[:line], 16)
            start = line + 2
            if size == 0:
                return self._read_trailers(seen, start)
            if len(self.buffer) < start + size + 2:
                return False
            if self.buffer[start + size : start + size + 2] != b"\r\n":
                raise ValueError("chunk without its end")
            seen.body += bytes(self.buffer[start : start + size])
            del self.buffer[: start + size + 2]
        return False

    def _read_trailers(self, seen: Received, start: int) -> bool:
        end = self.buffer.find(b"\r\n\r\n", start - 2)
        if end < 0:
            return False
        lines = self.buffer[start:end].decode("latin-1").split("\r\n") if end > start else []
        pairs = [line.split(":", 1) for line in lines]
        seen.trailers = [(name, value.strip()) for name, value in pairs]
        del self.buffer[: end + 4]
        return True

    def _play(self, seen: Received) -> None:
        script = self.upstream.routes[self.route] if self.route else self.upstream.script_for(seen)
        self.playing = asyncio.create_task(self._run(seen, list(script)))

    async def _run(self, seen: Received, script: Script) -> None:
        for step in script:
            await self._do(seen, step)
            if self.transport.is_closing():
                return
        self._end("done")
        self.playing = None
        if seen.complete:
            self._next()

    def _next(self) -> None:
        self.current = None
        if self.buffer:  # a pipelined request
            self.data_received(b"")

    async def _do(self, seen: Received, step: Step) -> None:
        match step:
            case Send(data):
                self.transport.write(data)
                await self.writable.wait()
                seen.sent += len(data)
                for _ in range(2):  # one turn of the loop to see the bytes, one to read them
                    await asyncio.sleep(0)
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Gate(name):
                await self.upstream.stand(name or str(seen.number))
            case Hang():
                await asyncio.get_running_loop().create_future()
            case Close():
                self._end("closed")
                self.transport.close()
            case Reset():
                self._end("reset")
                self.reset()
            case Early():
                pass

    def _end(self, ending: Ending) -> None:
        if self.current is not None and not self.current.ending:
            self.current.ending = ending
            self.current.ended_at = asyncio.get_running_loop().time()
            if not self.route:
                self.upstream.ended(self.current)
