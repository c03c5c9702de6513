"""`fairq serve` in front of the real llama.cpp, with the clients and commands that people use."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from openai import OpenAI
from prometheus_client.parser import text_string_to_metric_families
from tests.llama.server import LlamaServer
from tests.llama.serving import Serve, ask, fairq

from fairq.core.commands import Ended
from fairq.ledger.reader import Reader, pools_in
from fairq.traces import Trace

pytestmark = pytest.mark.engine

MODEL = "fairq-tiny"
ARENA = Path(__file__).parents[2] / "data" / "vtc_real_trace.csv"
TRACED = 45  # requests of it


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fairq") / "ledger"


@pytest.fixture(scope="module")
def gateway(llama: LlamaServer, ledger: Path) -> Iterator[Serve]:
    config = {
        "listen": {"port": 0},
        "console": {"port": 0},
        "log": "off",
        "ledger": {"dir": str(ledger)},
        "identity": {"trusted_tenant_headers_from": ["127.0.0.1/32"]},
        "pools": [
            {
                "settlement": "forward",
                "context_length": 4096,
                "upstreams": [{"url": llama.url, "max_inflight": llama.slots}],
            }
        ],
    }
    with Serve(config, ledger.parent) as serve:
        yield serve


@pytest.fixture
def client(gateway: Serve) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0, timeout=20) as client:
        yield client


def gauge(gateway: Serve, name: str) -> float:
    """A gauge of fairq's, over all its labels."""
    text = httpx.get(f"{gateway.console}/metrics", timeout=20).text
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    )


