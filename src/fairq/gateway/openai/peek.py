"""The peek: what the gateway must know of a request before it may wait, read from the body in one look.

Nothing is changed here and nothing is kept but a few numbers. The decoder takes the last of two equal keys while an
engine may take the first, so a body with a repeated key is refused: what is charged must be what runs.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, Final

from msgspec import DecodeError, Raw, ValidationError
from msgspec.json import Decoder, Encoder

from fairq.core.wrong_value import WrongValue
from fairq.gateway.openai.bodies import Chat, Completion, Embedding, Generation, Link, Message, Other, Peeked
from fairq.gateway.openai.errors import BadRequest


class Name:
    """A key that equals only itself, so that a dict of them keeps what a JSON object repeats."""

    __slots__ = ("text",)

    def __init__(self, kind: type, text: str) -> None:
        self.text = text


encode = Encoder().encode
members = Decoder(dict[str, Raw]).decode
all_members = Decoder(dict[Name, Raw], dec_hook=Name).decode

ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""Of a JSON string, a pair of surrogates as one."""

TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text", "refusal", "thinking"})


def peek(path: str, body: bytes) -> Peeked:
    """Read the request body of a path: one of `ENDPOINTS`, else only what all of them share. Raises BadRequest."""
    decode, look = ENDPOINTS.get(path, OTHER)
    try:
        if not body.isascii():
            body.decode()
        asked = decode(body)
        found = _unique_fields(body, "")
    except UnicodeDecodeError as error:
        raise BadRequest(f"the body is not valid UTF-8 (byte {error.start})", None, "invalid_json") from None
    except ValidationError as error:
        raise _refused(WrongValue.read(error, body)) from None
    except DecodeError as error:
        raise BadRequest(_what_is_wrong(body, error), None, "invalid_json") from None
    except RecursionError:
        raise BadRequest("the body is nested too deeply", None, "invalid_json") from None
    if asked.background:
        raise BadRequest("background: true is not supported here", "background", "unsupported_parameter")
    return look(asked, found)


def _what_is_wrong(body: bytes, error: DecodeError) -> str:
    if not body:
        return "the body is empty; it must be a JSON object"
    for escape in ESCAPE.finditer(body):
        if escape["lone"]:  # JSON.stringify writes it for half a character, as it is left where a text was cut
            return f"the body has a lone surrogate escape (byte {escape.start()}), which is no text in UTF-8"
    return f"the body is not valid JSON: {error}"


def _unique_fields(document: bytes, prefix: str) -> dict[str, Raw]:
    """The members of a JSON object. Raises BadRequest when a name is repeated, however it is spelled."""
    found = members(document)
    # Without a repeated key and without spaces an object encodes to itself: exact, and half the price of the other way.
    if encode(found) != document:
        every = all_members(document)
        if len(every) != len(found):
            [(twice, _)] = Counter(name.text for name in every).most_common(1)
            param = prefix + twice[:64]
            raise BadRequest(f"{param!r} is given more than once", param, "duplicate_parameter")
    return found


def _refused(wrong: WrongValue) -> BadRequest:
    if not wrong.key:
        return BadRequest(f"the body {wrong.rule.replace('an object', 'a JSON object')}", None, "invalid_type")
    code = "missing_parameter" if wrong.wants == "presence" else f"invalid_{wrong.wants}"
    return BadRequest(str(wrong), wrong.key, code)


def _chat(asked: Chat, found: dict[str, Raw]) -> Peeked:
    text, images, remote = _read_messages(asked.messages)
    text += len(asked.tools) + len(asked.functions) + len(asked.documents)
    return _generation(asked, found, 1, text, None, len(asked.messages), images, remote)


def _completion(asked: Completion, found: dict[str, Raw]) -> Peeked:
    prompts, text, tokens = _read_prompts(asked.prompt, "prompt")
    if asked.suffix:
        text, tokens = text + _utf8(asked.suffix), None
    return _generation(asked, found, prompts, text, tokens, 0, 0, False)


