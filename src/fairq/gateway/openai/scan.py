"""Readers of response bodies that come in pieces, cut anywhere. They hold a bounded part and never touch the bytes."""

import re
from typing import Final

from fairq.gateway.openai.account import Account, response_in

MAX_LINE: Final = 1 << 18  # a longer line of a stream is passed on but not read
MAX_BODY: Final = 1 << 20  # of a longer body only the tail is read, where every engine puts its usage
TAIL: Final = 1 << 16
MAX_TRIES: Final = 16  # closing braces after "usage" that may end it
NO_CHUNK: Final = -1  # instead of a place in one

# A key with its closing quote and colon cannot occur inside a JSON string: there the quote would be escaped.
DELIVERS: Final = re.compile(
    rb'"(?:content|text|reasoning_content|reasoning|refusal|arguments)"\s*:\s*"(?P<text>[^"])'
    rb'|"tool_calls"\s*:\s*\[\s*\{'
)


class BodyReader(Account):
    """Reads a response that is one JSON document: `feed` its pieces, then `finish`."""

    __slots__ = ("_body", "_cut")

    def __init__(self, choices: int = 1) -> None:
        super().__init__(choices)
        self._body = bytearray()
        self._cut = False

    def feed(self, data: bytes) -> bool:
        """False: see UsageScanner."""
        self._body += data
        if len(self._body) > MAX_BODY + TAIL:
            del self._body[:-TAIL]
            self._cut = True
        return False

    def take(self, body: bytes) -> None:
        """The whole body at once, instead of `feed` and `finish`."""
        if len(body) > MAX_BODY + TAIL or not self.read(body):
            self._read_tail(body[-TAIL:])

    def finish(self) -> None:
        """The body is over, whole or broken off."""
        body = bytes(self._body)
        self._body.clear()
        if self._cut or not self.read(body):
            self._read_tail(body[-TAIL:])

    def _read_tail(self, tail: bytes) -> None:
        """The last usage object of a body that is too long to hold, or that broke off behind it."""
        start = end = tail.rfind(b'"usage"')
        for _ in range(MAX_TRIES if start >= 0 else 0):
            end = tail.find(b"}", end) + 1
            if not end or self.read(b"{%b}" % tail[start:end]):
                return


class UsageScanner(Account):
    """Reads a stream of server-sent events: `feed` its bytes, then `finish`.

    chunks  events that delivered text, reasoning or a tool call: what an aborted stream without usage is charged by
    done    `[DONE]` was seen
    """

    __slots__ = ("_between", "_carry", "_head", "_lines", "_quotes", "_skipping", "_tail", "chunks", "done")

    def __init__(self, choices: int = 1) -> None:
        super().__init__(choices)
        self.chunks = 0
        self.done = False
        self._carry = bytearray()  # a line that has not ended yet
        self._lines: list[bytes] = []  # data lines of an event that has not ended yet
        self._skipping = False  # in a line that is too long
        self._head = self._tail = b"\xff"  # of an event that only delivered text; no text in UTF-8 has this byte
        self._between = b"\xff"  # a tail and the next head
        self._quotes = 0  # in that

    @property
    def inside_event(self) -> bool:
        """The bytes so far end within an event, so that its first part went out already."""
        return bool(self._carry or self._lines or self._skipping)

    def feed(self, data: bytes) -> bool:
        """Was `data` whole events like one before, but for their text? Then nothing can be in it that is not text."""
        head, tail = self._head, self._tail
        alike = len(data) > len(head) + len(tail) and data.startswith(head) and data.endswith(tail)
        if alike and not (self._carry or self._lines or self._skipping):
            text = data[len(head) : -len(tail)]
            if 34 not in text:  # no quote: one event
                self.chunks += 1
                return True
            texts = text.split(self._between)
            if text.count(b'"') == (len(texts) - 1) * self._quotes and b"" not in texts:  # else a text may end inside
                self.chunks += len(texts)
                return True
        self._feed_lines(data)
        return False

    def finish(self) -> None:
        """The stream is over, in good order or cut. An event whose blank line is missing counts if it is whole."""
        line = bytes(self._carry).rstrip(b"\r")
        if line.startswith(b"data:") and not self._skipping:
            self._lines.append(line[5:])
        self._carry.clear()
        if self._lines:
            self._read_chunk(b"\n".join(self._lines))
        self._lines.clear()

    def _feed_lines(self, data: bytes) -> None:
        carry = self._carry
        if carry or self._skipping:
            carry += data
            if 10 not in data and 13 not in data:
                if len(carry) > MAX_LINE:
                    carry.clear()
                    self._skipping = True
                return
            data = bytes(carry)
            carry.clear()
        half = b""
        if 13 in data:
            if data.endswith(b"\r"):  # perhaps half of a CR LF
                half, data = b"\r", data[:-1]
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        carry += lines.pop() + half
        if self._skipping and lines:
            del lines[0]
            self._skipping = False
        text = 0
        for line in lines:
            if not line:
                if self._lines:
                    text = self._end_event()
            elif line.startswith(b"data:"):
                self._lines.append(line[5:])
        if len(self._lines) > 1 and sum(map(len, self._lines)) > MAX_LINE:
            self._lines.clear()
        if text > 0 and data.endswith(b"\n\n") and (len(lines) == 2 or not lines[-3]):
            self._remember(lines[-2] + b"\n\n", len(b"data:") + text)

    def _remember(self, event: bytes, start: int) -> None:
        """An event that only delivers text, from `start` on."""
        self._head, self._tail = event[:start], event[event.find(b'"', start) :]
        self._between = between = self._tail + self._head
        self._quotes = between.count(b'"')

    def _end_event(self) -> int:
        """A blank line. Returns what `_read_chunk` returns, for an event of one line."""
        lines, self._lines = self._lines, []
        if len(lines) == 1:
            return self._read_chunk(lines[0])
        if self._read_chunk(b"\n".join(lines)) == NO_CHUNK:
            for line in lines:  # some servers end events with a single line feed; then each is an event of its own
                self._read_chunk(line)
        return 0

    def _read_chunk(self, chunk: bytes) -> int:
        """Returns where the text of a chunk begins that delivers text and nothing else; 0 for any other chunk."""
        if len(chunk) < 16 and chunk.strip() == b"[DONE]":
            self.done = True
            return NO_CHUNK
        response = response_in(chunk)
        if response is None:
            return NO_CHUNK
        news = self.learn(response)
        choices = response.choices
        if choices is None or choices:
            delivers = DELIVERS.search(chunk)
            if delivers is not None:
                self.chunks += 1
                return delivers.end() - 1 if not news and delivers.end("text") > 0 else 0
        return 0
