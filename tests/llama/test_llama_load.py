"""A recorded trace, replayed into the real engine: what the engine counts is what the trace says."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.llama.server import LlamaServer

from fairq.load.plan import Identity
from fairq.load.session import Session, Settings
from fairq.traces import Trace

pytestmark = pytest.mark.engine

ARENA = Path(__file__).parents[2] / "data" / "vtc_real_trace.csv"
SPECIAL = 1  # the token that starts a text


@pytest.mark.parametrize("stream", [True, False])
def test_the_engine_counts_the_recorded_tokens(llama: LlamaServer, stream: bool) -> None:
    settings = Settings(
        trace=ARENA,
        target=llama.url,
        api="completions",
        limit=30,
        speed=100,
        stream=stream,
        identity=Identity(header="x-fairq-tenant"),
    )
    session = Session(settings)
    asyncio.run(session.run())
    recorded = list(Trace(ARENA))[:30]
    results = sorted(session.results, key=lambda result: result.place)
    assert [result.outcome for result in results] == ["completed"] * 30
    assert [result.tenant for result in results] == [request.client for request in recorded]
    counted = [(result.usage.prompt, result.usage.completion) for result in results]
    assert counted == [(request.input_tokens + SPECIAL, request.output_tokens) for request in recorded]
    report = session.report()
    assert report.total.completion_tokens == sum(request.output_tokens for request in recorded)
    assert (report.total.ttft is not None) == stream