def until(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def recorded(ledger: Path) -> dict[str, Ended]:
    [pool] = pools_in(ledger)
    return {line.value.id: line.value for line in Reader(pool) if isinstance(line.value, Ended)}


def test_the_models_of_the_engine_are_listed(client: OpenAI) -> None:
    assert until(lambda: MODEL in [model.id for model in client.models.list()])


@pytest.mark.parametrize("stream", [False, True])
def test_chat_through_fairq_says_what_the_engine_says(llama: LlamaServer, client: OpenAI, stream: bool) -> None:
    """Word for word, with the usage that a client asked for and none that it did not."""
    answers = []
    with OpenAI(base_url=f"{llama.url}/v1", api_key="none") as direct:
        for asked in (direct, client):
            messages = [{"role": "user", "content": "the of and to"}]
            reply = asked.chat.completions.create(
                model=MODEL, messages=messages, max_tokens=30, temperature=0, stream=stream
            )
            if stream:
                chunks = list(reply)
                assert all(chunk.usage is None and chunk.choices for chunk in chunks)
                text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
                answers.append((text, chunks[-1].choices[0].finish_reason))
            else:
                assert reply.usage.completion_tokens == 30
                answers.append((reply.choices[0].message.content, reply.choices[0].finish_reason))
    assert answers[0] == answers[1]
    assert len(answers[0][0].split()) == 30


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_a_client_that_asks_for_usage_gets_the_engines(client: OpenAI, api: str) -> None:
    options = {"model": MODEL, "max_tokens": 12, "stream": True, "stream_options": {"include_usage": True}}
    if api == "chat":
        chunks = list(client.chat.completions.create(messages=[{"role": "user", "content": "the of"}], **options))
    else:
        chunks = list(client.completions.create(prompt="the of", **options))
    assert [chunk.usage.completion_tokens for chunk in chunks if chunk.usage is not None] == [12]
    assert chunks[-1].usage is not None


def test_leaving_a_stream_frees_its_slot_at_the_engine_and_at_fairq(
    llama: LlamaServer, gateway: Serve, client: OpenAI, ledger: Path
) -> None:
    assert gauge(gateway, "fairq_inflight") == 0  # the console is up: its start may take as long as the whole answer
    before = llama.metric("tokens_predicted_total")
    messages = [{"role": "user", "content": "the"}]
    reply = client.chat.completions.with_raw_response.create(
        model=MODEL, messages=messages, max_tokens=4000, stream=True
    )
    stream = reply.parse()
    for _ in range(5):
        next(stream)
    assert llama.busy_slots() == 1
    assert until(lambda: gauge(gateway, "fairq_inflight") == 1)
    stream.close()
    assert until(lambda: llama.busy_slots() == 0)
    assert until(lambda: gauge(gateway, "fairq_inflight") == 0)
    assert llama.metric("tokens_predicted_total") - before < 4000
    record = recorded(ledger)[reply.headers["x-request-id"]]
    assert (record.outcome, record.finish) == ("cancelled-running", "")
    assert 4 <= record.usage.completion < 4000
    assert record.actual >= 2 * record.usage.completion


def test_the_engine_never_queues_and_its_usage_is_the_ledgers(llama: LlamaServer, gateway: Serve, ledger: Path) -> None:
    """Part of the 27 recorded clients, thirty times as fast: the backlog is at fairq, never inside the engine."""
    names = ("prompt_tokens_total", "tokens_predicted_total")
    before = [llama.metric(name) for name in names]
    known = set(recorded(ledger))
    busy, deferred = set[int](), set[float]()
    waited = set[bool]()
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            busy.add(llama.busy_slots())
            deferred.add(llama.metric("requests_deferred"))
            waited.add(gauge(gateway, "fairq_queue_requests") > 0)
            time.sleep(0.02)  # the engine has its work to do

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        try:
            report = ask(
                *("load", ARENA, "--target", gateway.url, "--api", "completions", "--limit", str(TRACED)),
                *("--speed", "30", "--tenant-header", "x-fairq-tenant", "--model", MODEL),
                *("--console", gateway.console),
            )
        finally:
            over.set()
        watching.result()
    assert max(busy) == llama.slots
    assert deferred == {0}
    assert True in waited

    requests = list(Trace(ARENA))[:TRACED]
    assert report["total"]["outcomes"] == {"completed": TRACED}
    assert report["total"]["completion_tokens"] == sum(request.output_tokens for request in requests)
    assert report["charged"]["violations"] == 0
    records = [record for id_, record in recorded(ledger).items() if id_ not in known]
    assert len(records) == TRACED
    assert {record.usage.source for record in records} == {"upstream"}
    computed = sum(record.usage.prompt - record.usage.cached for record in records)
    written = sum(record.usage.completion for record in records)
    assert [llama.metric(name) - old for name, old in zip(names, before, strict=True)] == [computed, written]


def test_the_record_of_all_this_is_clean_replays_and_explains(ledger: Path) -> None:
    audited = ask("audit", ledger)
    assert audited["ok"]
    assert audited["pools"][0]["decisions"] >= TRACED
    assert ask("replay", ledger)["identical"]
    records = recorded(ledger)
    id_ = max(records, key=lambda each: records[each].wait)
    story = fairq("explain", ledger, id_)
    assert f"{id_} of {records[id_].tenant} came at " in story
    assert "made to by the order of dispatch" in story
    assert "its meter was the least" in story
    assert "finish reason length" in story


@pytest.mark.parametrize(("policy", "fair", "requests"), [("sfq", True, 150), ("fcfs", False, 60)])
def test_weights_three_to_one_are_tokens_three_to_one(
    llama: LlamaServer, tmp_path: Path, policy: str, fair: bool, requests: int
) -> None:
    """Both always have requests waiting, and answers of 10 to 70 tokens. First come, first served is even instead."""
    config = {
        "listen": {"port": 0},
        "console": {"enabled": False},
        "log": "off",
        "ledger": {"dir": str(tmp_path / "ledger")},
        "identity": {"trusted_tenant_headers_from": ["127.0.0.1/32"]},
        "cost": {"alpha": 0, "beta": 1},  # a token is a token
        "tenants": [{"id": "three", "weight": 3}, {"id": "one", "weight": 1}],
        "pools": [
            {
                "policy": policy,
                "settlement": "forward",
                "context_length": 4096,
                "upstreams": [{"url": llama.url, "max_inflight": llama.slots}],
            }
        ],
    }
    rows = ["arrival_s,client,input_tokens,output_tokens"]
    rows += ["0,opener,1,200"] * llama.slots
    for number in range(requests):
        rows.append(f"0,three,5,{10 + number * 37 % 61}")
        if number < requests / 2:
            rows.append(f"0,one,5,{10 + number * 23 % 61}")
    trace = tmp_path / "mine.csv"
    trace.write_text("\n".join(rows))
    with Serve(config, tmp_path) as serve:
        report = ask(
            *("load", trace, "--target", serve.url, "--api", "completions", "--no-stream", "--model", MODEL),
            *("--tenant-header", "x-fairq-tenant"),
        )
    assert report["total"]["outcomes"] == {"completed": len(rows) - 1}
    [audited] = ask("audit", tmp_path / "ledger")["pools"]
    assert audited["ok"]
    [pair] = [pair for pair in audited["pairs"] if set(pair["tenants"]) == {"one", "three"}]
    normalized = dict(zip(pair["tenants"], pair["actual"], strict=True))
    one, three = normalized["one"], 3 * normalized["three"]
    assert one > 600
    if fair:
        assert 2.7 <= three / one <= 3.3
    else:
        assert three / one < 1.5
