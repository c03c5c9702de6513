"""What the lab bounds: steps, jobs, cells, bytes, memory, orders under way and per second (time: test_lab_api).

And that a wrong scenario is told in the command line's words, through HTTP too.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.cli.program import fairq

from fairq.console.alone import app
from fairq.console.guard import RUNS_AT_ONCE, Access, Guard
from fairq.lab import crew, play, worker
from fairq.lab.play import MOST_JOBS, MOST_STEPS
from fairq.lab.routes import MAX_ORDER

RUN = "/api/lab/run"
SMALL = {"layer": "cpu", "scenario": {"tasks": [{"id": "A", "burst": 1}]}, "policies": ["fcfs"]}


def asked(ask: Callable[[httpx.AsyncClient], Any], guarded: Guard | None = None) -> Any:
    """What `ask` returns, of a lab in this process whose worker is ended afterwards."""
    guarded = guarded or app(Access())
    inner: Any = guarded._app

    async def enter() -> Any:
        transport = httpx.ASGITransport(guarded)
        async with (
            inner.router.lifespan_context(inner),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client,
        ):
            return await ask(client)

    return asyncio.run(enter())


def refused(**order: Any) -> str:
    """The message of an order that is refused with status 400."""

    async def post(client: httpx.AsyncClient) -> httpx.Response:
        return await client.post(RUN, json=order)

    reply = asked(post)
    assert reply.status_code == 400, reply.text[:200]
    return str(reply.json()["error"]["message"])


@pytest.mark.parametrize(
    ("layer", "scenario", "policy"),
    [
        ("cpu", {"tasks": [{"id": f"t{n}", "burst": 1} for n in range(MOST_JOBS + 1)]}, "fcfs"),
        ("router", {"tenants": [{"id": "A", "cost": 1, "count": MOST_JOBS + 1}]}, "sfq"),
        ("link", {"packets": [{"flow": "A", "arrival": 0, "size": 1, "count": MOST_JOBS + 1}]}, "wfq"),
        ("engine", {"requests": [{"client": "a", "prompt": 1, "output": 1, "count": MOST_JOBS + 1}]}, "fcfs"),
    ],
)
def test_jobs_are_bounded_in_every_layer(layer: str, scenario: dict[str, Any], policy: str) -> None:
    said = refused(layer=layer, scenario=scenario, policies=[policy])
    assert said == (f"scenario = '{MOST_JOBS + 1} jobs': the lab plays at most {MOST_JOBS}; `fairq sim` has no limit")


def test_steps_are_bounded_however_few_the_jobs() -> None:
    """The command line runs more; here the same scenario ends at the lab's own limit."""
    scenario = {"tasks": [{"id": "A", "burst": MOST_STEPS + 1}]}
    assert "max_steps" in refused(layer="cpu", scenario=scenario, policies=["fcfs"])
    more = scenario | {"max_steps": MOST_STEPS + 1}
    assert f"at most {MOST_STEPS}" in refused(layer="cpu", scenario=more, policies=["fcfs"])


def test_steps_times_jobs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent grows with both: here with a limit that a small scenario reaches."""
    monkeypatch.setattr(play, "MOST_CELLS", 100)
    status, body = worker.answer(
        b'{"layer": "cpu", "scenario": {"tasks": [{"id": "A", "burst": 60}, {"id": "B", "burst": 9}]}}'
    )
    assert status == 400
    assert b"too large to be sent step by step" in body


def test_policies_are_bounded() -> None:
    assert refused(**SMALL | {"policies": ["fcfs"] * 9}).startswith("policies")


def test_bytes_are_bounded_with_and_without_a_length() -> None:
    json = {"content-type": "application/json"}

    async def endless() -> AsyncIterator[bytes]:
        for _ in range((MAX_ORDER >> 20) + 2):
            yield b" " * (1 << 20)

    async def post(client: httpx.AsyncClient) -> list[int]:
        stated = await client.post(RUN, content=b"", headers=json | {"content-length": str(MAX_ORDER + 1)})
        unstated = await client.post(RUN, content=endless(), headers=json)
        plain = await client.post(RUN, json=SMALL | {"layer": "#" * (worker.MOST_PLAIN + 1)})
        return [reply.status_code for reply in (stated, unstated, plain)]

    assert asked(post) == [413, 413, 413]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def hungry(order: object) -> None:
        raise MemoryError

    monkeypatch.setattr(worker, "play", hungry)
    status, body = worker.answer(b'{"layer": "cpu"}')
    assert status == 400
    assert b"needs more memory than the lab has" in body


def test_orders_under_way_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "QUEUED", 2)

    async def post(client: httpx.AsyncClient) -> list[httpx.Response]:
        return await asyncio.gather(*(client.post(RUN, json=SMALL) for _ in range(4)))

    replies = asked(post)
    assert sorted(reply.status_code for reply in replies) == [200, 200, 503, 503]
    busy = next(reply for reply in replies if reply.status_code == 503)
    assert busy.json()["error"]["code"] == "busy"


def test_orders_per_second_are_bounded_and_the_lab_recovers() -> None:
    guarded = app(Access())
    now = 0.0
    guarded._runs._clock = lambda: now
    guarded._runs._at = now
    wrong = b"{}"  # refused by the worker's types, but counted

    async def post(client: httpx.AsyncClient) -> list[httpx.Response]:
        nonlocal now
        headers = {"content-type": "application/json"}
        replies = [await client.post(RUN, content=wrong, headers=headers) for _ in range(RUNS_AT_ONCE + 1)]
        now += 1
        return [*replies, await client.post(RUN, json=SMALL)]

    *allowed, refusal, later = asked(post, guarded)
    assert {reply.status_code for reply in allowed} == {400}
    assert refusal.status_code == 429
    assert refusal.headers["retry-after"] == "1"
    assert later.status_code == 200


@pytest.mark.parametrize(
    "yaml",
    [
        "layer: cpu\ntasks:\n- {id: A, burst: 0}\n- {id: A, brust: 3}\n",
        "layer: router\ntenants:\n- {id: A, cost: 8, count: three}\npolicies: [sfq]\n",
        "layer: router\ntenants: [{id: A, cost: 8}]\npolicies: [sfq:credits=3]\n",
        "layer: link\nrate: 0\npackets: [{flow: A, arrival: 0, size: 8}]\npolicies: [wfq]\n",
        "layer: cluster\ncapacity: {cpu: 9}\nusers: [{id: A, demand: {gpu: 1}}]\npolicies: [drf]\n",
        "layer: engine\nrequests: [{client: a, prompt: -1, output: 3}]\npolicies: [vtc]\n",
        "layer: cpu\ntasks: [\n",
    ],
    ids=["keys", "types", "parameter", "bound", "name", "negative", "syntax"],
)
def test_a_wrong_scenario_is_told_in_the_words_of_the_command_line(yaml: str, tmp_path: Path) -> None:
    layer = re.findall(r"layer: (\w+)", yaml)[0]
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml)
    done = fairq("sim", layer, str(path))
    assert done.status == 2
    told = [line.partition(f"fairq sim {layer}: ")[2] for line in done.err.splitlines()]
    assert refused(yaml=yaml).splitlines() == [line.replace(f"{tmp_path}/", "") for line in told]
