"""Usage reports leave the stream of a client that did not ask for them; every other byte stays (F-3, F-5, F-6, F-8)."""

import json
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gateway.streams import (
    BYTES_AFTER_DONE,
    CONTENT_WITH_USAGE,
    LLAMA_TEXT,
    MORE_THAN_A_REPORT,
    SAMPLES,
    VLLM,
    VLLM_CONTINUOUS,
    Sample,
    chat,
    counts,
    events,
    report,
)

from fairq.gateway.openai.strip import MAX_HELD, UsageStripper

EACH = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES.keys())


def strip(pieces: Iterable[bytes]) -> bytes:
    stripper = UsageStripper()
    return b"".join([*(stripper.feed(piece) for piece in pieces), stripper.finish()])


@EACH
def test_a_cut_at_any_byte_changes_nothing(sample: Sample) -> None:
    data = sample.data
    step = 1 if len(data) < 4_000 else 37
    for cut in range(0, len(data) + 1, step):
        assert strip((data[:cut], data[cut:])) == sample.stripped, f"cut at byte {cut}"


@EACH
def test_single_bytes_one_piece_and_events_give_the_same(sample: Sample) -> None:
    data = sample.data
    assert strip(data[i : i + 1] for i in range(len(data))) == sample.stripped
    assert strip([data]) == sample.stripped
    assert strip(sample.events) == sample.stripped


@EACH
def test_the_client_sees_every_event_but_the_reports(sample: Sample) -> None:
    kept = iter(events(strip([sample.data])))
    for data in events(sample.data):
        try:
            chunk = json.loads(data)
        except ValueError:
            chunk = {}
        only_usage = sample.removed and chunk.get("choices") == [] and chunk.get("usage")
        assert only_usage or next(kept) == data
    assert next(kept, None) is None


@pytest.mark.parametrize("sample", [LLAMA_TEXT, CONTENT_WITH_USAGE, MORE_THAN_A_REPORT])
def test_usage_that_comes_with_anything_else_stays(sample: Sample) -> None:
    assert strip(sample.events) == sample.data


def test_running_usage_stays_in_content_and_only_the_last_report_goes() -> None:
    assert strip(VLLM_CONTINUOUS.events) == VLLM_CONTINUOUS.data.replace(VLLM_CONTINUOUS.events[101], b"")


def test_whole_events_pass_untouched_and_at_once() -> None:
    stripper = UsageStripper()
    for event in (*VLLM.events[:6], b": waiting\n\n", b"data: [DONE]\n\n"):
        assert stripper.feed(event) is event


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
def test_only_what_may_be_a_report_is_held(end: str) -> None:
    """An event goes on as soon as its choices are known not to be empty; a line that is no data goes on at once."""
    event = chat('{"content":"a"}', end=end)
    known = event.index(b'"choices":[{') + len(b'"choices":[{')
    for cut in range(len(event) + 1):
        stripper = UsageStripper()
        out = stripper.feed(event[:cut])
        assert out == (event[:cut] if cut >= known else b""), f"cut at byte {cut}"
        assert out + stripper.feed(event[cut:]) == event
    stripper = UsageStripper()
    for character in ": waiting, position 3" + end:
        assert stripper.feed(character.encode()) == character.encode()


def test_done_and_plain_data_go_on_at_once() -> None:
    for start in (b"data: [", b"data:x", b"event", b"\n", b"\xef\xbb\xbf"):
        assert UsageStripper().feed(start) == start


def test_a_report_is_gone_when_its_blank_line_is_here() -> None:
    for end in ("\n\n", "\r\n\r\n", "\r\r"):
        stripper = UsageStripper()
        assert stripper.feed(report(1, 1, end=end)) == b""
        assert stripper.feed(b": next") == b": next"


