"""What can go wrong with a peer's bytes."""

from __future__ import annotations


class BadMessage(Exception):
    """The peer's bytes are not a message we accept: `status` is the answer it gets if it is a client.

    The connection is closed either way, since where its next message starts is not known.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
