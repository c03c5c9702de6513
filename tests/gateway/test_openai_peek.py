"""What the gateway believes of a request, and what it refuses (B-6, D-8): exact, or one clear line."""

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fairq.gateway.openai.bodies import Peeked
from fairq.gateway.openai.errors import BadRequest
from fairq.gateway.openai.peek import peek

CHAT, TEXT, EMBEDDING = "/v1/chat/completions", "/v1/completions", "/v1/embeddings"


def chat(**fields: Any) -> Peeked:
    messages = [{"role": "user", "content": "hi"}]
    return peek(CHAT, json.dumps({"model": "m", "messages": messages, **fields}).encode())


def text(**fields: Any) -> Peeked:
    return peek(TEXT, json.dumps({"model": "m", **fields}).encode())


def refused(path: str, body: bytes | str) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        peek(path, body.encode() if isinstance(body, str) else body)
    message = caught.value.message
    assert message
    assert message.isprintable()
    assert len(message) < 300
    return caught.value


def refused_field(member: str) -> BadRequest:
    return refused(CHAT, f'{{"model":"m","messages":[],{member}}}')


def test_a_chat_request() -> None:
    body = {
        "model": "llama",
        "messages": [{"role": "system", "content": "Be fair."}, {"role": "user", "content": "順番は?"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 64,
        "user": "u-1",
        "service_tier": "flex",
        "temperature": 0.5,
    }
    assert peek(CHAT, json.dumps(body).encode()) == Peeked(
        model="llama",
        fields=tuple(body),
        prompts=1,
        prompt_bytes=len("Be fair.") + len("順番は?".encode()),
        prompt_tokens=None,
        messages=2,
        images=0,
        remote_media=False,
        stream=True,
        include_usage=True,
        limit=64,
        choices=1,
        user="u-1",
        service_tier="flex",
    )


# B-6: the larger of two limits counts; absent and null are no limit; huge is for the estimator to cap.
@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({}, None),
        ({"max_tokens": None}, None),
        ({"max_tokens": None, "max_completion_tokens": None}, None),
        ({"max_tokens": 0}, 0),
        ({"max_tokens": 7}, 7),
        ({"max_completion_tokens": 9}, 9),
        ({"max_tokens": 1, "max_completion_tokens": 10_000}, 10_000),
        ({"max_tokens": 10_000, "max_completion_tokens": 1}, 10_000),
        ({"max_tokens": 10**9}, 10**9),
        ({"max_tokens": 5, "n_predict": 500}, 500),
        ({"n_predict": -1}, None),
    ],
)
def test_output_limits(fields: dict[str, Any], limit: int | None) -> None:
    assert chat(**fields).limit == limit
    assert text(**fields).limit == limit


@pytest.mark.parametrize("key", ["max_tokens", "max_completion_tokens", "n", "best_of", "priority"])
@pytest.mark.parametrize("value", ['"100"', "1.5", "1e308", "true", "[]", "{}", "-9223372036854775808", f"{2**63}"])
def test_numbers_of_the_wrong_type_or_size(key: str, value: str) -> None:
    error = refused_field(f'"{key}":{value}')
    assert error.param == key
    assert error.code in ("invalid_type", "invalid_value")
    assert key in error.message
    assert value in error.message


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "0x10", "01", "+1", "1_000", "None", "'1'"])
def test_numbers_that_are_no_json(value: str) -> None:
    assert refused_field(f'"max_tokens":{value}').code == "invalid_json"


