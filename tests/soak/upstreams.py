"""What upstreams do in a soak: mostly answer, and else everything that an upstream has ever been seen to do."""

import random

from fairq.testing.connection import Received
from fairq.testing.replies import (
    Close,
    Hang,
    Pause,
    Reset,
    Script,
    Send,
    answer,
    completion,
    cut,
    framed,
    head,
    sent_bytes,
    spaced,
    stream,
)

WORDS = ["Grüße ", "世界", " 🌍", "\r\n", "“ok”", "data: [DONE]", '"usage":{}', "plain "]
CHUNKED = [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]

BROKEN: list[Script] = [
    [Send(b"\0\1\2 no HTTP at all\r\n\r\n")],
    [Send(b"HTTP/1.1 200 OK\ncontent-length: 2\n\n{}")],
    [Send(head(200, [("content-length", "2"), ("content-length", "3")]) + b"{}")],
    [Send(head(200, [("content-length", "2"), ("transfer-encoding", "chunked")]) + b"2\r\n{}\r\n0\r\n\r\n")],
    [Send(head(200, [("content-length", "-2")]))],
    [Send(head(101, [("upgrade", "h2c")]))],
    [Send(head(200, CHUNKED) + b"zz\r\n")],
    [Send(head(200, CHUNKED) + b"5\r\ndata: "), Close()],
    [Send(head(200, [("content-length", "50")]) + b'{"usage":'), Close()],
    [Send(b"HTTP/1.1 200 OK\r\ncontent-le"), Reset()],
    [Send(head(200, [("x", "y" * 100_000)]))],
]
ODD: list[Script] = [
    framed([b'data: {"usage": NaN}\n\n', b"data: [DONE]\n\n"], "text/event-stream"),
    framed([b'data: {"choices":[],"usage":{"prompt_tokens":"7","completion_tokens":-1}}\n\n'], "text/event-stream"),
    framed([b"data: \xff\xfe{\n\n", b"data: {}\r\r", b"\n" * 50], "text/event-stream"),
    framed([b"data: " + b"x" * 300_000 + b"\n\n"], "text/event-stream"),
    framed([b"[" * 3000], "application/json"),
    answer(b"", 204),
    answer(b"", 307, [("location", "http://127.0.0.1:1/")]),
    [Send(head(100)), *completion(2)],
]


class Upstreams:
    """A source of scripts. The rarer a thing, the more it costs."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def __call__(self, seen: Received) -> Script:
        dice = self._dice
        streams = b'"stream": true' in seen.body
        whole = self._answer(streams)
        match dice.randrange(100):
            case n if n < 55:
                return whole
            case n if n < 65:
                return cut(whole, every=dice.randint(7, 300))
            case n if n < 72:
                return spaced(whole, Pause(0.001))
            case n if n < 76:
                return [Pause(dice.random() * 0.02), *whole]
            case n if n < 80:
                return [*cut(whole, dice.randrange(1, len(sent_bytes(whole))))[:1], Reset()]
            case n if n < 82:
                return [Reset()]
            case n if n < 86:  # one retry each, so that few of these are a request's end
                return [Hang()]
            case n if n < 87:
                return [*cut(whole, dice.randrange(1, len(sent_bytes(whole))))[:1], Hang()]
            case n if n < 90:
                return answer({"error": {"message": "no"}}, dice.choice([400, 429, 500, 502, 503, 504]))
            case n if n < 95:
                return dice.choice(BROKEN)
            case _:
                return dice.choice(ODD)

    def _answer(self, streams: bool) -> Script:
        dice = self._dice
        tokens = [dice.choice(WORDS) for _ in range(dice.randint(1, 12))]
        if not streams:
            return completion(tokens)
        shape = dice.choice(["none", "separate", "last", "content", "every"])
        framing = dice.choice(["chunked", "chunked", "length", "close"])
        return stream(
            tokens,
            usage_shape=shape,  # type: ignore[arg-type]
            framing=framing,  # type: ignore[arg-type]
            newline=dice.choice(["\n", "\r\n"]),
            done=dice.random() < 0.9,
        )
