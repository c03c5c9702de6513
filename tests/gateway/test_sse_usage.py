"""What is read beside a stream: the same however it was cut, for all that engines send (B-3, B-4, F-3, F-5, F-6)."""

import json
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gateway.streams import CACHED, FAILED, SAMPLES, VLLM_CONTINUOUS, Sample, chat, chunks, counts, report

from fairq.gateway.openai.scan import MAX_LINE, UsageScanner

EACH = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES.keys())


def scan(pieces: Iterable[bytes], choices: int = 1) -> UsageScanner:
    scanner = UsageScanner(choices)
    for piece in pieces:
        scanner.feed(piece)
    scanner.finish()
    return scanner


def learned(scanner: UsageScanner) -> tuple[object, ...]:
    usage = scanner.usage
    found = (usage.prompt, usage.completion, usage.cached) if usage else None
    return found, scanner.chunks, scanner.finish_reason, scanner.done


def truth(sample: Sample) -> tuple[object, ...]:
    return sample.usage, sample.chunks, sample.finish, sample.done


@EACH
def test_a_sample_is_what_an_independent_reader_says(sample: Sample) -> None:
    found = [chunk["usage"] for chunk in chunks(sample.data) if chunk.get("usage")]
    last = found[-1] if found else None
    assert (last and (last["prompt_tokens"], last["completion_tokens"])) == (sample.usage and sample.usage[:2])


@EACH
def test_events_read_whole(sample: Sample) -> None:
    assert learned(scan(sample.events)) == truth(sample)


@EACH
def test_a_cut_at_any_byte_changes_nothing(sample: Sample) -> None:
    data = sample.data
    step = 1 if len(data) < 4_000 else 37
    for cut in range(0, len(data) + 1, step):
        assert learned(scan((data[:cut], data[cut:]))) == truth(sample), f"cut at byte {cut}"


@EACH
def test_single_bytes_and_one_piece_say_the_same(sample: Sample) -> None:
    data = sample.data
    assert learned(scan(data[i : i + 1] for i in range(len(data)))) == truth(sample)
    assert learned(scan([data])) == truth(sample)


@EACH
@pytest.mark.parametrize("together", [2, 3, 7])
def test_several_events_in_a_read(sample: Sample, together: int) -> None:
    events = sample.events
    reads = [b"".join(events[at : at + together]) for at in range(1, len(events), together)]
    assert learned(scan([events[0], *reads])) == truth(sample)


TEXTS = st.text(alphabet='a"\\{}:,é \n', max_size=3)


@settings(max_examples=150)
@given(st.lists(st.lists(st.one_of(TEXTS, st.just("word")), min_size=1, max_size=5), max_size=6))
def test_texts_that_look_like_json_in_several_events_a_read(reads: list[list[str]]) -> None:
    """Texts with quotes and braces, and empty ones, among plain ones: as many chunks as a JSON reader finds texts."""
    pieces = [
        b"".join(chat(json.dumps({"content": text}, separators=(",", ":"))) for text in read)
        for read in [["first"], *reads]
    ]
    found = [json.loads(line[6:]) for piece in pieces for line in piece.splitlines() if line.startswith(b"data: ")]
    texts = [chunk["choices"][0]["delta"]["content"] for chunk in found]
    assert scan(pieces).chunks == sum(map(bool, texts))


def test_running_usage_is_cumulative_and_never_summed() -> None:
    scanner = UsageScanner()
    for number, event in enumerate(VLLM_CONTINUOUS.events[:50]):
        scanner.feed(event)
        assert scanner.usage is not None
        assert scanner.usage.completion == number


def test_a_failure_inside_a_stream_is_seen() -> None:
    assert scan(FAILED.events).error == "out of memory"
    older = b'data: {"object":"error","message":"bad","type":"BadRequestError","code":400}\n\n'
    assert scan([older]).error == "bad"
    assert scan([chat('{"content":"\\"error\\": {}"}')]).error is None


def test_events_ended_by_a_single_line_feed_are_read_one_by_one() -> None:
    sloppy = b"".join(chat('{"content":"a"}', end="\n") for _ in range(3)) + b"data: [DONE]\n"
    assert scan([sloppy, b"\n"]).chunks == 3


def test_finish_reasons_of_several_choices() -> None:
    second = chat("{}", '"length"').replace(b'"index":0', b'"index":1')
    scanner = scan([chat("{}", '"function_call"'), second])
    assert scanner.finish_reasons == {0: "function_call", 1: "length"}
    assert scanner.finish_reason == "tool_calls"
    assert scan([chat("{}", '"abort"')]).finish_reason == "other"


@pytest.mark.parametrize(
    "usage",
    ["[]", '"many"', "{}", '{"prompt_tokens":"5"}', '{"prompt_tokens":true}', '{"prompt_tokens":-1}', "1e999"],
)
def test_usage_that_makes_no_sense_says_nothing(usage: str) -> None:
    good = chat('{"content":"a"}', rest=f',"usage":{counts(1, 1)}')
    bad = chat('{"content":"a"}', '"stop"', rest=f',"usage":{usage}')
    scanner = scan([good, bad])
    assert learned(scanner) == ((1, 1, 0), 2, "stop", False)


def test_python_engines_write_what_is_no_json() -> None:
    nan = chat('{"content":"\\ud83d"}', '"stop"', rest=f',"logprob":NaN,"usage":{counts(4, 2)}')
    assert learned(scan([nan])) == ((4, 2, 0), 1, "stop", False)


