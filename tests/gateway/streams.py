"""Event streams as engines send them, with what is true of each, and an independent reader of such streams.

The shapes follow what OpenAI, vLLM, SGLang, llama.cpp and llama-cpp-python put on the wire; the texts are ours.
"""

import json
import re
from typing import Any, NamedTuple


class Sample(NamedTuple):
    """`removed` are the indices of the events that only report usage; `usage` is (prompt, completion, cached)."""

    events: tuple[bytes, ...]
    usage: tuple[int, int, int] | None
    chunks: int
    finish: str | None = "stop"
    removed: frozenset[int] = frozenset()
    done: bool = True

    @property
    def data(self) -> bytes:
        return b"".join(self.events)

    @property
    def stripped(self) -> bytes:
        return b"".join(event for index, event in enumerate(self.events) if index not in self.removed)


def chat(delta: str, finish: str = "null", rest: str = "", end: str = "\n\n") -> bytes:
    """A chunk in vLLM's order of keys."""
    return (
        'data: {"id":"chatcmpl-7c1","object":"chat.completion.chunk","created":1731000000,"model":"m-8b",'
        f'"choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}]{rest}}}{end}'
    ).encode()


def report(prompt: int, completion: int, details: str = "", end: str = "\n\n") -> bytes:
    """A chunk that only reports usage."""
    return (
        'data: {"id":"chatcmpl-7c1","object":"chat.completion.chunk","created":1731000000,"model":"m-8b",'
        f'"choices":[],"usage":{counts(prompt, completion, details)}}}{end}'
    ).encode()


def counts(prompt: int, completion: int, details: str = "") -> str:
    return (
        f'{{"prompt_tokens":{prompt},"total_tokens":{prompt + completion},"completion_tokens":{completion}{details}}}'
    )


CACHED = ',"prompt_tokens_details":{"cached_tokens":900}'
REASONING = ',"completion_tokens_details":{"reasoning_tokens":80}'
DONE = b"data: [DONE]\n\n"

OPENAI = Sample(
    (
        chat('{"role":"assistant","content":"","refusal":null}', rest=',"usage":null,"obfuscation":"gR3k"'),
        chat('{"content":"Grüße, "}', rest=',"usage":null,"obfuscation":"x0"'),
        chat('{"content":"世界 🌍!"}', rest=',"usage":null,"obfuscation":""'),
        chat("{}", '"stop"', rest=',"usage":null,"obfuscation":"PqP7w"'),
        report(1000, 3, CACHED + REASONING.replace("80", "0")).replace(
            b'"choices"', b'"service_tier":"default","choices"'
        ),
        DONE,
    ),
    usage=(1000, 3, 900),
    chunks=2,
    removed=frozenset({4}),
)

VLLM = Sample(
    (
        chat('{"role":"assistant","content":""}'),
        chat('{"content":"公平"}'),
        chat('{"content":"な\\n\\"待ち\\"行列"}'),
        chat('{"content":" 👩‍💻"}'),
        chat('{"content":"\\\\"}'),
        chat('{"content":""}', '"length"', ',"stop_reason":null'),
        report(17, 5),
        DONE,
    ),
    usage=(17, 5, 0),
    chunks=4,
    finish="length",
    removed=frozenset({6}),
)

VLLM_CONTINUOUS = Sample(
    (
        chat('{"role":"assistant","content":""}', rest=f',"usage":{counts(12, 0)}'),
        *(chat('{"content":" tick"}', rest=f',"usage":{counts(12, tokens)}') for tokens in range(1, 100)),
        chat('{"content":" tock"}', '"stop"', rest=f',"usage":{counts(12, 100)}'),
        report(12, 100),
        DONE,
    ),
    usage=(12, 100, 0),
    chunks=100,
    removed=frozenset({101}),
)

REASONED = Sample(
    (
        chat('{"role":"assistant","content":"","reasoning_content":null}'),
        chat('{"reasoning_content":"Let me see."}'),
        chat('{"reasoning_content":" Two."}'),
        chat('{"content":"2"}', '"stop"'),
        report(9, 100, REASONING),
        DONE,
    ),
    usage=(9, 100, 0),
    chunks=3,
    removed=frozenset({4}),
)