@pytest.mark.parametrize(
    ("member", "param"),
    [
        ('"max_tokens":-1', "max_tokens"),
        ('"n":0', "n"),
        ('"best_of":-3', "best_of"),
        ('"n":65537', "n"),
        ('"stream":"yes"', "stream"),
        ('"stream":1', "stream"),
        ('"stream_options":[]', "stream_options"),
        ('"stream_options":{"include_usage":"on"}', "stream_options.include_usage"),
        ('"user":7', "user"),
        ('"background":"no"', "background"),
        ('"priority":2147483648', "priority"),
    ],
)
def test_values_that_break_a_rule_are_named(member: str, param: str) -> None:
    assert refused_field(member).param == param


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ('"max_tokens":"100"', 'max_tokens = "100": must be an integer'),
        ('"max_tokens":-1', "max_tokens = -1: must be an integer of at least 0"),
        ('"n":70000', "n = 70000: must be an integer of at most 65536"),
        ('"stream": "yes"', 'stream = "yes": must be true or false'),
        ('"stream_options":[]', "stream_options = []: must be an object"),
        ('"user":7', "user = 7: must be text"),
        ('"stream_options":{"include_usage":"on"}', "stream_options.include_usage: must be true or false, not text"),
        (f'"user":[{"1," * 50}1]', "user: must be text, not a list"),
    ],
)
def test_a_wrong_value_is_told_in_words(member: str, message: str) -> None:
    assert refused_field(member).message == message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "the body is empty; it must be a JSON object"),
        ("[]", "the body must be a JSON object, not a list"),
        ('{"model":"","messages":[]}', 'model = "": must have a length of at least 1'),
        ('{"model":"m","messages":[{"content":5}]}', "messages[0].content: must be text or a list, not an integer"),
        ('{"model":"m"}', "messages is missing"),
    ],
)
def test_a_wrong_body_is_told_in_words(body: str, message: str) -> None:
    assert refused(CHAT, body.encode()).message == message


def test_background_work_is_refused() -> None:
    assert refused_field('"background":true').code == "unsupported_parameter"
    assert chat(background=False).model == "m"


@pytest.mark.parametrize(
    ("path", "body", "param", "code"),
    [
        (CHAT, "", None, "invalid_json"),
        (CHAT, "null", None, "invalid_type"),
        (CHAT, "[]", None, "invalid_type"),
        (CHAT, '"model"', None, "invalid_type"),
        (CHAT, "{}", "model", "missing_parameter"),
        (CHAT, '{"model":null,"messages":[]}', "model", "invalid_type"),
        (CHAT, '{"model":"","messages":[]}', "model", "invalid_value"),
        (CHAT, '{"model":"m"}', "messages", "missing_parameter"),
        (CHAT, '{"model":"m","messages":"hi"}', "messages", "invalid_type"),
        (CHAT, '{"model":"m","messages":[{"content":5}]}', "messages[0].content", "invalid_type"),
        (CHAT, '{"model":"m","messages":[]', None, "invalid_json"),
        (CHAT, '{"model":"m","messages":[]}}', None, "invalid_json"),
        (CHAT, '{"model":"m","messages":[],}', None, "invalid_json"),
        (CHAT, '\ufeff{"model":"m","messages":[]}', None, "invalid_json"),
        (CHAT, '{"model":"m","messages":[{"content":"\\ud800"}]}', None, "invalid_json"),
        (CHAT, '{"model":"m","x":"\\udfff"}', None, "invalid_json"),
        (TEXT, '{"model":"m","prompt":{}}', "prompt", "invalid_type"),
        (TEXT, '{"model":"m","prompt":[]}', "prompt", "invalid_value"),
        (TEXT, '{"model":"m","prompt":["a",1]}', "prompt", "invalid_value"),
        (TEXT, '{"model":"m","prompt":[[1],"a"]}', "prompt", "invalid_value"),
        (TEXT, '{"model":"m","prompt":[1.5]}', "prompt[0]", "invalid_type"),
        (EMBEDDING, '{"model":"m"}', "input", "missing_parameter"),
    ],
)
def test_bodies_that_break_a_rule(path: str, body: str, param: str | None, code: str) -> None:
    error = refused(path, body)
    assert (error.param, error.code) == (param, code)


@pytest.mark.parametrize("where", ["content", "key", "other"])
def test_invalid_utf8_is_refused_wherever_it_stands(where: str) -> None:
    member = {"content": b'"user":"\xff"', "key": b'"\xc3(":1', "other": b'"stop":"\xed\xa0\x80"'}[where]
    assert refused(CHAT, b'{"model":"m","messages":[],' + member + b"}").code == "invalid_json"
    assert refused(CHAT, '{"model":"m","messages":[]}'.encode("utf-16")).code == "invalid_json"


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_is_bounded(opening: str) -> None:
    closing = {"[": "]", '{"a":': "}"}[opening]

    def nested(depth: int) -> str:
        return f'{{"model":"m","messages":[],"x":{opening * depth}1{closing * depth}}}'

    assert peek(CHAT, nested(200).encode()).fields == ("model", "messages", "x")
    assert refused(CHAT, nested(200_000)).code == "invalid_json"


