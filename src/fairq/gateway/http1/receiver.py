"""Who takes the response to a request."""

from __future__ import annotations

from fairq.gateway.http1.failure import Failure
from fairq.gateway.http1.framing import Framing
from fairq.gateway.http1.heads import ResponseHead


class Receiver:
    """Takes one response: `on_head`, `on_data` and `on_end`, or all of them as one `on_whole`, which a subclass may
    leave out. That, `on_end` or `on_fail` comes last, once, and nothing comes after `Transfer.abort`."""

    __slots__ = ()

    def on_head(self, head: ResponseHead, framing: Framing) -> None:
        """`framing` counts, for `head` may be one that came before and said the same but for the length."""

    def on_data(self, data: bytes, chunks: bytes | None = None) -> None:
        """Body bytes without their framing. `chunks`: the same as whole chunks, where they came so."""

    def on_whole(self, head: ResponseHead, framing: Framing, body: bytes) -> None:
        """A response with a body of known length, which came in one piece."""
        self.on_head(head, framing)
        self.on_data(body)
        self.on_end()

    def on_end(self) -> None: ...

    def on_fail(self, failure: Failure) -> None: ...