TOOLS = Sample(
    (
        chat(
            '{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}'
        ),
        chat('{"tool_calls":[{"index":0,"function":{"arguments":"{\\"usage\\":{\\"prompt_tokens\\":1}"}}]}'),
        chat('{"tool_calls":[{"index":0,"function":{"arguments":",\\"choices\\":[]}"}}]}'),
        chat("{}", '"tool_calls"'),
        report(40, 21),
        DONE,
    ),
    usage=(40, 21, 0),
    chunks=3,
    finish="tool_calls",
    removed=frozenset({4}),
)

LLAMA_CHAT = Sample(
    (
        b'data: {"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],'
        b'"created":1,"id":"c-1",'
        b'"model":"tiny","system_fingerprint":"b6123","object":"chat.completion.chunk"}\n\n',
        'data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"é"}}],"created":1,"id":"c-1",'
        '"model":"tiny","system_fingerprint":"b6123","object":"chat.completion.chunk"}\n\n'.encode(),
        b'data: {"choices":[{"finish_reason":"length","index":0,"delta":{}}],"created":1,"id":"c-1",'
        b'"model":"tiny","system_fingerprint":"b6123","object":"chat.completion.chunk"}\n\n',
        b'data: {"choices":[],"created":2,"id":"c-1","model":"tiny","system_fingerprint":"b6123",'
        b'"object":"chat.completion.chunk","usage":{"completion_tokens":1,"prompt_tokens":6,"total_tokens":7},'
        b'"timings":{"prompt_n":6,"prompt_ms":1.5,"predicted_n":1}}\n\n',
        DONE,
    ),
    usage=(6, 1, 0),
    chunks=1,
    finish="length",
    removed=frozenset({3}),
)

LLAMA_TEXT = Sample(
    (
        b'data: {"choices":[{"text":" one","index":0,"logprobs":null,"finish_reason":null}],"created":1,"model":"tiny",'
        b'"system_fingerprint":"b6123","object":"text_completion","id":"t-1"}\n\n',
        b'data: {"choices":[{"text":" two","index":0,"logprobs":null,"finish_reason":null}],"created":1,"model":"tiny",'
        b'"system_fingerprint":"b6123","object":"text_completion","id":"t-1"}\n\n',
        b'data: {"choices":[{"text":"","index":0,"logprobs":null,"finish_reason":"stop"}],"created":1,"model":"tiny",'
        b'"system_fingerprint":"b6123","object":"text_completion",'
        b'"usage":{"completion_tokens":2,"prompt_tokens":4,"total_tokens":6},"id":"t-1","timings":{"prompt_n":4}}\n\n',
        DONE,
    ),
    usage=(4, 2, 0),
    chunks=2,
)

CONTENT_WITH_USAGE = Sample(
    (chat('{"content":"a"}'), chat('{"content":"b"}', '"stop"', rest=f',"usage":{counts(3, 2)}'), DONE),
    usage=(3, 2, 0),
    chunks=2,
)

CRLF_AND_COMMENTS = Sample(
    (
        b": ping - 2025-01-01 00:00:00\r\n\r\n",
        chat('{"content":"日"}', end="\r\n\r\n"),
        b": ping - 2025-01-01 00:00:15\r\n\r\n",
        chat('{"content":"本"}', '"stop"', end="\r\n\r\n"),
        report(5, 2, end="\r\n\r\n"),
        b"data: [DONE]\r\n\r\n",
    ),
    usage=(5, 2, 0),
    chunks=2,
    removed=frozenset({4}),
)

LONE_CR = Sample(
    (
        chat('{"content":"x"}', end="\r\r"),
        report(5, 1, end="\r\r"),
        chat("{}", '"stop"', end="\r\r"),
        b"data: [DONE]\r\r",
    ),
    usage=(5, 1, 0),
    chunks=1,
    removed=frozenset({1}),
)