def test_a_wrong_value_before_a_broken_rest_is_still_one_line() -> None:
    assert refused(CHAT, '{"model":"m","max_tokens":"1\\n2","x":}').param == "max_tokens"
    assert refused_field('"user":{"a":\n\n1}').param == "user"


# Two equal keys: which one counts depends on the reader, so none does.
@pytest.mark.parametrize("again", ['"max_tokens"', '"max\\u005ftokens"', '"\\u006dax_tokens"', ' "max_tokens" '])
@pytest.mark.parametrize("between", ["", '"x":{"max_tokens":1},', '"y":[1, 2],'])
def test_a_repeated_key_is_refused_however_it_is_spelled(again: str, between: str) -> None:
    error = refused_field(f'"max_tokens":1,{between}{again}:100000')
    assert (error.param, error.code) == ("max_tokens", "duplicate_parameter")


def test_a_repeated_stream_option_is_refused() -> None:
    error = refused_field('"stream_options":{"include_usage":true,"include_usage":false}')
    assert (error.param, error.code) == ("stream_options.include_usage", "duplicate_parameter")


def test_equal_keys_in_different_objects_are_fine() -> None:
    tools = [{"function": {"parameters": {"model": 1, "messages": 2, "max_tokens": 3}}}]
    assert chat(tools=tools, max_tokens=5).limit == 5


def escaped(name: str, positions: set[int]) -> str:
    return "".join(f"\\u{ord(char):04x}" if i in positions else json.dumps(char)[1:-1] for i, char in enumerate(name))


NAMES = st.sampled_from(["user", "n", "stream", "x", "é", 'a"b', "a\nb", ""])


@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(NAMES, st.sets(st.integers(0, 5))), max_size=6), st.sampled_from(["", " ", "\n\t"]))
def test_a_body_is_refused_exactly_when_python_sees_a_key_twice(names: list[tuple[str, set[int]]], space: str) -> None:
    members = ['"model":"m"', '"messages":[]', *(f'"{escaped(name, at)}":{space}null' for name, at in names)]
    body = "{" + f",{space}".join(members) + "}"
    pairs = json.loads(body, object_pairs_hook=list)
    if len({name for name, _ in pairs}) < len(pairs):
        assert refused(CHAT, body).code == "duplicate_parameter"
    else:
        assert peek(CHAT, body.encode()).fields == tuple(name for name, _ in pairs)


def test_many_keys_are_checked_in_linear_time() -> None:
    members = ",".join(f'"k{i}":0' for i in range(20_000))
    assert refused_field(f'{members},"k19999": 1').param == "k19999"


@pytest.mark.parametrize(("fields", "choices"), [({}, 1), ({"n": 3}, 3), ({"n": 2, "best_of": 5}, 5), ({"n": None}, 1)])
def test_choices_are_the_larger_of_n_and_best_of(fields: dict[str, Any], choices: int) -> None:
    assert chat(**fields).choices == choices
    assert text(**fields).choices == choices


@pytest.mark.parametrize(
    ("prompt", "prompts", "size", "tokens"),
    [
        ("héllo", 1, 6, None),
        (["a", "日本"], 2, 7, None),
        ([1, 2, 3], 1, 0, 3),
        ([[1, 2], [3, 4, 5]], 2, 0, 5),
        ([[]], 1, 0, 0),
        (None, 1, 0, None),
    ],
)
def test_prompts(prompt: Any, prompts: int, size: int, tokens: int | None) -> None:
    found = text(prompt=prompt)
    assert (found.prompts, found.prompt_bytes, found.prompt_tokens) == (prompts, size, tokens)
    if prompt is not None:
        body = json.dumps({"model": "e", "input": prompt}).encode()
        found = peek(EMBEDDING, body)
        assert (found.prompts, found.prompt_bytes, found.prompt_tokens) == (prompts, size, tokens)
        assert found.limit == 0


def test_a_suffix_is_prompt_too() -> None:
    found = text(prompt=[1, 2], suffix="}")
    assert (found.prompt_bytes, found.prompt_tokens) == (1, None)


