"""The part of OpenAI's API that the simulated engine reads, and the objects it answers with."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import Annotated, Any, Literal

import msgspec

from fairq.engines.text import token_count
from fairq.gateway.replies import error_reply

FINGERPRINT = "fairq-simulated"

Positive = Annotated[int, msgspec.Meta(ge=1)]
Choices = Annotated[int, msgspec.Meta(ge=1, le=128)]
TextOrTokens = str | list[str | int | list[int]]


class BadRequest(Exception):
    """The client's mistake: a status, a message, and OpenAI's word for it."""

    def __init__(self, status: int, message: str, code: str = "invalid_value", param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param


class StreamOptions(msgspec.Struct):
    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None  # vLLM's: cumulative usage in every chunk


class Generation(msgspec.Struct, kw_only=True):
    """What chat and text completions have in common."""

    model: str
    max_tokens: Positive | None = None
    max_completion_tokens: Positive | None = None  # wins over max_tokens, as in vLLM
    n: Choices | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    ignore_eos: bool | None = None  # vLLM's: go on to max_tokens

    @property
    def limit(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    @property
    def stops(self) -> list[str]:
        given = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return [stop for stop in given if stop]


class Message(msgspec.Struct):
    role: str
    content: str | list[dict[str, Any]] | None = None

    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(str(part.get("text", "")) for part in self.content)
        return self.content or ""


class ChatRequest(Generation, kw_only=True):
    messages: list[Message]

    def prompts(self) -> list[bytes]:
        """The one prompt that the messages make."""
        if not self.messages:
            raise BadRequest(400, "messages: must not be empty", param="messages")
        return ["".join(f"{each.role}: {each.text()}\n" for each in self.messages).encode()]


class CompletionRequest(Generation, kw_only=True):
    prompt: TextOrTokens

    def prompts(self) -> list[bytes]:
        return prompts_of(self.prompt, "prompt")


class EmbeddingRequest(msgspec.Struct, kw_only=True):
    model: str
    input: TextOrTokens
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, msgspec.Meta(ge=1, le=4096)] | None = None

    def prompts(self) -> list[bytes]:
        return prompts_of(self.input, "input")


def prompts_of(given: TextOrTokens, key: str) -> list[bytes]:
    """Prompts as bytes: a text, a list of texts, a list of token numbers, or a list of such lists.

    A token number becomes four bytes, which `token_count` counts as one token.
    """
    if isinstance(given, str):
        return [given.encode()]
    if given and all(isinstance(each, int) for each in given):
        return [_packed([each for each in given if isinstance(each, int)], key)]
    prompts = [
        each.encode() if isinstance(each, str) else _packed(each, key) for each in given if not isinstance(each, int)
    ]
    if not prompts or len(prompts) < len(given):
        raise BadRequest(400, f"{key}: must be a text, tokens, or a list of one of them, and not empty", param=key)
    return prompts


def _packed(tokens: list[int], key: str) -> bytes:
    try:
        return b"".join(token.to_bytes(4, "big") for token in tokens)
    except OverflowError:
        raise BadRequest(400, f"{key}: a token number must be from 0 to 4294967295", param=key) from None


def prompt_tokens(prompt: bytes) -> int:
    """At least one, as engines put a token at the beginning of each text."""
    return max(1, token_count(prompt))


def usage(prompt: int, completion: int, cached: int) -> dict[str, Any]:
    counts: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    if cached:
        counts["prompt_tokens_details"] = {"cached_tokens": cached}
    return counts


def error(status: int, message: str, code: str, param: str | None = None) -> bytes:
    """OpenAI's error envelope."""
    return error_reply(status, message, code=code, param=param)[1]


class Shape:
    """The objects of one response: chat or text, one id."""

    def __init__(self, chat: bool, identity: str, created: int, model: str) -> None:
        self.chat = chat
        self._head = {
            "id": f"{'chatcmpl' if chat else 'cmpl'}-{identity}",
            "created": created,
            "model": model,
            "system_fingerprint": FINGERPRINT,
        }

    def whole(self, choices: Items[tuple[str, str]], counts: dict[str, Any]) -> bytes:
        """The answer in one piece; a choice is (text, finish reason)."""
        listed = [
            ({"message": {"role": "assistant", "content": text}} if self.chat else {"text": text})
            | {"index": index, "logprobs": None, "finish_reason": finish}
            for index, (text, finish) in enumerate(choices)
        ]
        kind = "chat.completion" if self.chat else "text_completion"
        return msgspec.json.encode(self._head | {"object": kind, "choices": listed, "usage": counts})

    def event(
        self, index: int, text: str | None, finish: str | None, counts: dict[str, Any] | None, first: bool = False
    ) -> bytes:
        """One server-sent event of a choice; `counts` only with continuous usage."""
        said: dict[str, Any]
        if self.chat:
            delta = ({"role": "assistant"} if first else {}) | ({} if text is None else {"content": text})
            said = {"delta": delta}
        else:
            said = {"text": text or ""}
        choice = said | {"index": index, "logprobs": None, "finish_reason": finish}
        return self._event([choice], counts)

    def usage_event(self, counts: dict[str, Any]) -> bytes:
        """The event with usage and without choices."""
        return self._event([], counts)

    def _event(self, choices: list[dict[str, Any]], counts: dict[str, Any] | None) -> bytes:
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        body = self._head | {"object": kind, "choices": choices}
        if counts is not None:
            body["usage"] = counts
        return b"data: %b\n\n" % msgspec.json.encode(body)


DONE = b"data: [DONE]\n\n"
