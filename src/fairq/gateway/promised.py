"""What a client gets of an answer that is no stream, once comments have promised it one: the status is out, the
answer is not lost."""

from typing import ClassVar, Final

from fairq.core.lifecycle import Outcome
from fairq.gateway.http1.heads import ResponseHead
from fairq.gateway.openai.errors import error_event
from fairq.gateway.relay import Pace, Relay

DONE: Final = b"data: [DONE]\n\n"
# In JSON line ends are mere space; in an event they would end a field.
ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")
EXCERPT: Final = 500  # bytes of an error that is not in OpenAI's envelope


class OneEvent(Relay):
    """JSON, whole, as the stream's only event."""

    __slots__ = ("_open",)
    outcome: ClassVar[Outcome] = Outcome.COMPLETED

    def __init__(self, choices: int, pace: Pace) -> None:
        super().__init__(choices, False, False, pace)
        self._open = False

    def feed(self, data: bytes, now: int) -> bytes:
        super().feed(data, now)
        if self._open or not data:
            return data.translate(ONE_LINE)
        self._open = True
        return b"data: %b" % data.translate(ONE_LINE)

    def finish(self) -> bytes:
        super().finish()
        ended = b"\n\n" if self._open else b""
        self._open = False
        return ended + DONE

    @property
    def inside_event(self) -> bool:
        return self._open


class LastEvent(Relay):
    """Anything else: an error event that says what the upstream says."""

    __slots__ = ("_said", "_status")
    outcome: ClassVar[Outcome] = Outcome.FAILED_UPSTREAM

    def __init__(self, choices: int, pace: Pace, status: int) -> None:
        super().__init__(choices, False, False, pace)
        self._status, self._said = status, b""

    def feed(self, data: bytes, now: int) -> bytes:
        super().feed(data, now)
        if len(self._said) < EXCERPT:
            self._said += data[: EXCERPT - len(self._said)]
        return b""

    def finish(self) -> bytes:
        super().finish()
        if self._status < 300:
            said = "neither a stream nor JSON"
        else:
            said = self._reader.error or self._said.decode(errors="replace").strip()
        message = f"the upstream answered {self._status}" + (f": {said}" if said else "")
        return error_event(message, "upstream_error", None, self.outcome.value)


def as_stream(head: ResponseHead, choices: int, pace: Pace) -> OneEvent | LastEvent:
    """For the body behind this head, which begins no stream. `choices`, `pace`: see Relay."""
    kinds = [value.partition(b";")[0].strip().lower() for name, value in head.headers if name == b"content-type"]
    if head.status < 300 and any(kind.endswith((b"/json", b"+json")) for kind in kinds):
        return OneEvent(choices, pace)
    return LastEvent(choices, pace, head.status)