def test_more_cached_than_prompt_tokens_cannot_be() -> None:
    scanner = scan([chat("{}", rest=f',"usage":{counts(5, 1, CACHED)}')])
    assert scanner.usage is not None
    assert scanner.usage.cached == 5


def test_an_endless_line_is_not_kept() -> None:
    scanner = UsageScanner()
    scanner.feed(b"data: {")
    for _ in range(3 * MAX_LINE // 1000):
        scanner.feed(b"x" * 1000)
        assert len(scanner._carry) <= MAX_LINE + 1000
    assert scanner.inside_event
    scanner.feed(b"x\n\n" + chat('{"content":"a"}', rest=f',"usage":{counts(7, 1)}'))
    assert learned(scanner) == ((7, 1, 0), 1, None, False)
    assert not scanner.inside_event


def test_an_endless_event_is_not_kept() -> None:
    scanner = UsageScanner()
    for _ in range(3 * MAX_LINE // 1000):
        scanner.feed(b"data: " + b"y" * 1000 + b"\n")
        assert sum(map(len, scanner._lines)) <= MAX_LINE + 1000
    scanner.feed(b"\n" + chat('{"content":"a"}'))
    assert scanner.chunks == 1


def test_inside_event_tells_whether_a_part_went_out() -> None:
    scanner = UsageScanner()
    event = chat('{"content":"a"}')
    for cut in range(1, len(event) - 1):
        scanner = UsageScanner()
        scanner.feed(event[:cut])
        assert scanner.inside_event
        scanner.feed(event[cut:])
        assert not scanner.inside_event


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXTS, max_size=12), st.sampled_from(["\n\n", "\r\n\r\n", "\r\r"]), st.data())
def test_any_text_counts_once_however_it_is_written_and_cut(texts: list[str], end: str, data: st.DataObject) -> None:
    ascii_only = data.draw(st.booleans())
    stream = b"".join(
        chat(json.dumps({"content": text}, ensure_ascii=ascii_only, separators=(",", ":")), end=end) for text in texts
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    expected = sum(bool(chunk["choices"][0]["delta"]["content"]) for chunk in chunks(stream))
    assert scan(pieces).chunks == expected == sum(map(bool, texts))


@EACH
@pytest.mark.parametrize("size", [2, 3, 5])
def test_several_events_in_one_piece(sample: Sample, size: int) -> None:
    events = sample.events
    assert learned(scan(b"".join(events[i : i + size]) for i in range(0, len(events), size))) == truth(sample)
    assert learned(scan([*events[:2], b"".join(events[2 : 2 + size]), *events[2 + size :]])) == truth(sample)


def test_usage_behind_a_text_is_seen_when_all_around_it_is_as_before() -> None:
    """The quick way takes an event for one like the last, by its two ends; this one has the ends and news inside."""
    before = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
    news = before.replace(b'"a"}}]', b'"b"}}],"usage":{"prompt_tokens":2,"completion_tokens":3},"x":[{"y":{"z":"c"}}]')
    scanner = scan([before, before, news, before])
    assert learned(scanner) == ((2, 3, 0), 4, None, False)


def test_comments_deliver_nothing() -> None:
    assert scan([b"\n: a\n", b"\n", b": b\n\n", b"\n", b"data\n\n", b"event: x\n\n"]).chunks == 0


def test_pairs_of_events_that_end_alike_are_two_each() -> None:
    last = chat('{"content":"same"}')
    assert scan(chat(f'{{"content":"{word}"}}') + last for word in "abc").chunks == 6


def test_the_last_usage_wins_even_if_it_was_there_before() -> None:
    text = chat('{"content":"a"}', rest=f',"usage":{counts(1, 1)}')
    scanner = scan([text, text, report(1, 9), text])
    assert scanner.usage is not None
    assert scanner.usage.completion == 1


def of(index: int, event: bytes) -> bytes:
    return event.replace(b'"index":0', b'"index":%d' % index)


END = chat("{}", '"stop"')


def test_llama_cpp_reports_each_choice_of_a_chat_by_itself() -> None:
    stream = [of(1, END), report(16, 5), END, report(16, 7), b"data: [DONE]\n\n"]
    assert learned(scan(stream, choices=2)) == ((16, 12, 0), 0, "stop", True)


def test_llama_cpp_reports_each_text_of_a_prompt_list_by_itself() -> None:
    ends = [of(i, chat("{}", '"length"', f',"usage":{counts(5 + i, 4)},"timings":{{}}')) for i in (1, 0, 3, 2)]
    assert learned(scan(ends, choices=1))[0] == (5 + 6 + 7 + 8, 16, 0)
    ends = [of(i, chat("{}", '"length"', f',"usage":{counts(5 + i // 2, 4)}')) for i in (1, 0, 3, 2)]
    assert learned(scan(ends, choices=2))[0] == (5 + 6, 16, 0)


def test_a_report_after_all_choices_is_the_whole_requests() -> None:
    assert learned(scan([END, of(1, END), report(16, 12)], choices=2))[0] == (16, 12, 0)


def test_running_usage_of_several_choices_adds_up_when_the_client_leaves() -> None:
    running = [
        of(i, chat('{"content":"a"}', rest=f',"usage":{counts(16, tokens)}')) for tokens in (1, 2, 3) for i in (0, 1)
    ]
    assert learned(scan(running[:-1], choices=2))[0] == (16, 5, 0)
    assert learned(scan([*running, report(16, 6)], choices=2))[0] == (16, 6, 0)
