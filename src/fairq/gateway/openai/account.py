"""What a response says about itself: tokens used, why it ended, whether it failed.

Read beside the bytes that are passed on, whatever an upstream sends: what cannot be read counts as not said.
The last usage wins: running usage (`continuous_usage_stats`) is cumulative.
"""

import json
from typing import Any

import msgspec
from msgspec import Struct

from fairq.core.cost import Source, Usage


class Choice(Struct):
    index: int = 0
    finish_reason: str | None = None


class Response(Struct):
    """A whole response or one chunk of a stream; their fields have the same names."""

    choices: list[Choice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    object: Any = None
    message: Any = None


decode_response = msgspec.json.Decoder(Response).decode

FINISH_REASONS = frozenset({"stop", "length", "tool_calls", "content_filter"})
OTHER_NAMES = {"function_call": "tool_calls", "eos": "stop", "eos_token": "stop", "stop_sequence": "stop"}


class Account:
    """What was learned of a response.

    usage           the last one reported, or None
    finish_reasons  by the index of the choice, in the upstream's own words
    error           the upstream's message, when it reported a failure inside the response
    """

    __slots__ = ("error", "finish_reasons", "usage")

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.finish_reasons: dict[int, str] = {}
        self.error: str | None = None

    @property
    def finish_reason(self) -> str | None:
        """One word: stop, length, tool_calls, content_filter or other. The first choice to finish speaks for all."""
        if not self.finish_reasons:
            return None
        reason = next(iter(self.finish_reasons.values()))
        reason = OTHER_NAMES.get(reason, reason)
        return reason if reason in FINISH_REASONS else "other"

    def read(self, document: bytes) -> bool:
        """Learn from one JSON document; False when it is none."""
        try:
            response = decode_response(document)
        except (ValueError, RecursionError):
            found = _read_leniently(document)
            if found is None:
                return False
            response = found
        if response.usage is not None:
            self.usage = _tokens(response.usage) or self.usage
        for choice in response.choices or ():
            if choice.finish_reason:
                self.finish_reasons[choice.index] = choice.finish_reason
        if response.error is not None:
            self.error = _message(response.error)
        elif response.object == "error":  # older vLLM sends the error without an envelope
            self.error = _message({"message": response.message})
        return True


def _read_leniently(document: bytes) -> Response | None:
    """Python's own decoder takes NaN and lone surrogates, which Python engines send; wrong types are left out."""
    try:
        found = json.loads(document)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    choices = found.get("choices")
    read = [
        Choice(choice["index"] if isinstance(choice.get("index"), int) else 0, choice["finish_reason"])
        for choice in (choices if isinstance(choices, list) else ())
        if isinstance(choice, dict) and isinstance(choice.get("finish_reason"), str)
    ]
    usage = found.get("usage")
    return Response(
        read,
        usage if isinstance(usage, dict) else None,
        found.get("error"),
        found.get("object"),
        found.get("message"),
    )


def _tokens(usage: dict[str, Any]) -> Usage | None:
    """OpenAI's usage object. Reasoning tokens are a part of completion_tokens and are not added."""
    prompt = _count(usage.get("prompt_tokens"))
    completion = _count(usage.get("completion_tokens"))
    if prompt is None and completion is None:
        return None
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    prompt = prompt or 0
    return Usage(prompt, completion or 0, min(cached or 0, prompt), Source.UPSTREAM)


def _count(value: object) -> int | None:
    """A number of tokens; anything else an upstream may put there says nothing."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < 2**53 else None


def _message(error: object) -> str:
    if isinstance(error, dict):
        error = error.get("message") or error.get("type") or "unspecified"
    return str(error)[:500]
