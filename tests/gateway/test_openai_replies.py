"""Whole responses that are read, and what fairq itself says."""

import json

import openai
import pytest
from tests.gateway.streams import chat, events

from fairq.gateway.openai.errors import BadRequest, error_body, error_event, waiting_comment
from fairq.gateway.openai.scan import MAX_BODY, TAIL, BodyReader

ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": 'says "usage": {} 🌍'}, "finish_reason": "stop"},
            {"index": 1, "message": {"role": "assistant", "content": "b"}, "finish_reason": "length"},
        ],
        "usage": {
            "prompt_tokens": 1000,
            "completion_tokens": 100,
            "total_tokens": 1100,
            "prompt_tokens_details": {"cached_tokens": 900},
            "completion_tokens_details": {"reasoning_tokens": 80},
        },
    },
    ensure_ascii=False,
).encode()


def read(*pieces: bytes) -> BodyReader:
    reader = BodyReader()
    for piece in pieces:
        reader.feed(piece)
    reader.finish()
    return reader


def tokens(reader: BodyReader) -> tuple[int, int, int] | None:
    usage = reader.usage
    return (usage.prompt, usage.completion, usage.cached) if usage else None


def test_an_answer_cut_at_any_byte() -> None:
    for cut in range(len(ANSWER) + 1):
        reader = read(ANSWER[:cut], ANSWER[cut:])
        assert tokens(reader) == (1000, 100, 900)  # reasoning tokens are among the 100
        assert reader.finish_reasons == {0: "stop", 1: "length"}
    assert tokens(read(*(ANSWER[i : i + 1] for i in range(len(ANSWER))))) == (1000, 100, 900)


def test_llama_cpp_reports_one_choice_of_several_in_a_whole_answer() -> None:
    """It stands for all of them: several answers must not cost what one does."""
    choices = ",".join(f'{{"index":{i},"finish_reason":"stop"}}' for i in range(4))
    usage = '{"completion_tokens":10,"prompt_tokens":8,"prompt_tokens_details":{"cached_tokens":2}}'
    body = f'{{"choices":[{choices}],"usage":{usage},"timings":{{"predicted_n":10}}}}'.encode()
    for per_prompt, expected in ((1, (32, 40, 8)), (2, (16, 40, 4)), (4, (8, 40, 2))):
        reader = BodyReader(per_prompt)
        reader.feed(body)
        reader.finish()
        assert tokens(reader) == expected
    assert tokens(read(body.replace(b"timings", b"metrics"))) == (8, 10, 2)


def test_embeddings_have_prompt_tokens_only() -> None:
    reader = read(b'{"object":"list","data":[{"embedding":[0.1,-2e-3]}],"usage":{"prompt_tokens":8,"total_tokens":8}}')
    assert tokens(reader) == (8, 0, 0)
    assert reader.finish_reason is None


def test_a_long_body_is_not_kept_and_its_usage_is_read_all_the_same() -> None:
    number = b"0.123456789,"
    reader = BodyReader()
    reader.feed(b'{"object":"list","data":[{"embedding":[')
    for _ in range(3 * MAX_BODY // (1000 * len(number))):
        reader.feed(number * 1000)
        assert len(reader._body) <= MAX_BODY + TAIL + 1000 * len(number)
    reader.feed(b'1]}],"usage":{"prompt_tokens":70,"total_tokens":70,"prompt_tokens_details":{"cached_tokens":3}}}')
    reader.finish()
    assert tokens(reader) == (70, 0, 3)


@pytest.mark.parametrize(
    "body", [b"", b"<html>502</html>", b"[]", b"null", b"{", b'{"usage":[1]}', b'{"usage":', b"\xff"]
)
def test_what_is_no_answer_says_nothing(body: bytes) -> None:
    reader = read(body)
    assert (tokens(reader), reader.finish_reason, reader.error) == (None, None, None)


def test_an_answer_cut_behind_its_usage_still_says_it() -> None:
    assert tokens(read(ANSWER[:-1])) == (1000, 100, 900)
    assert tokens(read(ANSWER[: ANSWER.index(b'"usage": {"prompt')])) is None


def test_wrong_types_in_an_answer_do_not_hide_its_usage() -> None:
    body = (
        b'{"choices":[{"index":"0","finish_reason":"stop"},null,7],"usage":{"prompt_tokens":3.0,"completion_tokens":2}}'
    )
    reader = read(body)
    assert (tokens(reader), reader.finish_reason) == ((3, 2, 0), "stop")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error":{"message":"no such model","type":"NotFoundError"}}', "no such model"),
        (b'{"error":"busy"}', "busy"),
        (b'{"object":"error","message":"too long","code":400}', "too long"),
        (b'{"error":null,"choices":[]}', None),
    ],
)
def test_an_upstreams_error_is_read(body: bytes, message: str | None) -> None:
    assert read(body).error == message


def test_the_error_envelope_is_openais() -> None:
    body = json.loads(error_body('say "no"\n', "invalid_request_error", "n", "invalid_value"))
    assert body == {
        "error": {"message": 'say "no"\n', "type": "invalid_request_error", "param": "n", "code": "invalid_value"}
    }
    assert json.loads(error_body("m", "t")) == {"error": {"message": "m", "type": "t", "param": None, "code": None}}
    assert json.loads(BadRequest("m", None, "c").body())["error"]["type"] == "invalid_request_error"


def client_reads(stream: bytes) -> list[str]:
    """What the official client yields, and the error it ends with."""
    import httpx

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=stream)

    transport = httpx.MockTransport(answer)
    with openai.OpenAI(api_key="k", base_url="http://x/v1", http_client=httpx.Client(transport=transport)) as client:
        found = []
        try:
            for chunk in client.chat.completions.create(model="m", messages=[], stream=True):
                found.append(chunk.choices[0].delta.content or "")
        except openai.APIError as error:
            found.append(f"failed: {error.message}")
        return found


def test_the_official_client_raises_at_a_failed_stream() -> None:
    stream = waiting_comment(3) + chat('{"content":"a"}') + error_event("the upstream went away", "upstream_error")
    assert client_reads(stream) == ["a", "failed: the upstream went away"]


def test_an_error_inside_an_event_is_an_event_of_its_own() -> None:
    broken = chat('{"content":"b"}')[:50]
    stream = broken + error_event("gone", "upstream_error", code="failed-midstream", inside_event=True)
    assert json.loads(events(stream)[-1])["error"]["message"] == "gone"
    assert len(events(stream)) == 2


def test_a_waiting_comment_is_no_event() -> None:
    assert waiting_comment(12) == b": waiting, position 12\n\n"
    assert events(waiting_comment(12)) == []
