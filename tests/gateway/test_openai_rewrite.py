"""The upstream's body differs from the client's in what has to change and in not one byte more (D-7, F-8)."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq.gateway.openai.peek import peek
from fairq.gateway.openai.rewrite import STEERING, edit, rewrite

CHAT = "/v1/chat/completions"
HARD = (
    b' { "seed":\t123456789012345678901234567890, "temperature" : 0.10000000000000000001,\r\n'
    b'"messages" : [ {"role":"user", "content":"\\u65e5\\ud83d\\ude00 \\/ \xe6\x9c\xac"} ] ,'
    b'"model":"m", "logit_bias":{"50256" : -1E+2}'
)


def sent(body: bytes, **how: Any) -> bytes:
    return rewrite(body, peek(CHAT, body), **how)


def test_nothing_to_change_is_the_very_same_object() -> None:
    for rest in (b"}", b',"stream":false}', b',"stream":true,"stream_options":{"include_usage":true}}', b"}\r\n "):
        body = HARD + rest
        assert sent(body) is body
        assert sent(body, model="m") is body


def test_a_stream_asks_for_usage() -> None:
    body = HARD + b' , "stream" : true \n}\n'
    assert sent(body) == HARD + b' , "stream" : true \n,"stream_options":{"include_usage":true}}\n'
    assert sent(body, ask_usage=False) is body


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (b"null", b'{"include_usage":true}'),
        (b"{}", b'{"include_usage":true}'),
        (b"{ \n}", b'{"include_usage":true}'),
        (b'{"include_usage":false}', b'{"include_usage":true}'),
        (b'{"include_usage" : null }', b'{"include_usage" : true }'),
        (b'{"continuous_usage_stats":true}', b'{"continuous_usage_stats":true,"include_usage":true}'),
        (
            b'{"a":1e400,"include\\u005fusage":false,"b":"\\u00e9"}',
            b'{"a":1e400,"include\\u005fusage":true,"b":"\\u00e9"}',
        ),
    ],
)
def test_other_stream_options_are_kept(options: bytes, expected: bytes) -> None:
    body = HARD + b',"stream_options": %b ,"stream":true}'
    assert sent(body % options) == body % expected


def test_stream_options_without_a_stream_are_the_engines_business() -> None:
    body = HARD + b',"stream_options":{"include_usage":false}}'
    assert sent(body) is body


@pytest.mark.parametrize("field", sorted(STEERING))
@pytest.mark.parametrize("value", [b"1", b'{"deep":[{"x":"}"}]}', b"null"])
def test_steering_fields_are_removed(field: str, value: bytes) -> None:
    if field == "priority" and value.startswith(b"{"):
        value = b"-5"
    name = field.encode()
    assert sent(HARD + b', "%b" : %b }' % (name, value)) == HARD + b"}"
    assert sent(HARD + b',"%b":%b,"top_k":4}' % (name, value)) == HARD + b',"top_k":4}'
    assert sent(b'{"%b":%b,"model":"m","messages":[]}' % (name, value)) == b'{"model":"m","messages":[]}'


def test_a_steering_field_in_disguise_is_removed() -> None:
    assert sent(b'{"model":"m","messages":[],"pri\\u006frity":9}') == b'{"model":"m","messages":[]}'


def test_all_named_fields_of_the_security_rules_are_steering() -> None:
    assert {"priority", "vllm_xargs", "request_id", "kv_transfer_params", "cache_salt"} <= STEERING


def test_an_allowed_field_passes() -> None:
    body = HARD + b',"priority":3,"rid":"x"}'
    assert sent(body, strip=STEERING - {"priority"}) == HARD + b',"priority":3}'
    assert sent(body, strip=frozenset()) is body


def test_equal_names_deeper_inside_stay() -> None:
    body = b'{"model":"m","messages":[],"tools":[{"priority":1,"cache_salt":"x"}]}'
    assert sent(body) is body


# D-7: with a tenant's salt the engine's prefix cache cannot be probed by others, whatever the client sends.
@pytest.mark.parametrize("strip", [STEERING, frozenset()])
def test_a_tenants_salt_replaces_the_clients(strip: frozenset[str]) -> None:
    salted = b'{"model":"m","cache_salt": "s-1" ,"messages":[]}'
    assert sent(salted.replace(b"s-1", b"theirs"), cache_salt="s-1", strip=strip) == salted
    assert sent(HARD + b"}", cache_salt='s"1', strip=strip) == HARD + b',"cache_salt":"s\\"1"}'


def test_an_alias_is_replaced_in_place() -> None:
    body = b'{"messages":[{"model":"m"}], "model" : "m" ,"stop":"m"}'
    assert sent(body, model="org/big é") == body.replace(b' : "m"', ' : "org/big é"'.encode())


def test_everything_at_once() -> None:
    body = HARD + b',"stream":true,"id_slot":1,"stream_options":{"x":1},"cache_salt":""}'
    assert sent(body, model="up", cache_salt="s") == (
        HARD.replace(b'"model":"m"', b'"model":"up"')
        + b',"stream":true,"stream_options":{"x":1,"include_usage":true},"cache_salt":"s"}'
    )


SPACE = st.text(" \t\r\n", max_size=3)
NAMES = ["model", "a", "é", 'q"\\', "priority", "cache_salt", "x y", ""]
VALUES = st.sampled_from(
    ["1", "-0.0", "12345678901234567890123", "1E-400", '"\\u00e9,}"', '"\\\\"', '"\\""', "[1, {}]", '{"a":"]"}', "null"]
)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_every_other_byte_survives_any_edit(data: st.DataObject) -> None:
    """A document is built of members with spaces around; the expected one is built of those that stay."""
    names = data.draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    drop = data.draw(st.sets(st.sampled_from(NAMES)))
    put = data.draw(st.dictionaries(st.sampled_from(["model", "a", "new"]), st.sampled_from(["0", '"new"'])))
    head, tail = data.draw(SPACE) + "{", "}" + data.draw(SPACE)
    before, after = [], []
    for name in names:
        key = json.dumps(name, ensure_ascii=data.draw(st.booleans()))
        begin, end = f"{data.draw(SPACE)}{key}{data.draw(SPACE)}:{data.draw(SPACE)}", data.draw(SPACE)
        value = data.draw(VALUES)
        before.append(begin + value + end)
        if name in put:
            after.append(begin + put[name] + end)
        elif name not in drop:
            after.append(begin + value + end)
    after += [f'"{name}":{value}' for name, value in put.items() if name not in names]
    document = head + ",".join(before) + tail
    edited = edit(document.encode(), drop, {name: value.encode() for name, value in put.items()}).decode()
    assert edited == head + ",".join(after) + tail
    kept = {name: value for name, value in parsed(document).items() if name not in drop}
    assert parsed(edited) == {**kept, **{name: json.loads(value, parse_int=str) for name, value in put.items()}}


def parsed(document: str) -> dict[str, Any]:
    """An object whose numbers are still text, so that no digit can get lost unseen."""
    found: dict[str, Any] = json.loads(document, parse_int=str, parse_float=str)
    return found


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*STEERING, "top_p", "stop", "tools"]), st.none() | st.text(max_size=5), max_size=5
    ),
    st.none() | st.booleans(),
    st.none() | st.dictionaries(st.sampled_from(["include_usage", "other"]), st.none() | st.booleans()),
    st.sampled_from([None, 2]),
)
def test_what_the_upstream_reads(
    extra: dict[str, Any], stream: bool | None, options: dict[str, Any] | None, indent: int | None
) -> None:
    extra.pop("priority", None)
    body = {"model": "m", "messages": [], "stream": stream, "stream_options": options, **extra}
    expected = {name: value for name, value in body.items() if name not in STEERING}
    if stream:
        expected["stream_options"] = {**(options or {}), "include_usage": True}
    assert json.loads(sent(json.dumps(body, indent=indent).encode())) == expected