def _embedding(asked: Embedding, found: dict[str, Raw]) -> Peeked:
    if asked.input is None and asked.messages is None:
        raise BadRequest("input is missing", "input", "missing_parameter")
    prompts, text, tokens = _read_prompts(asked.input, "input")
    messages = asked.messages or ()
    more, images, remote = _read_messages(messages)
    return Peeked(
        asked.model,
        tuple(found),
        prompts,
        text + more,
        tokens,
        len(messages),
        images,
        remote,
        limit=0,
        user=asked.user,
        service_tier=asked.service_tier,
        priority=asked.priority,
    )


def _generation(
    asked: Generation,
    found: dict[str, Raw],
    prompts: int,
    prompt_bytes: int,
    prompt_tokens: int | None,
    messages: int,
    images: int,
    remote_media: bool,
) -> Peeked:
    """The fields of chat and text completion. Of two limits the larger counts: an engine obeys either."""
    limit = asked.max_tokens
    for other in (asked.max_completion_tokens, asked.n_predict):
        if other is not None and other >= 0 and (limit is None or other > limit):
            limit = other
    stream = asked.stream is True
    options = asked.stream_options
    if options is not None:
        _unique_fields(bytes(found["stream_options"]), "stream_options.")
    return Peeked(
        asked.model,
        tuple(found),
        prompts,
        prompt_bytes,
        prompt_tokens,
        messages,
        images,
        remote_media,
        stream,
        stream and options is not None and options.include_usage is True,
        limit,
        max(asked.n or 1, asked.best_of or 1),
        asked.user,
        asked.service_tier,
        asked.priority,
    )


def _utf8(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _read_messages(messages: Collection[Message]) -> tuple[int, int, bool]:
    """(bytes of text, parts that are not text, whether one of them is an address to fetch)."""
    size = images = 0
    remote = False
    for message in messages:
        size += len(message.tool_calls) + len(message.function_call) + len(message.reasoning_content)
        content = message.content
        if type(content) is str:
            size += len(content) if content.isascii() else len(content.encode())
            continue
        for part in content or ():
            if isinstance(part, str):
                size += _utf8(part)
                continue
            size += _utf8(part.text or "") + _utf8(part.refusal or "")
            links = [link for link in (part.image_url, part.audio_url, part.video_url) if link is not None]
            images += bool(links) or part.type not in TEXT_PARTS
            remote = remote or any(_is_remote(link) for link in links)
    return size, images, remote


def _is_remote(link: str | Link) -> bool:
    """Everything but inline data: engines also fetch http, file and whatever comes next."""
    address = link.url if isinstance(link, Link) else link
    return not address.startswith("data:")


def _read_prompts(given: str | list[str | int | list[int]] | None, param: str) -> tuple[int, int, int | None]:
    """(how many, bytes of text, tokens when all are token ids): a text, texts, token ids, or lists of token ids."""
    if given is None:
        return 1, 0, None
    if isinstance(given, str):
        return 1, _utf8(given), None
    kinds = set(map(type, given))
    if kinds == {int}:
        return 1, 0, len(given)
    if kinds == {list}:
        return len(given), 0, sum(map(len, given))  # type: ignore[arg-type]
    if kinds == {str}:
        return len(given), sum(map(_utf8, given)), None  # type: ignore[arg-type]
    rule = "mixes texts and token ids" if kinds else "is an empty list"
    raise BadRequest(f"{param} {rule}", param, "invalid_value")


def _other(asked: Other, found: dict[str, Raw]) -> Peeked:
    """Where such a body keeps its text is not known."""
    return _generation(asked, found, 1, 0, None, 0, 0, False)


Look = Callable[[Any, dict[str, Raw]], Peeked]
ENDPOINTS: dict[str, tuple[Callable[[bytes], Any], Look]] = {
    "/v1/chat/completions": (Decoder(Chat).decode, _chat),
    "/v1/completions": (Decoder(Completion).decode, _completion),
    "/v1/embeddings": (Decoder(Embedding).decode, _embedding),
}
OTHER: Final = (Decoder(Other).decode, _other)
