"""HTTP/1.1 over asyncio: the server towards clients, the client towards upstreams. Nothing here knows what is fair."""

from fairq.gateway.http1.client import Transfer, Upstream
from fairq.gateway.http1.exchange import Exchange
from fairq.gateway.http1.failure import Failure
from fairq.gateway.http1.framing import Framing
from fairq.gateway.http1.headers import forwardable
from fairq.gateway.http1.heads import ResponseHead
from fairq.gateway.http1.limits import ClientLimits, Limits
from fairq.gateway.http1.receiver import Receiver
from fairq.gateway.http1.server import Server

__all__ = [
    "ClientLimits",
    "Exchange",
    "Failure",
    "Framing",
    "Limits",
    "Receiver",
    "ResponseHead",
    "Server",
    "Transfer",
    "Upstream",
    "forwardable",
]
