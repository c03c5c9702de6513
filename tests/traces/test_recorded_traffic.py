"""The readers give what the files hold: published facts, and numpy's own reading of the same bytes."""

from __future__ import annotations

import csv
import json
from collections import Counter
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fairq.traces import Description, Trace, describe

DATA = Path(__file__).parents[2] / "data"
HEADS = DATA / "heads"


def described(path: Path) -> Description:
    found = describe(Trace(path))
    assert found is not None
    return found


def column(path: Path, name: str) -> list[str]:
    with path.open(newline="") as lines:
        return [row[name] for row in csv.DictReader(lines)]


def objects(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def percentiles(values: NDArray[np.float64]) -> list[float]:
    return [float(cut) for cut in np.percentile(values, [50, 90, 99])]


def test_the_arena_trace_has_the_published_lengths_and_clients() -> None:
    found = described(DATA / "vtc_real_trace.csv")
    assert (found.requests, found.span) == (1500, 600.0)
    inputs, outputs = found.input_tokens, found.output_tokens
    assert (inputs.min, inputs.p50, inputs.p90, inputs.max) == (2, 40, 432, 1021)
    assert inputs.mean == pytest.approx(136.27, abs=0.005)
    assert int(inputs.p99) == 902
    assert (outputs.min, outputs.p50, outputs.p90, outputs.p99, outputs.max) == (2, 211, 513, 785, 977)
    assert outputs.mean == pytest.approx(256.20, abs=0.005)
    published = "296 262 199 120 67 66 56 46 44 43 40 36 31 26 25 23 22 22 19 19 12 11 7 3 2 2 1"
    assert [client.requests for client in found.clients.values()] == list(map(int, published.split()))


def test_the_arena_traces_tokens_per_client_are_those_of_its_columns() -> None:
    path = DATA / "vtc_real_trace.csv"
    written = Counter[str]()
    for client, tokens in zip(column(path, "client"), column(path, "output_tokens"), strict=True):
        written[client] += int(tokens)
    assert {name: client.output_tokens for name, client in described(path).clients.items()} == written


@pytest.mark.parametrize("name", ["azure_code.csv", "azure_conv.csv"])
def test_azure_times_keep_their_seven_digits(name: str) -> None:
    path = HEADS / name
    ticks = [
        int(datetime.fromisoformat(f"{stamp[:19]}+00:00").timestamp()) * 10**7 + int(stamp[20:])
        for stamp in column(path, "TIMESTAMP")
    ]
    gaps = np.diff(ticks)
    found = described(path)
    assert Trace(path).format.name == "azure"
    assert [round(request.arrival * 10**7) for request in Trace(path)] == [tick - ticks[0] for tick in ticks]
    assert found.span == pytest.approx((ticks[-1] - ticks[0]) / 10**7)
    assert found.cv == pytest.approx(gaps.std() / gaps.mean())


@pytest.mark.parametrize(
    ("name", "inputs", "outputs"),
    [
        ("azure_code.csv", "ContextTokens", "GeneratedTokens"),
        ("azure_conv.csv", "ContextTokens", "GeneratedTokens"),
        ("../vllm/RTX4090_Llama-3.1-8B.csv", "input_toks", "output_toks"),
        ("../vtc/LShare_rpm5__real.csv", "input_tokens", "output_tokens"),
    ],
)
def test_lengths_are_summarised_as_numpy_summarises_them(name: str, inputs: str, outputs: str) -> None:
    path = HEADS / name
    found = described(path)
    for spread, key in ((found.input_tokens, inputs), (found.output_tokens, outputs)):
        values = np.array(column(path, key), dtype=float)
        assert [spread.p50, spread.p90, spread.p99] == pytest.approx(percentiles(values))
        assert spread.mean == pytest.approx(values.mean())
        assert (spread.min, spread.max) == (values.min(), values.max())


@pytest.mark.parametrize(
    ("name", "key", "size", "unit"),
    [
        ("mooncake_conversation.jsonl", "hash_ids", 512, "timestamp"),
        ("sharegpt.jsonl", "hash_ids16", 16, "timestamp_ms"),
    ],
)
def test_the_hit_ratio_is_that_of_a_cache_that_forgets_nothing(name: str, key: str, size: int, unit: str) -> None:
    path = HEADS / name
    cache: set[int] = set()
    hits: list[bool] = []
    for line in objects(path):
        blocks = line[key]
        assert isinstance(blocks, list)
        for block in blocks:
            hits.append(block in cache)
            cache.add(block)
    found = described(path)
    assert Trace(path).block_tokens == size
    assert found.blocks is not None
    assert (found.blocks.total, found.blocks.unique) == (len(hits), len(cache))
    assert found.blocks.hit_ratio == pytest.approx(sum(hits) / len(hits))
    assert 0 < found.blocks.hit_ratio < 1
    first, last = objects(path)[0][unit], objects(path)[-1][unit]
    assert isinstance(first, (int, float))
    assert isinstance(last, (int, float))
    assert found.span == pytest.approx((last - first) / 1000)


def test_every_mooncake_prompt_has_one_block_per_512_tokens_begun() -> None:
    for request in Trace(HEADS / "mooncake_conversation.jsonl"):
        assert len(request.blocks) == -(-request.input_tokens // 512)


def test_vllms_published_times_come_out() -> None:
    """RTX 4090: TTFT mean 65.46 s, p50 60.16 s, p99 137.8 s, TPOT mean 32.45 ms, makespan 183.57 s."""
    requests = list(Trace(DATA / "vllm" / "RTX4090_Llama-3.1-8B.csv"))
    ttft = sorted(request.measured.ttft or 0 for request in requests if request.measured)
    assert len(ttft) == 300
    assert sum(ttft) / 300 == pytest.approx(65.46, abs=0.005)
    assert ttft[150] == pytest.approx(60.16, abs=0.005)
    assert ttft[297] == pytest.approx(137.8, abs=0.05)
    tpot = ends = 0.0
    for request in requests:
        assert request.measured is not None
        assert request.measured.latency is not None
        assert request.measured.ttft is not None
        tpot += (request.measured.latency - request.measured.ttft) / (request.output_tokens - 1)
        ends = max(ends, request.measured.queued + request.measured.latency)
    assert tpot / 300 == pytest.approx(0.03245, abs=5e-6)
    assert ends == pytest.approx(183.57, abs=0.005)


def test_a_request_that_a_rate_limit_refused_was_never_answered() -> None:
    path = DATA / "vtc" / "LShare_rpm5__real.csv"
    refused = column(path, "request_latency_s").count("-1")
    found = described(path)
    assert refused > 0
    assert found.measured is not None
    assert found.measured.refused == refused
    for request in Trace(path):
        assert request.measured is not None
        assert request.measured.refused == (request.measured.ttft is None)


def test_reading_twice_gives_the_same_requests() -> None:
    trace = Trace(HEADS / "azure_code.csv")
    assert list(trace) == list(trace)
