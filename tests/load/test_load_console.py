"""What the console's answers before and after a run say about the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.load.test_load_replay import scripted, trace

from fairq.load.console import State, difference
from fairq.load.session import Session, Settings
from fairq.load.target import Unreachable
from fairq.testing.replies import answer
from fairq.testing.upstream import ScriptedUpstream


def state(charged: dict[str, float], shared: dict[str, float], decisions: int, **more: Any) -> dict[str, Any]:
    """One pool in which a and b were once jointly backlogged, with what else the console says beside it."""
    pool = {
        "name": "default",
        "waiting": 0,
        "inflight": 0,
        "virtual_time": 5.0,
        "bounds": {"held": True, "decisions": decisions, "violations": 0, "worst_margin": 12.5},
        "fairness": {"sets": [{"tenants": list(shared), "charged": shared, "actual": {"a": 1.0, "b": 3.0}}]},
        "record": {"events": decisions},
        "tenants": [{"id": tenant, "weight": "1", "normalized": total} for tenant, total in charged.items()],
    }
    return {"fairq": "0", "pools": [pool | more]}


def test_the_run_is_the_difference_of_two_looks() -> None:
    before = State([])
    first = _read(state({"a": 100, "other": 9}, {"a": 100, "b": 0}, 10))
    last = _read(state({"a": 160, "b": 50, "other": 9}, {"a": 150, "b": 50}, 25))
    found = difference(first, last)
    assert found.normalized == {"a": 60, "b": 50, "other": 0}
    assert (found.decisions, found.violations, found.worst_margin) == (15, 0, 12.5)
    assert found.jain_charged == 1  # 50 each since the first look; since the start it were 150 and 50
    assert found.jain_actual is None  # nothing ended between the two
    assert difference(before, last).jain_charged == 200**2 / (2 * (150**2 + 50**2))


def _read(document: dict[str, Any]) -> State:
    import msgspec

    return msgspec.convert(document, State)


@scripted
async def test_the_report_has_charged_service_of_the_run(upstream: ScriptedUpstream, folder: Path) -> None:
    path = trace(folder, (0, "a", 3, 2), (0, "b", 3, 2))
    async with ScriptedUpstream() as console:
        first = state({"a": 5}, {"a": 5, "b": 5}, 2)
        busy = state({"a": 9}, {"a": 9, "b": 9}, 4, waiting=1)
        last = state({"a": 12, "b": 7}, {"a": 12, "b": 12}, 4)
        for looked in (first, busy, last, last):
            console.enqueue(answer(json.loads(json.dumps(looked))))
        session = Session(Settings(trace=path, target=upstream.url, console=console.url, console_token="secret"))
        await session.run()
        assert {request.target for request in console.requests} == {"/api/state?tenants=1000"}
        assert {request.header("authorization") for request in console.requests} == {"Bearer secret"}
    report = session.report()
    assert {line.tenant: line.charged for line in report.tenants} == {"a": 7, "b": 7}
    assert report.charged is not None
    assert (report.charged.decisions, report.charged.jain_charged) == (2, 1)


@scripted
async def test_a_console_that_leaves_during_the_run_costs_only_what_it_knew(
    upstream: ScriptedUpstream, folder: Path
) -> None:
    path = trace(folder, (0, "a", 3, 2))
    async with ScriptedUpstream() as console:
        console.enqueue(answer(state({}, {}, 0)))
        console.default = answer({"error": "gone"}, 503)
        session = Session(Settings(trace=path, target=upstream.url, console=console.url))
        await session.run()
    assert session.report().total.outcomes == {"completed": 1}
    assert session.report().charged is None


@scripted
async def test_a_console_that_is_none_is_found_out_before_the_run(upstream: ScriptedUpstream, folder: Path) -> None:
    path = trace(folder, (0, "a", 3, 2))
    async with ScriptedUpstream() as console:
        console.enqueue(answer({"error": "token"}, 401), answer({"hello": "world"}))
        for rule in (
            "GET /api/state has status 401: give --console-token",
            "is no fairq console: GET /api/state has status 200",
        ):
            with pytest.raises(Unreachable, match=rule):
                await Session(Settings(trace=path, target=upstream.url, console=console.url)).run()
    assert upstream.requests == []
