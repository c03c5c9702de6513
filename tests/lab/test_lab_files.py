"""Files opened in the lab: a ledger is told as it was recorded, a trace runs, and a line that is wrong is named."""

import base64
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.recording import router_example, write_segment

from fairq.core.lines import encode
from fairq.lab.files import recent
from fairq.lab.worker import MOST_PLAIN, answer, place_of
from fairq.ledger.segment import LedgerError
from fairq.traces.formats import FORMATS

DATA = Path(__file__).parents[2] / "data"
ARTICLE = "ABBCBBCABBCBCA"
CLOCK = [0, 0, 2, 2, 4, 6, 6, 8, 8, 10, 10, 12, 14, 16]  # V at each of those dispatches
END = 24  # V after the last queue has emptied


def opened(*files: tuple[str, bytes], **order: Any) -> tuple[int, Any]:
    given = [{"name": name, "data": base64.b64encode(data).decode()} for name, data in files]
    status, body = answer(json.dumps({"files": given, **order}).encode())
    return status, json.loads(body)


def segment(policy: str = "sfq") -> bytes:
    run = router_example(policy)
    return b"".join([encode(run.head) + b"\n", *run.lines])


def test_the_articles_router_run_is_told_from_a_ledger() -> None:
    status, told = opened(("00000001.jsonl", segment()))
    assert status == 200
    assert told["layer"] == "ledger"
    [run] = told["runs"]
    sent = [step for step in run["steps"] if step["kind"] == "dispatch"]
    assert "".join(step["what"]["tenant"] for step in sent) == ARTICLE
    assert [step["what"]["virtual_time"] for step in sent] == CLOCK
    assert [step["what"]["before"]["meters"][step["what"]["tenant"]] for step in sent] == CLOCK
    assert [step["why"]["values"]["meter"] for step in sent] == CLOCK
    assert sent[0]["what"]["before"]["meters"] == {"A": 0, "B": 0}
    assert sent[-1]["what"]["reset"] == END
    assert [step["what"]["reset"] for step in sent[:-1]] == [None] * 13


def test_who_waits_and_who_is_in_flight_is_in_every_step() -> None:
    [run] = opened(("00000001.jsonl", segment()))[1]["runs"]
    first = next(step for step in run["steps"] if step["kind"] == "dispatch")
    assert first["what"]["waiting"] == {"A": 2, "B": 7}
    assert first["what"]["inflight"] == {"A": 1}
    last = run["steps"][-1]
    assert (last["what"]["waiting"], last["what"]["inflight"]) == ({}, {})
    requests = run["result"]["requests"]
    assert len(requests) == 14
    assert all(one["arrival"] <= one["dispatched"] < one["freed"] == one["ended"] for one in requests)
    assert {one["outcome"] for one in requests} == {"completed"}
    assert sum(one["charge"] for one in requests) == 3 * 8 + 7 * 2 + 4 * 4


def test_a_ledgers_requests_can_be_played_under_other_policies() -> None:
    again = opened(("00000001.jsonl", segment()))[1]["again"]
    body = answer(json.dumps({"layer": "router", "scenario": again, "policies": ["sfq"]}).encode())[1]
    [run] = json.loads(body)["runs"]
    assert "".join(run["result"]["order"]) == ARTICLE


def test_other_policies_have_no_meters() -> None:
    [run] = opened(("00000001.jsonl", segment("fcfs")))[1]["runs"]
    assert run["policy"] == "fcfs"
    assert all(step["show"] == {} for step in run["steps"])
    assert "".join(s["what"]["tenant"] for s in run["steps"] if s["kind"] == "dispatch") == "AAABBBBBBBCCCC"


def test_segments_of_one_pool_are_put_in_order() -> None:
    from tests.ledger.traffic import Traffic, setup

    traffic = Traffic(3, setup("sfq", "forward"))
    for step in range(300):
        traffic.step()
        if step % 100 == 99:
            traffic.rotate()
    parts = [b"".join(lines) for lines in traffic.end()]
    assert len(parts) > 2
    whole = opened(*((f"{number:08}.jsonl", part) for number, part in enumerate(parts, 1)))[1]
    mixed = opened(*reversed([(f"x{number}", part) for number, part in enumerate(parts, 1)]))[1]
    assert len(whole["runs"]) == 1
    assert whole["runs"][0]["steps"] == mixed["runs"][0]["steps"]
    sent = [step for step in whole["runs"][0]["steps"] if step["kind"] == "dispatch" and step["why"]]
    assert len(sent) > 50
    for step in sent:  # the deciding number is the one in the row of those that were compared, and the least
        meters = step["what"]["before"]["meters"]
        assert meters[step["what"]["tenant"]] == step["why"]["values"]["meter"] == min(meters.values())


