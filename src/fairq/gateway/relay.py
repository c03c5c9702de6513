"""The body of one response on its way: read beside, and passed on but for the usage that its client did not ask for."""

from typing import Final

from fairq.core.cost import Source, Usage
from fairq.gateway.openai.account import read_plain
from fairq.gateway.openai.scan import BodyReader, UsageScanner
from fairq.gateway.openai.strip import UsageStripper

ONE_EACH: Final = 1.25  # tokens per event: above one for an end that is not sent, and characters of several tokens
REMEMBERED: Final = 4096  # events


class Pace:
    """How many tokens an event of an upstream's streams carries: engines that speculate, or that send now and then, put
    several in one. Learned from streams that ended with a report, for those whose clients leave before it."""

    __slots__ = ("_events", "_tokens")

    def __init__(self) -> None:
        self._events = self._tokens = 0.0

    def learn(self, events: int, tokens: int) -> None:
        self._events += events
        self._tokens += tokens
        if self._events > REMEMBERED:
            self._events /= 2
            self._tokens /= 2

    def tokens(self, events: int) -> int:
        """In so many events."""
        each = self._tokens / self._events if self._events else 1.0
        return events if each < ONE_EACH else round(events * each)


class Relay:
    """
    choices      answers asked for per prompt
    streams      it is a stream of events
    pace         of the upstream
    first, last  when the first and the last bytes came, ns; 0: none did
    """

    __slots__ = ("_pace", "_reader", "_stripper", "_whole", "first", "last", "streams")

    def __init__(self, choices: int, streams: bool, strip_usage: bool, pace: Pace) -> None:
        self.streams, self._pace = streams, pace
        self.first = self.last = 0
        self._reader: UsageScanner | BodyReader = UsageScanner(choices) if streams else BodyReader(choices)
        self._stripper = UsageStripper() if streams and strip_usage else None
        self._whole = False

    def feed(self, data: bytes, now: int) -> bytes:
        """What to pass on."""
        if not self.first:
            self.first = now
        self.last = now
        stripper = self._stripper
        # An event that only differs in its text from one before reports nothing that would have to go.
        if (self._reader.feed(data) and stripper is not None and stripper.between) or stripper is None:
            return data
        return stripper.feed(data)

    def finish(self) -> bytes:
        """The body is whole. What is left to pass on."""
        self._whole = True
        self._reader.finish()
        return b"" if self._stripper is None else self._stripper.finish()

    @property
    def failed(self) -> bool:
        """Has the upstream said, in an event, that it failed?"""
        return self.streams and self._reader.error is not None

    @property
    def inside_event(self) -> bool:
        return isinstance(self._reader, UsageScanner) and self._reader.inside_event

    def settle(self) -> None:
        """Nothing more comes, whole or not: what is there is all that will be known."""
        if not self._whole:
            self._whole = True
            self._reader.finish()

    @property
    def finish_reason(self) -> str:
        return self._reader.finish_reason or ""

    def usage(self, inputs: int, outputs: int) -> Usage:
        """As the upstream reported it; else counted, of a stream; else as it was estimated: how far an engine got with
        an answer that did not come is not known."""
        reader = self._reader
        usage = reader.usage
        if isinstance(reader, BodyReader):
            return usage or Usage(inputs, outputs, 0, Source.COUNTED)
        if usage is None:
            return Usage(inputs, self._pace.tokens(reader.chunks), 0, Source.COUNTED)
        if reader.finish_reason:
            self._pace.learn(reader.chunks, usage.completion)
        return usage


class Answer:
    """Of a response that came in one piece and is no stream: what a Relay would know of it when all has gone."""

    __slots__ = ("_usage", "finish_reason", "first", "last")

    inside_event = False

    def __init__(self, body: bytes, choices: int, now: int) -> None:
        self.first = self.last = now
        read = read_plain(body)
        if read is None:
            reader = BodyReader(choices)
            reader.take(body)
            read = reader.usage, reader.finish_reason or ""
        self._usage, self.finish_reason = read

    def usage(self, inputs: int, outputs: int) -> Usage:
        """As the upstream reported it, else as it was estimated."""
        return self._usage or Usage(inputs, outputs, 0, Source.COUNTED)
