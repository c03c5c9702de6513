"""What a restart keeps: predictions and calibration, read from the ledger of the run before. Queues are gone."""

import asyncio
import json
import random
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from fractions import Fraction
from pathlib import Path

import httpx
from tests.gateway.harness import CHAT, chat, run
from tests.gateway.test_calibration import MS, ended, engine
from tests.ledger.recording import audit, replay

from fairq.core.job import Request
from fairq.gateway.config import parse
from fairq.gateway.gateway import Gateway
from fairq.gateway.pool import Pool
from fairq.gateway.recording import Recorder
from fairq.testing.clock import eventually
from fairq.testing.replies import Hang, completion
from fairq.testing.upstream import ScriptedUpstream


@asynccontextmanager
async def serving(
    ledger: Path, upstream: ScriptedUpstream, complaints: list[str], **cost: object
) -> AsyncIterator[Gateway]:
    given = {
        "listen": {"port": 0},
        "ledger": {"dir": str(ledger), "fsync": "10s"},
        "cost": cost,
        "pools": [{"upstreams": [{"name": "u0", "url": upstream.url, "max_inflight": 4}]}],
    }
    config = parse(json.dumps(given))
    gateway = Gateway(config, Recorder(config, complaints.append, lambda pool, lines: None))
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.drain()


async def post(gateway: Gateway) -> int:
    async with httpx.AsyncClient() as client:
        return (await client.post(f"http://127.0.0.1:{gateway.server.port}{CHAT}", json=chat())).status_code


def predicted(pool: Pool) -> int:
    """The output that is expected of the next request without a limit."""
    return pool.scheduler.estimator.estimate(Request(id="x", flow="anonymous", model="m", input_bytes=5)).output_tokens


@run
async def test_predictions_survive_a_restart_and_a_kill(tmp_path: Path) -> None:
    """The kill is a copy of the files as they are while requests run: a process that dies leaves just that."""
    complaints: list[str] = []
    async with ScriptedUpstream() as upstream:
        upstream.default = completion(3000, prompt=5)
        async with serving(tmp_path / "ledger", upstream, complaints) as first:
            assert predicted(first.first_pool) == 256
            for _ in range(5):
                assert await post(first) == 200
            learned = predicted(first.first_pool)
            assert learned > 1000
            upstream.default = [Hang()]
            hanging = asyncio.create_task(post(first))
            await eventually(lambda: first.first_pool.dispatcher.calls)
            await asyncio.sleep(0)  # the lines of this turn are written at its end
            shutil.copytree(tmp_path / "ledger", tmp_path / "killed")
            hanging.cancel()
        for ledger in ("ledger", "killed"):
            async with serving(tmp_path / ledger, upstream, complaints) as second:
                assert predicted(second.first_pool) == learned
                assert not second.first_pool.scheduler.jobs
            assert audit(tmp_path / ledger / "default").ok
            assert replay(tmp_path / ledger / "default").identical
    assert complaints == []


@run
async def test_a_ledger_that_cannot_be_read_costs_the_predictions_only(tmp_path: Path) -> None:
    complaints: list[str] = []
    async with ScriptedUpstream() as upstream:
        async with serving(tmp_path, upstream, complaints) as first:
            assert await post(first) == 200
        [segment] = (tmp_path / "default").glob("*.jsonl")
        segment.write_bytes(b"no ledger\n" + segment.read_bytes())
        async with serving(tmp_path, upstream, complaints) as second:
            assert await post(second) == 200
            assert predicted(second.first_pool) < 257
    assert len(complaints) == 1
    assert "00000001.jsonl:1" in complaints[0]


@run
async def test_calibration_is_an_event_and_outlives_reload_and_restart(tmp_path: Path) -> None:
    complaints: list[str] = []
    dice = random.Random(7)
    async with ScriptedUpstream() as upstream:
        async with serving(tmp_path, upstream, complaints, calibrate=True, beta=2) as first:
            pool = first.first_pool
            for _ in range(1000):
                pool.log(ended(*engine(dice, 0.1 * MS, 0.6 * MS)), "")
            model = pool.scheduler.estimator.model
            assert (model.alpha, model.beta) == (1, 6)
            first.set_weight("someone", "3/2")
            first.reload(first.config)
            assert pool.scheduler.estimator.model.beta == 6
            assert await post(first) == 200
        async with serving(tmp_path, upstream, complaints, calibrate=True, beta=2) as second:
            assert second.first_pool.scheduler.estimator.model.beta == 6
            dearer = second.config.cost.model_copy(update={"beta": Fraction(3)})
            second.reload(second.config.model_copy(update={"cost": dearer}))
            assert second.first_pool.scheduler.estimator.model.beta == 3
        async with serving(tmp_path, upstream, complaints, beta=2) as off:
            for _ in range(1000):
                off.first_pool.log(ended(*engine(dice, 0.1 * MS, 0.6 * MS)), "")
            assert off.first_pool.scheduler.estimator.model.beta == 2
        text = b"".join(path.read_bytes() for path in sorted((tmp_path / "default").glob("*.jsonl")))
        assert text.count(b'"is":"CalibrationChanged"') == 6  # five of a quarter each, one at the restart
        assert replay(tmp_path / "default").identical
    assert complaints == []
