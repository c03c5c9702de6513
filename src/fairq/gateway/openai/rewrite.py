"""The rewrite: a client's body becomes the upstream's. Members are cut out, replaced or appended; all else stays.

Nothing is encoded again, so big integers, long fractions, escapes and spaces arrive as they were sent.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from fairq.gateway.openai.bodies import Peeked
from fairq.gateway.openai.peek import members

# Fields by which a client would steer an engine past the gateway: its order, its cache, its place, its code.
STEERING: Final = frozenset(
    {
        "priority",
        "cache_salt",
        "request_id",
        "kv_transfer_params",
        "vllm_xargs",
        # SGLang
        "rid",
        "extra_key",
        "session_params",
        "lora_path",
        "custom_logit_processor",
        "bootstrap_host",
        "bootstrap_port",
        "bootstrap_room",
        "data_parallel_rank",
        "routed_dp_rank",
        "disagg_prefill_dp_rank",
        # Dynamo, llama.cpp
        "nvext",
        "id_slot",
    }
)

ASK_USAGE: Final = {"include_usage": b"true"}
ASK_USAGE_ONLY: Final = b'{"include_usage":true}'


def rewrite(
    body: bytes,
    peeked: Peeked,
    *,
    strip: frozenset[str] = STEERING,
    model: str | None = None,
    cache_salt: str | None = None,
    ask_usage: bool = True,
) -> bytes:
    """The body for the upstream, the very same object when nothing has to change.

    strip       fields that are removed
    model       replaces the model's name (an alias of ours that the upstream knows under another name)
    cache_salt  of the tenant; replaces the client's, also where clients may send one
    ask_usage   a streaming request that does not ask for usage asks for it; its other stream options are kept

    `peeked` must come from this very body.
    """
    put: dict[str, bytes] = {}
    if model is not None and model != peeked.model:
        put["model"] = msgspec.json.encode(model)
    if cache_salt is not None:
        put["cache_salt"] = msgspec.json.encode(cache_salt)
    if ask_usage and peeked.stream and not peeked.include_usage:
        put["stream_options"] = _asking(body) if "stream_options" in peeked.fields else ASK_USAGE_ONLY
    if not strip.isdisjoint(peeked.fields):
        return edit(body, strip, put)
    if not put:
        return body
    if not put.keys().isdisjoint(peeked.fields):
        return edit(body, (), put)
    end = body.rindex(b"}")
    return b"%b,%b%b" % (body[:end], _as_members(put), body[end:])  # a model is there: the object is never empty


def _asking(body: bytes) -> bytes:
    options = bytes(members(body)["stream_options"])
    return ASK_USAGE_ONLY if options == b"null" else edit(options, (), ASK_USAGE)


BEFORE_VALUE: Final = re.compile(rb'[ \t\r\n]*"(?:[^"\\]|\\.)*"[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
SPACE: Final = re.compile(rb"[ \t\r\n]*")


def edit(document: bytes, drop: Collection[str], put: Mapping[str, bytes]) -> bytes:
    """Edit the top level of a valid JSON object without repeated keys.

    Members in `put` get that value in place, or are appended; other members in `drop` go, with their comma and the
    spaces around them. All other bytes stay, in order.
    """
    start = position = document.index(b"{") + 1
    missing = dict(put)
    kept: list[bytes] = []
    for name, value in members(document).items():
        begins = _end(BEFORE_VALUE, document, position)
        ends = begins + len(value)
        after = _end(SPACE, document, ends)
        if name in missing:
            kept.append(document[position:begins] + missing.pop(name) + document[ends:after])
        elif name not in drop:
            kept.append(document[position:after])
        position = after + 1  # the comma, or the closing brace
    if missing:
        kept.append(_as_members(missing))
    closing = document.rindex(b"}")
    return document[:start] + b",".join(kept) + document[closing:]


def _as_members(put: Mapping[str, bytes]) -> bytes:
    return b",".join(b'"%b":%b' % (name.encode(), value) for name, value in put.items())


def _end(pattern: re.Pattern[bytes], document: bytes, position: int) -> int:
    found = pattern.match(document, position)
    assert found is not None  # the document was decoded before
    return found.end()