def test_a_line_that_is_wrong_is_named() -> None:
    lines = segment().splitlines(keepends=True)
    lines[4] = b'{"is":"Nonsense"}\n'
    status, told = opened(("00000001.jsonl", b"".join(lines)))
    assert status == 400
    assert told["error"]["message"].startswith("00000001.jsonl:5: not a line of a ledger: ")
    status, told = opened(("tail.jsonl", b"".join(lines[1:])))
    assert told["error"]["message"] == "tail.jsonl:1: a segment must begin with its head, not with Admitted"
    status, told = opened(("mine.csv", b"arrival_s,input_tokens,output_tokens\n0,10,5\n1,x,5\n"))
    assert told["error"]["message"] == "mine.csv:3: input_tokens = 'x': must be an integer of at least 0"
    status, told = opened(("a.yaml", b"layer: cpu\ntasks:\n  - {id: A, burst: x}\n"))
    assert told["error"]["message"].endswith("tasks[0].burst = 'x': must be a whole number")


def test_a_torn_last_line_is_passed_over_and_said() -> None:
    [run] = opened(("00000001.jsonl", segment()[:-9]))[1]["runs"]
    assert "torn" in run["result"]["notes"][0]


def test_the_last_seconds_of_a_pool_that_is_written_now(tmp_path: Path) -> None:
    run = router_example()
    run.save(tmp_path / "default")
    told = recent(tmp_path / "default", 3e-9)  # of the example's ticks one is a nanosecond
    steps = told.runs[0].steps
    assert "".join(step.what["tenant"] for step in steps if step.kind == "dispatch") == ARTICLE[-3:]
    with pytest.raises(LedgerError, match="nothing is recorded yet"):
        recent(write_segment(tmp_path / "empty", 1, []), 30)


TRACES = {
    "azure": "azure_code.csv.xz",
    "mooncake": "mooncake_synthetic.jsonl.xz",
    "sharegpt": "sharegpt.jsonl",
    "vtc-arena": "vtc_real_trace.csv",
    "vtc-results": "vtc/VTC_predict__real.csv",
    "vllm-timings": "vllm/RTXPRO6000_Llama-3.1-8B.csv",
}
WRITTEN = {
    "fairq": b"arrival_s,client,input_tokens,output_tokens,after,think_s\n0,x,9,4,,\n0,y,9,4,,\n0,x,9,4,0,1.5\n",
    "vllm-stamps": b"request_id,input_toks,output_toks,arrival_time,queued_ts,scheduled_ts,first_token_ts,"
    b"last_token_ts\n"
    b"a,9,4,100.0,5.0,5.1,5.2,5.5\nb,9,4,100.5,5.5,5.6,5.7,6.0\n",
}


@pytest.mark.parametrize("name", [format.name for format in FORMATS])
def test_a_trace_of_every_format_is_played(name: str) -> None:
    file = DATA / TRACES.get(name, "own.csv")
    data = WRITTEN.get(name) or file.read_bytes()
    if file.suffix == ".xz":
        assert lzma.decompress(data)
    status, told = opened((file.name, data), scenario={"first": 20}, policies=["fcfs"])
    assert status == 200, told
    [run] = told["runs"]
    assert told["file"] == file.name
    assert "trace" not in told["scenario"]
    served = {id_ for step in run["steps"] for id_ in step["what"]["finished"]}
    assert served == {job["id"] for job in run["result"]["jobs"] if job["reason"] not in ("error", "refused")}


def test_what_is_too_much_is_said() -> None:
    status, told = opened(("mine.csv", b"arrival_s,input_tokens,output_tokens\n0,10,5\n"), scenario={"first": 9999})
    assert told["error"]["message"] == "first = 9999: the lab plays at most 5000; `fairq sim` has no limit"
    status, body = answer(b'{"layer": "cpu", "scenario": {"x": "' + b"x" * MOST_PLAIN + b'"}}')
    assert (status, json.loads(body)["error"]["code"]) == (413, "too_large")
    status, told = opened(("a.yaml", b"layer: cpu"), ("00000001.jsonl", segment()))
    assert told["error"]["message"] == "files: ledger, scenario: the lab opens one kind at a time"


def test_a_wrong_value_says_where_it_is() -> None:
    assert place_of("scenario: tasks[0].burst = 'x': must be a whole number") == ["tasks", 0, "burst"]
    assert place_of("scenario: users[1].demand.cpu = '9': more than the 4 there are") == ["users", 1, "demand", "cpu"]
    assert place_of("scenario.yaml:3: tasks[1].locks[0]: held until 11 of its 3 own ticks") == ["tasks", 1, "locks", 0]
    assert place_of("first = 9999: the lab plays at most 5000") == ["first"]
    assert place_of("nothing of the kind") == []