MULTI_LINE = Sample(
    (
        b'data: {"choices":[{"index":0,\ndata: "delta":{"content":"\xf0\x9f\xa6\x99"},"finish_reason":null}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{},\r\ndata: "finish_reason":"stop"}]}\r\n\r\n',
        b'data: {"choices":\ndata:[ ],\ndata: "usage":{"prompt_tokens":8,\ndata: "completion_tokens":1}}\n\n',
        DONE,
    ),
    usage=(8, 1, 0),
    chunks=1,
    removed=frozenset({2}),
)

SPACED = Sample(
    (
        b'data: {"choices": [{"index": 0, "delta": {"content": "a b"}, "finish_reason": null}], "usage": null}\n\n',
        b'data: {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}], "usage": null}\n\n',
        b'data: {"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 1}, "nothing": null}\n\n',
        DONE,
    ),
    usage=(2, 1, 0),
    chunks=1,
    removed=frozenset({2}),
)

NO_LAST_BLANK_LINE = Sample(
    (chat('{"content":"a"}'), chat('{"content":"b"}', '"stop"'), report(3, 2, end="\n")),
    usage=(3, 2, 0),
    chunks=2,
    removed=frozenset({2}),
    done=False,
)

NO_LAST_NEWLINE = Sample(
    (chat('{"content":"a"}'), chat('{"content":"b"}', '"stop"', rest=f',"usage":{counts(3, 2)}'), b"data: [DONE]"),
    usage=(3, 2, 0),
    chunks=2,
)

CUT_IN_AN_EVENT = Sample(
    (chat('{"content":"a"}'), chat('{"content":"b"}'), chat('{"content":"c"}')[:-40]),
    usage=None,
    chunks=2,
    finish=None,
    done=False,
)

BYTES_AFTER_DONE = Sample(
    (chat('{"content":"a"}', '"stop"'), report(3, 1), DONE, b": bye\n\n", b"event: end\ndata: {}\n\n", b"\n\n\x00tail"),
    usage=(3, 1, 0),
    chunks=1,
    removed=frozenset({1}),
)

# Empty choices without usage (Azure's prompt filter), usage beside other news, in an event with an id or a comment
# inside, in broken JSON, without choices: all of it is more than a usage report.
MORE_THAN_A_REPORT = Sample(
    (
        b'data: {"choices":[],"prompt_filter_results":[{"prompt_index":0}],"usage":null}\n\n',
        b'data: {"id":"x","choices":[],"usage":null}\n\n',
        b'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1},"citations":["a"]}\n\n',
        b'id: 7\ndata: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n',
        b': note\ndata: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":3}}\n\n',
        b'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":4}}\n: note\n\n',
        b'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":5}\n\n',
        b'data: {"usage":{"prompt_tokens":1,"completion_tokens":6}}\n\n',
        DONE,
    ),
    usage=(1, 6, 0),
    chunks=0,
    finish=None,
)

CRLF_MORE_THAN_A_REPORT = MORE_THAN_A_REPORT._replace(
    events=tuple(event.replace(b"\n", b"\r\n") for event in MORE_THAN_A_REPORT.events)
)

FAILED = Sample(
    (
        chat('{"content":"a"}'),
        b'data: {"error":{"message":"out of memory","type":"server_error","param":null,"code":500}}\n\n',
    ),
    usage=None,
    chunks=1,
    finish=None,
    done=False,
)

SAMPLES = {name.lower(): value for name, value in list(globals().items()) if isinstance(value, Sample)}


def events(stream: bytes) -> list[str]:
    """The data of each event, by the rules of the HTML standard (§9.2.6), except that a last event without its blank
    line is not discarded."""
    found: list[str] = []
    data: list[str] = []
    for line in re.split("\r\n|\n|\r", stream.decode()):
        name, colon, value = line.partition(":")
        if not line:
            found += ["\n".join(data)] if data else []
            data = []
        elif name == "data" and colon:
            data.append(value.removeprefix(" "))
    return found + (["\n".join(data)] if data else [])


def chunks(stream: bytes) -> list[dict[str, Any]]:
    """The events that are JSON objects."""
    found = []
    for data in events(stream):
        try:
            chunk = json.loads(data)
        except ValueError:
            continue
        if isinstance(chunk, dict):
            found.append(chunk)
    return found
