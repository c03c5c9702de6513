"""The request bodies of the served endpoints, as far as fairq reads them. Other fields pass unread.

Types are strict where a value decides something here (`"100"`, `1e308`, `true` are not integers) and loose elsewhere:
what an engine accepts is the engine's business.
"""

from typing import Annotated

from msgspec import Meta, Raw, Struct

NOTHING = Raw()

Text = Annotated[str, Meta(min_length=1)]
# What follows goes into the ledger, whose integers have 64 bits; huge limits are capped by the estimator.
Limit = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Count = Annotated[int, Meta(ge=1, le=65_536)]
Priority = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Tokens = list[int]


class StreamOptions(Struct):
    include_usage: bool | None = None


class Link(Struct):
    url: str = ""


class Part(Struct):
    """A part of a message. Engines go by the key that is there as much as by `type`, so fairq looks at both."""

    type: str = "text"
    text: str | None = None
    refusal: str | None = None
    image_url: str | Link | None = None
    audio_url: str | Link | None = None
    video_url: str | Link | None = None


class Message(Struct):
    content: str | list[str | Part] | None = None
    tool_calls: Raw = NOTHING
    function_call: Raw = NOTHING
    reasoning_content: Raw = NOTHING


class Body(Struct, kw_only=True):
    """What all endpoints share."""

    model: Text
    user: str | None = None
    service_tier: str | None = None
    priority: Priority | None = None
    background: bool | None = None


class Generation(Body, kw_only=True):
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Limit | None = None
    max_completion_tokens: Limit | None = None
    # llama.cpp's own name, stronger there than max_tokens; -1 says "no limit"
    n_predict: Annotated[int, Meta(ge=-1, le=2**63 - 1)] | None = None
    n: Count | None = None
    best_of: Count | None = None


class Chat(Generation, kw_only=True):
    messages: list[Message]
    tools: Raw = NOTHING
    functions: Raw = NOTHING
    documents: Raw = NOTHING


class Completion(Generation, kw_only=True):
    prompt: str | list[str | int | Tokens] | None = None
    suffix: str | None = None


class Other(Generation, kw_only=True):
    """Of a path that only the configuration knows."""

    model: str = ""


class Embedding(Body, kw_only=True):
    input: str | list[str | int | Tokens] | None = None
    messages: list[Message] | None = None


class Peeked(Struct, frozen=True):
    """What a request asks for.

    fields         the names of the top-level fields
    prompts        how many prompts the body holds, at least 1
    prompt_bytes   UTF-8 bytes of all text that will be tokenised: messages, prompts, tool calls and definitions
    prompt_tokens  exact, when every prompt is given as token ids; else None
    messages       chat messages; each adds a few tokens of template
    images         parts that are not text: pictures, audio, video, files; their base64 is in no other number
    remote_media   one of them is an address that the engine would have to fetch
    include_usage  the client itself asked for usage in its stream
    limit          the largest of the given output limits, per choice; None without one, 0 where nothing is generated
    choices        answers the engine computes for each prompt: the larger of n and best_of
    """

    model: str
    fields: tuple[str, ...]
    prompts: int
    prompt_bytes: int
    prompt_tokens: int | None
    messages: int
    images: int
    remote_media: bool
    stream: bool = False
    include_usage: bool = False
    limit: int | None = None
    choices: int = 1
    user: str | None = None
    service_tier: str | None = None
    priority: int | None = None
