"""What one side of the data plane may take from the other: bytes, lines, seconds, connections."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limits:
    """What clients may take. Sizes in bytes, times in seconds, rates in bytes per second.

    Head sizes follow what servers in the field allow (nginx 4 x 8 KiB, Apache 100 lines, node 16 KiB in all).
    """

    head_bytes: int = 32 * KIB
    header_lines: int = 100
    target_bytes: int = 8 * KIB
    connections: int = 20_000
    connections_per_peer: int = 10_000
    buffered_bytes: int = 512 * MIB  # request bodies being collected, and requests waiting behind another
    buffered_bytes_per_peer: int = 128 * MIB
    pipelined_bytes: int = 64 * KIB  # behind one running request; more closes the connection after it
    discard_bytes: int = 64 * KIB  # an unwanted body up to this size is read and thrown away to keep the connection
    write_buffer: int = 64 * KIB  # unsent response bytes above which the upstream is paused
    idle_seconds: float = 75.0  # between requests
    head_seconds: float = 10.0  # from a request's first byte to the end of its head
    sender_rate: int = 512  # slowest sender of a body, measured over sender_seconds
    sender_seconds: float = 10.0
    reader_rate: int = 512  # slowest reader of a response, measured over reader_seconds
    reader_seconds: float = 20.0
    linger_seconds: float = 2.0  # a closing connection is still read this long, so that the answer is not lost


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """What one upstream may take. The times suit language models: long silence before the first byte is normal."""

    head_bytes: int = 64 * KIB
    header_lines: int = 128
    connect_seconds: float = 5.0  # includes name lookup and the TLS handshake
    first_byte_seconds: float = 600.0  # from sending the request to the end of the response's head
    idle_seconds: float = 120.0  # between two reads of a response; not counted while the client holds it back
    keepalive_seconds: float = 60.0  # an unused connection is closed after this
    idle_connections: int = 1024
