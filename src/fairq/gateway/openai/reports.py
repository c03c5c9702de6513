"""What is read of a response: the fields that speak of tokens, of its end, of failure. Others pass unread."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct


class Choice(Struct):
    index: int = 0
    finish_reason: str | None = None


Count = Annotated[int, Meta(ge=0, lt=2**53)]


class PromptDetails(Struct):
    cached_tokens: Count | None = None


class Reported(Struct):
    """OpenAI's usage object. Reasoning tokens are a part of completion_tokens and are not added."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    prompt_tokens_details: PromptDetails | None = None


class Response(Struct):
    """A whole response or one chunk of a stream; their fields have the same names."""

    choices: list[Choice] | None = None
    usage: Reported | None = None
    error: Any = None
    object: Any = None
    message: Any = None
    timings: Raw | None = None  # only llama.cpp sends it


decode_response = msgspec.json.Decoder(Response).decode
