"""Scripts for the scripted upstream: a response is a list of steps, and these functions write such lists.

A script is a plain list, so a test edits it as one. In a script made by `stream` step 0 sends the head
and step i the i-th event: `[*stream(10)[:4], Reset()]` dies after three events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Headers = Sequence[tuple[str, str]]
UsageShape = Literal["none", "separate", "last", "content", "every"]
Framing = Literal["chunked", "length", "close"]


@dataclass(frozen=True, slots=True)
class Send:
    """Hand these bytes to the kernel, alone: a peer in the same event loop reads them as one piece."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Gate:
    """Stand here until the test calls `release(name)`. Without a name: the request's number as text."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class Early:
    """As the first step: answer when the request's headers are there, without waiting for its body."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Send nothing more until the peer goes away."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection in good order (FIN)."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Drop the connection (RST)."""


Step = Send | Pause | Gate | Early | Hang | Close | Reset
Script = list[Step]


def head(status: int = 200, headers: Headers = (), reason: str = "", version: str = "HTTP/1.1") -> bytes:
    """A response head, with exactly these headers in this order; it may be wrong on purpose."""
    lines = [f"{version} {status} {reason}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def chunk(data: bytes) -> bytes:
    """`data` as one chunk of a chunked body; the empty one is the body's end."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def answer(body: object = b"", status: int = 200, headers: Headers = (), framing: Framing = "length") -> Script:
    """A whole response in one Send; a `body` that is not bytes becomes JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
    return framed([data] if data else [], kind, status=status, headers=headers, framing=framing, joined=True)


def framed(
    pieces: Iterable[bytes],
    content_type: str,
    status: int = 200,
    headers: Headers = (),
    framing: Framing = "chunked",
    joined: bool = False,
) -> Script:
    """A response whose body is sent in these pieces, framed by chunks, a length, or the connection's end.

    `joined` puts head and body into one Send.
    """
    parts = list(pieces)
    fields = [("content-type", content_type), *headers]
    if framing == "chunked":
        fields.append(("transfer-encoding", "chunked"))
        sent = [chunk(part) for part in parts if part] + [chunk(b"")]
    else:
        if framing == "length":
            fields.append(("content-length", str(sum(map(len, parts)))))
        else:
            fields.append(("connection", "close"))
        sent = parts
    sent.insert(0, head(status, fields, "OK" if status == 200 else ""))
    script: Script = [Send(b"".join(sent))] if joined else [Send(part) for part in sent]
    return [*script, Close()] if framing == "close" else script


def usage(prompt: int, completion: int, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    """OpenAI's usage object; the details appear when they are not 0."""
    counts: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    if cached:
        counts["prompt_tokens_details"] = {"cached_tokens": cached}
    if reasoning:
        counts["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return counts


def completion(
    tokens: int | Sequence[str] = 3,
    *,
    chat: bool = True,
    prompt: int = 5,
    finish: str = "stop",
    counts: dict[str, Any] | None = None,
    headers: Headers = (),
) -> Script:
    """A whole answer of a chat (or, not `chat`, text) completion, one token per entry of `tokens`."""
    words = _words(tokens)
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish}
    choice |= {"message": {"role": "assistant", "content": "".join(words)}} if chat else {"text": "".join(words)}
    body = _envelope(chat, "chat.completion", [choice])
    body["usage"] = usage(prompt, len(words)) if counts is None else counts
    return answer(body, headers=headers)


def stream(
    tokens: int | Sequence[str] = 3,
    *,
    chat: bool = True,
    prompt: int = 5,
    finish: str = "stop",
    usage_shape: UsageShape = "separate",
    counts: dict[str, Any] | None = None,
    headers: Headers = (),
    framing: Framing = "chunked",
    newline: str = "\n",
    done: bool = True,
) -> Script:
    """A stream of one event per token, then the finishing events.

    `usage_shape` says where usage appears: in "none"; in a "separate" last event with empty choices
    (llama.cpp's chat, OpenAI); in the "last" event, which has the finish reason and no text (llama.cpp's
    text completions); in the last event with "content"; or, cumulative, in "every" event and in a separate
    last one (vLLM's continuous_usage_stats). `counts` replaces the final usage object.
    """
    words = _words(tokens)
    final = usage(prompt, len(words)) if counts is None else counts
    objects: list[dict[str, Any]] = []
    for number, word in enumerate(words, 1):
        ends = usage_shape == "content" and number == len(words)
        event = _envelope(chat, "chat.completion.chunk", [_delta(chat, word, finish if ends else None)])
        if usage_shape == "every":
            event["usage"] = usage(prompt, number)
        elif ends:
            event["usage"] = final
        objects.append(event)
    if usage_shape != "content":
        event = _envelope(chat, "chat.completion.chunk", [_delta(chat, "", finish)])
        if usage_shape == "every":
            event["usage"] = usage(prompt, len(words))
        elif usage_shape == "last":
            event["usage"] = final
        objects.append(event)
    if usage_shape in ("separate", "every"):
        objects.append(_envelope(chat, "chat.completion.chunk", []) | {"usage": final})
    events = [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in objects]
    if done:
        events.append("[DONE]")
    pieces = [f"data: {event}{newline}{newline}".encode() for event in events]
    return framed(pieces, "text/event-stream", headers=headers, framing=framing)


def cut(script: Script, *positions: int, every: int = 0, pause: float = 0.0) -> Script:
    """The same bytes in other pieces: cut at these byte offsets, or after each `every` bytes.

    Offsets count from the script's first byte; the borders between its own Sends vanish. Other steps
    keep their place in the byte sequence. A peer in another process may read pieces together unless
    there is a `pause` (seconds) after each.
    """
    total = len(sent_bytes(script))
    borders = set(range(every, total, every)) if every else set(positions)
    pieces: Script = []
    pending = b""
    offset = 0
    for step in script:
        if not isinstance(step, Send):
            pieces += [Send(pending)] if pending else []
            pending = b""
            pieces.append(step)
            continue
        start = 0
        for border in sorted(each for each in borders if offset < each <= offset + len(step.data)):
            pieces.append(Send(pending + step.data[start : border - offset]))
            pieces += [Pause(pause)] if pause else []
            pending = b""
            start = border - offset
        pending += step.data[start:]
        offset += len(step.data)
    return [*pieces, Send(pending)] if pending else pieces


def spaced(script: Script, step: Step) -> Script:
    """`step` before every Send that is not the script's beginning.

    A Pause makes a slow stream, a Gate one that a test hands out event by event.
    """
    spread: Script = []
    for each in script:
        if isinstance(each, Send) and spread:
            spread.append(step)
        spread.append(each)
    return spread


def after(script: Script, count: int, step: Step) -> Script:
    """The script's first `count` bytes, then `step` and nothing else."""
    kept: Script = []
    for each in cut(script, count):
        if count <= 0:
            break
        kept.append(each)
        count -= len(each.data) if isinstance(each, Send) else 0
    return [*kept, step]


def sent_bytes(script: Script) -> bytes:
    """Everything the script would send."""
    return b"".join(step.data for step in script if isinstance(step, Send))


def _words(tokens: int | Sequence[str]) -> list[str]:
    return [f"w{number} " for number in range(1, tokens + 1)] if isinstance(tokens, int) else list(tokens)


def _envelope(chat: bool, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1" if chat else "cmpl-1",
        "object": kind if chat else "text_completion",
        "created": 1700000000,
        "model": "scripted",
        "choices": choices,
    }


def _delta(chat: bool, text: str, finish: str | None) -> dict[str, Any]:
    said: dict[str, Any] = {"delta": {"content": text} if text else {}} if chat else {"text": text}
    return {"index": 0, **said, "finish_reason": finish}