def test_tools_and_tool_calls_are_prompt_too() -> None:
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]
    calls = [{"id": "1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}]
    messages = [{"role": "assistant", "content": None, "tool_calls": calls}, {"role": "tool", "content": "42"}]
    body = json.dumps({"model": "m", "messages": messages, "tools": tools}, separators=(",", ":"))
    expected = sum(len(json.dumps(part, separators=(",", ":"))) for part in (tools, calls)) + len("42")
    assert peek(CHAT, body.encode()).prompt_bytes == expected


def content(*parts: Any) -> Peeked:
    return chat(messages=[{"role": "user", "content": list(parts)}])


def test_parts_count_as_text_or_as_media() -> None:
    pixel = "data:image/png;base64," + "A" * 4000
    found = content(
        {"type": "text", "text": "what is this?"},
        "and this",
        {"type": "image_url", "image_url": {"url": pixel, "detail": "low"}},
        {"image_url": pixel},
        {"type": "input_audio", "input_audio": {"data": "A" * 4000, "format": "wav"}},
    )
    assert (found.prompt_bytes, found.images, found.remote_media) == (len("what is this?and this"), 3, False)


@pytest.mark.parametrize("key", ["image_url", "audio_url", "video_url"])
@pytest.mark.parametrize("address", ["http://10.0.0.1/x", "https://x/y.png", "file:///etc/passwd", " data:,", "x"])
@pytest.mark.parametrize("kind", ["image_url", "text", None])
def test_an_address_to_fetch_is_seen_whatever_the_type_says(key: str, address: str, kind: str | None) -> None:
    named = {"type": kind} if kind else {}
    assert content({**named, key: address}).remote_media
    assert content({**named, key: {"url": address}}).remote_media
    assert not content({**named, key: {"url": "data:image/png;base64,AA"}}).remote_media


JSON_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@settings(max_examples=100, deadline=None)
@given(st.lists(JSON_TEXT, max_size=5), st.booleans(), st.sampled_from([None, 1]))
def test_bytes_of_text_do_not_depend_on_how_the_json_is_written(
    texts: list[str], ascii: bool, indent: int | None
) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": text} for text in texts]}
    found = peek(CHAT, json.dumps(body, ensure_ascii=ascii, indent=indent).encode())
    assert found.prompt_bytes == sum(len(text.encode()) for text in texts)
    assert found.messages == len(texts)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
KEYS = [
    "model",
    "messages",
    "prompt",
    "input",
    "stream",
    "stream_options",
    "max_tokens",
    "n",
    "user",
    "tools",
    "priority",
]


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([CHAT, TEXT, EMBEDDING]), st.dictionaries(st.sampled_from(KEYS), ANY_JSON, max_size=6))
def test_any_json_is_peeked_or_refused_in_one_line(path: str, body: dict[str, Any]) -> None:
    raw = json.dumps(body).encode()
    try:
        assert peek(path, raw).model == body["model"]
    except BadRequest as error:
        assert error.message.isprintable()  # noqa: PT017
        assert json.loads(error.body())["error"]["code"] == error.code  # noqa: PT017


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_refused(raw: bytes) -> None:
    assume(b"model" not in raw)
    assert refused(CHAT, raw).code in ("invalid_json", "invalid_type", "missing_parameter", "duplicate_parameter")


@pytest.mark.parametrize(
    "text", ["\\ud800", "\\uD83Dx", "\\udc00", "\\uDBFF\\ud800", "\\ud83d\\n", "\\ud83d\\ude00\\ude00"]
)
def test_half_a_character_is_named_as_what_it_is(text: str) -> None:
    """JSON.stringify writes a lone surrogate as an escape; such a body is whole, and JSON by its grammar."""
    for body in (f'{{"model":"m","messages":[{{"content":"ok \\\\ud800 {text}"}}]}}', f'{{"model":"m","{text}":1}}'):
        assert "has a lone surrogate escape (byte" in refused(CHAT, body.encode()).message


def test_whole_characters_and_escaped_backslashes_are_no_surrogates() -> None:
    body = b'{"model":"m","messages":[{"content":"\\ud83d\\ude00 \\\\ud800"}]'
    assert peek(CHAT, body + b"}").prompt_bytes == 4 + len(r" \ud800")
    assert "not valid JSON" in refused(CHAT, body).message
