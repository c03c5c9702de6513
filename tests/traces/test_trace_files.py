"""fairq's own format, tenants by a rule, and the one clear line for whatever is wrong with a file."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from fairq.core.errors import ConfigError
from fairq.traces import Request, Trace, TraceError, default_rule, describe, with_tenants

DATA = Path(__file__).parents[2] / "data"
HEADER = "arrival_s,client,input_tokens,output_tokens\n"
VLLM = "request_id,input_toks,output_toks,arrival_s,queued_s,scheduled_s,first_token_s,last_token_s\n"
BLOCKS = "arrival_s,input_tokens,output_tokens,blocks_4\n"
JSON = '{"arrival_s": 0, "output_tokens": 1, "input_tokens": %s}'


def written(folder: Path, text: str, name: str = "mine.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_own_csv_needs_three_columns_in_any_order_and_ignores_others(tmp_path: Path) -> None:
    path = written(tmp_path, "note,output_tokens,arrival_s,input_tokens\nhello,5,0,7\n\n,6,0.25,8\n")
    assert list(Trace(path)) == [
        Request(arrival=0, input_tokens=7, output_tokens=5),
        Request(arrival=0.25, input_tokens=8, output_tokens=6),
    ]


def test_own_csv_may_name_clients_and_prefix_blocks(tmp_path: Path) -> None:
    text = '\ufeffarrival_s,client,input_tokens,output_tokens,blocks_32\r\n1.5,"a, b",40,2,7 8\r\n'
    trace = Trace(written(tmp_path, text))
    assert (trace.format.name, trace.block_tokens, trace.clients) == ("fairq", 32, True)
    assert list(trace) == [Request(arrival=1.5, client="a, b", input_tokens=40, output_tokens=2, blocks=(7, 8))]


def test_own_json_lines_hold_the_same(tmp_path: Path) -> None:
    text = '{"arrival_s": 1.5, "client": "a, b", "input_tokens": 40, "output_tokens": 2, "blocks_32": [7, 8]}\n'
    trace = Trace(written(tmp_path, text))
    assert (trace.format.name, trace.block_tokens, trace.clients) == ("fairq", 32, True)
    assert list(trace) == [Request(arrival=1.5, client="a, b", input_tokens=40, output_tokens=2, blocks=(7, 8))]


def test_vllms_own_time_stamps_are_read_as_its_relative_times_are(tmp_path: Path) -> None:
    """The recorded file, given back a date and a clock as LLMServingSim's requests.jsonl has them."""
    recorded = list(Trace(DATA / "vllm" / "RTX4090_Llama-3.1-8B.csv"))[:50]
    lines = []
    for number, one in enumerate(recorded):
        assert one.measured is not None
        told, queued = one.measured, 200_000 + one.measured.queued
        waits = {"scheduled": told.scheduled, "first_token": told.ttft, "last_token": told.latency}
        line = {"request_id": f"bench-{number}", "input_toks": one.input_tokens, "output_toks": one.output_tokens}
        line |= {"arrival_time": 1_790_000_000 + one.arrival, "queued_ts": queued}
        lines.append(json.dumps(line | {f"{name}_ts": queued + (wait or 0) for name, wait in waits.items()}))
    trace = Trace(written(tmp_path, "\n".join(lines), "requests.jsonl"))
    assert trace.format.name == "vllm-stamps"
    for one, other in zip(trace, recorded, strict=True):
        assert (one.input_tokens, one.output_tokens) == (other.input_tokens, other.output_tokens)
        assert one.arrival == pytest.approx(other.arrival, abs=1e-6)
        assert one.measured is not None
        assert other.measured is not None
        for name in ("queued", "ttft", "latency", "scheduled"):
            assert getattr(one.measured, name) == pytest.approx(getattr(other.measured, name), abs=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "mine.csv: holds no request"),
        ("\n \n", "mine.csv: holds no request"),
        (HEADER, "mine.csv: holds no request"),
        ("when,what\n1,2\n", "mine.csv:1: unknown trace format with when, what. Known: fairq: arrival_s"),
        (HEADER + "0,a,1\n", "mine.csv:2: has 3 values, the header has 4"),
        (HEADER + "0,a,1,2\n1,a,x,2\n", "mine.csv:3: input_tokens = 'x': must be an integer of at least 0"),
        (HEADER + "0,a,1,-2\n", "mine.csv:2: output_tokens = '-2': must be an integer of at least 0"),
        (HEADER + "0,a,1.5,2\n", "mine.csv:2: input_tokens = '1.5': must be an integer of at least 0"),
        (HEADER + "soon,a,1,2\n", "mine.csv:2: arrival_s = 'soon': must be a number"),
        (HEADER + "nan,a,1,2\n", "mine.csv:2: arrival_s = 'nan': must be a number"),
        (HEADER + "-1,a,1,2\n", "mine.csv:2: arrival_s = '-1': must not be negative"),
        (HEADER + "0,,1,2\n", "mine.csv:2: client = '': must be text that is not empty"),
        (HEADER + "5,a,1,2\n4,a,1,2\n", "mine.csv:3: arrives 1 s before the line above it"),
        (HEADER + '0,"a,1,2\n', "mine.csv:2: is not CSV: unexpected end of data"),
        (HEADER.replace("client", "arrival_s") + "0,0,1,2\n", "mine.csv:1: has a column twice"),
        ('{"arrival_s": 0', "mine.csv:1: must be one JSON object per line: "),
        (JSON % "true", "mine.csv:1: input_tokens = True: must be an integer of at least 0"),
        (JSON % "null", "mine.csv:1: input_tokens is missing"),
        (JSON % '1, "blocks_16": ["a"]', "mine.csv:1: blocks_16 = ['a']: must be a list of integers"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nsoon,1,2\n", "mine.csv:2: TIMESTAMP = 'soon': must be a time"),
        (
            '{"arrival_s": 0, "input_tokens": 1, "output_tokens": 1, "think_s": 1e300}',
            "think_s = 1e+300: must be at most",
        ),
        (VLLM + "a,1,2,0,0,0,3,2\n", "mine.csv:2: last_token_s = '2': is before the time that must come before it"),
        (BLOCKS + "0,9,1,7 8\n1,9,1,8\n", "mine.csv:3: block 8 is the first here and after 7 elsewhere: an id must"),
        (BLOCKS + "0,9,1,7 8\n1,9,1,9 8\n", "mine.csv:3: block 8 is after 9 here and after 7 elsewhere: an id must"),
        (BLOCKS + "0,9,1,7 7\n", "mine.csv:2: block 7 is after 7 here and the first elsewhere: an id must"),
    ],
)
def test_a_bad_file_is_one_line_with_place_key_value_and_rule(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(TraceError) as caught:
        list(Trace(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_client_on_some_lines_only_is_an_error(tmp_path: Path) -> None:
    line = '{"arrival_s": 0, "input_tokens": 1, "output_tokens": 1%s}\n'
    trace = Trace(written(tmp_path, line % ', "client": "a"' + line % ""))
    with pytest.raises(TraceError, match=r"^mine.csv:2: client is missing$"):
        list(trace)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read: No such file"), (b"arrival_s,\xff\n", "is not UTF-8 text")],
)
def test_a_file_that_cannot_be_read_says_so(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "mine.csv"
    if content:
        path.write_bytes(content)
    with pytest.raises(TraceError, match=message):
        Trace(path)
    with pytest.raises(TraceError, match="cannot be read: Is a directory"):
        Trace(tmp_path)


def tenants(path: Path, rule: str) -> list[str]:
    return [request.client for request in with_tenants(Trace(path), rule)]


def test_a_traces_own_clients_are_its_tenants_by_default() -> None:
    trace = Trace(DATA / "vtc_real_trace.csv")
    assert default_rule(trace) == "trace"
    assert list(with_tenants(trace, "trace")) == list(trace)
    assert set(tenants(trace.path, "one")) == {"all"}


def test_hashing_places_gives_k_tenants_with_about_equal_traffic() -> None:
    path = DATA / "vtc_real_trace.csv"
    count = Counter(tenants(path, "hash:10"))
    assert sorted(count) == [f"t{number}" for number in range(10)]
    # 150 each in the mean, standard deviation below 12.
    assert min(count.values()) > 150 - 5 * 12
    assert max(count.values()) < 150 + 5 * 12
    assert tenants(path, "hash:10") == tenants(path, "hash:10")


def test_hashing_prefixes_keeps_equal_beginnings_together() -> None:
    path = DATA / "heads" / "sharegpt.jsonl"
    of_block: dict[int, set[str]] = {}
    for request in with_tenants(Trace(path), "prefix:100"):
        of_block.setdefault(request.blocks[0], set()).add(request.client)
    assert len(of_block) > 10
    assert {len(names) for names in of_block.values()} == {1}
    assert len(set.union(*of_block.values())) > 1


@pytest.mark.parametrize("rule", ["hash", "hash:0", "hash:-1", "hash:x", "prefix:99999", "user", ""])
def test_a_rule_nobody_knows_is_an_error_that_lists_the_rules(rule: str) -> None:
    with pytest.raises(ConfigError, match="must be trace, one, hash:K or prefix:K"):
        tenants(DATA / "heads" / "sharegpt.jsonl", rule)


def test_a_rule_the_trace_cannot_follow_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"azure_code.csv does not say who sent a request"):
        tenants(DATA / "heads" / "azure_code.csv", "trace")
    with pytest.raises(ConfigError, match=r"vtc_real_trace.csv has no prefix blocks"):
        tenants(DATA / "vtc_real_trace.csv", "prefix:4")


def test_one_request_has_a_description_without_gaps() -> None:
    found = describe([Request(arrival=3, input_tokens=5, output_tokens=7)])
    assert found is not None
    assert (found.requests, found.span, found.cv) == (1, 0, None)
    assert (found.input_tokens.p50, found.input_tokens.p99, found.output_tokens.mean) == (5, 5, 7)


def test_nothing_has_no_description() -> None:
    assert describe([]) is None
