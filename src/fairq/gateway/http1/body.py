"""A request's body being collected."""

from __future__ import annotations

from collections.abc import Callable

from fairq.gateway.http1.errors import BadMessage
from fairq.gateway.http1.framing import CHUNKED, Chunked, Framing


class Collector:
    """Collects a body of at most `limit` bytes, then `deliver`s it whole. Raises BadMessage (413 when it is larger)."""

    __slots__ = ("_chunked", "_left", "_limit", "_parts", "deliver", "received")

    def __init__(self, framing: Framing, deliver: Callable[[bytes], None], limit: int) -> None:
        self.deliver = deliver
        self.received = 0
        self._limit = limit
        self._parts: list[bytes] = []
        self._left = framing.length or 0
        self._chunked = Chunked() if framing is CHUNKED else None
        if self._left > limit:
            self._too_large()

    def feed(self, data: bytes) -> int:
        """Take body bytes. Returns the index in `data` just after the body, or -1 when more must come."""
        if self._chunked is not None:
            payload, end = self._chunked.feed(data)
        elif len(data) < self._left:
            payload, end = data, -1
            self._left -= len(data)
        else:
            end = self._left
            payload = data if end == len(data) else data[:end]
        self.received += len(payload)
        if self.received > self._limit:
            self._too_large()
        if payload:
            self._parts.append(payload)
        return end

    def body(self) -> bytes:
        parts = self._parts
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _too_large(self) -> None:
        raise BadMessage(413, f"the body is larger than {self._limit} bytes")
