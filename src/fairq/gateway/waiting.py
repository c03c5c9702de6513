"""Comments in a stream that still waits: a proxy or a client may cut a connection that is silent for long."""

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> None: ...


CallLater = Callable[[float, Callable[[], None]], Timer]


class Comments:
    """Calls `say` every so many seconds until it is stopped."""

    __slots__ = ("_call_later", "_say", "_seconds", "_timer")

    def __init__(self, seconds: float, say: Callable[[], None], call_later: CallLater) -> None:
        self._seconds, self._say, self._call_later = seconds, say, call_later
        self._timer: Timer | None = call_later(seconds, self._ring)

    def _ring(self) -> None:
        self._timer = self._call_later(self._seconds, self._ring)
        self._say()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