@pytest.mark.parametrize("first", ["\r\n\r", "\r\n\r\n", "\r\r", "\n\n", "\n\r"])
def test_a_line_feed_that_ends_a_removed_event_goes_with_it(first: str) -> None:
    """After CR a LF belongs to the line before: of a removed event nothing may be left, of the next nothing lost."""
    whole = report(1, 1, end=first)
    extra = b"\n" if first.endswith("\r") else b""
    assert strip([whole, extra, b"data: x\n\n"]) == b"data: x\n\n"
    assert strip([whole + extra + b"data: x\n\n"]) == b"data: x\n\n"


def test_an_endless_event_is_passed_not_kept() -> None:
    stripper = UsageStripper()
    sent = b'data: {"id":"'
    got = stripper.feed(sent)
    for _ in range(3 * MAX_HELD // 100):
        sent += b"z" * 100
        got += stripper.feed(b"z" * 100)
        assert len(sent) - len(got) <= MAX_HELD
    rest = stripper.feed(b'"}\n\n' + report(1, 1) + b"data: [DONE]\n\n")
    assert got + rest == sent + b'"}\n\ndata: [DONE]\n\n'


def test_endless_short_data_lines_are_passed_not_kept() -> None:
    stripper = UsageStripper()
    held = 0
    for _ in range(MAX_HELD):
        held += len(b"data: {\n") - len(stripper.feed(b"data: {\n"))
        assert held <= MAX_HELD


def test_a_stream_that_breaks_off_in_an_event_gives_that_part_too() -> None:
    part = report(1, 1)[:-20]
    assert strip([part]) == part


def test_bytes_after_done_pass() -> None:
    assert strip([BYTES_AFTER_DONE.data]).endswith(b"data: [DONE]\n\n: bye\n\nevent: end\ndata: {}\n\n\n\n\x00tail")


ENDS = st.sampled_from(["\n\n", "\r\n\r\n", "\r\r", "\r\n\n", "\n\r\n"])
KINDS = st.sampled_from(["text", "report", "comment", "both", "null", "id", "done", "blank"])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(KINDS, ENDS), max_size=10), st.data())
def test_any_mixture_cut_anywhere(mixture: list[tuple[str, str]], data: st.DataObject) -> None:
    stream = expected = b""
    for kind, end in mixture:
        event = {
            "text": chat('{"content":"あ \\"usage\\": {} "}', end=end),
            "report": report(5, 2, end=end),
            "comment": f": data: {end}".encode(),
            "both": chat('{"content":"b"}', rest=f',"usage":{counts(5, 1)}', end=end),
            "null": chat("{}", rest=',"usage":null', end=end),
            "id": f"id: 1{end}".encode(),
            "done": f"data: [DONE]{end}".encode(),
            "blank": end[0].encode() * 2,
        }[kind]
        if stream.endswith(b"\r") and event.startswith(b"\n"):
            event = b""  # would be the other half of the line end before
        stream += event
        expected += b"" if kind == "report" else event
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert strip(pieces) == expected


LINES = st.sampled_from(
    [
        *("\n", "\n\n", "id: 1\n", ": c\n\n", "data: [DONE]\n\n", "data: \n\n"),
        *(report(5, 2).decode(), report(5, 2, end="\n").decode(), chat('{"content":"\\"usage\\""}').decode()),
        *('data: {"choices":[],\ndata: "usage":{}}\n\n', 'data: {"choices":[],"usage":{}' + " " * MAX_HELD + "}\n\n"),
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(LINES, max_size=8))
def test_whole_events_in_one_piece_are_judged_as_byte_by_byte(lines: list[str]) -> None:
    """Also where line feeds are one too few or too many."""
    stream = "".join(lines).encode()
    assert strip([stream]) == strip(stream[i : i + 1] for i in range(len(stream)))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.binary(max_size=20) | st.sampled_from([b"data:", b"\r", b"\n", b'"choices":[]', b'"usage":{']), max_size=20
    )
)
def test_bytes_that_are_no_events_pass_unchanged(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    assert strip(pieces) == data
