"""A long run of everything that goes wrong, all at once: afterwards nothing may be left.

Clients that abort, upstreams that reset, hang, time out and send malformed bytes; splits anywhere. Then: every gauge
is 0, every request whose head arrived has exactly one outcome, no task, no descriptor and no object is left, memory is
back, and the ledger of it all audits and replays.
"""

import asyncio
import ctypes
import gc
import json
import os
import random
from collections import Counter
from pathlib import Path

import pytest
from tests.ledger.recording import audit, replay
from tests.soak.clients import Clients
from tests.soak.upstreams import Upstreams

from fairq.core import snapshot
from fairq.core.commands import Ended
from fairq.core.events import Refused
from fairq.core.lifecycle import Outcome
from fairq.core.lines import decode
from fairq.gateway.call import Call
from fairq.gateway.config import parse
from fairq.gateway.gateway import Gateway
from fairq.gateway.http1.client import Transfer
from fairq.gateway.http1.connection import Connection
from fairq.gateway.http1.exchange import Exchange
from fairq.gateway.http1.link import Link
from fairq.gateway.intake import Intake
from fairq.gateway.recording import Recorder
from fairq.gateway.relay import Relay
from fairq.testing.clock import eventually
from fairq.testing.upstream import ScriptedUpstream

AT_ONCE = 64
SPARE_BYTES = 12 << 20  # what memory may have grown by: the allocator's own, measured as resident
SPARE_OBJECTS = 1500  # caches with a bound: predictions, terms, multipliers


class Outcomes:
    """How often each request ended, read from the ledger's lines; by number, so that it does not grow with the run."""

    def __init__(self, total: int) -> None:
        self.of = bytearray(total)
        self.kinds: Counter[Outcome] = Counter()

    def send(self, pool: str, lines: bytes) -> None:
        for line in lines.splitlines():
            if b'"is":"Ended"' in line or b'"is":"Refused"' in line:
                record = decode(line)
                assert isinstance(record, Ended | Refused)
                self.kinds[record.outcome] += 1
                self.of[int(record.id[1:])] += 1


def resident() -> int:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def left_of_requests() -> Counter[str]:
    """Living objects of the kinds of which each request has one."""
    gc.collect()
    kinds = (Call, Exchange, Transfer, Link, Connection, Relay, Intake)
    return Counter(type(found).__name__ for found in gc.get_objects() if type(found) in kinds)


async def soak(total: int, seed: int, folder: Path) -> dict[str, object]:
    dice = random.Random(seed)
    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    arrived, outcomes = bytearray(total + AT_ONCE * 4), Outcomes(total + AT_ONCE * 4)
    servers = [ScriptedUpstream() for _ in range(3)]
    for server in servers:
        server.record = False
        server.default = Upstreams(dice)
        await server.start()
    given = {
        "listen": {"port": 0},
        "ledger": {"dir": str(folder), "fsync": "1s", "rotate_bytes": "8MiB"},
        "limits": {"body_bytes": 32_768},
        "timeouts": {"first_byte": "300ms", "idle": "300ms", "head": "1s", "drain": "5s"},
        "queue": {"requests": 16, "time_to_live": "2s"},
        "identity": {"trusted_tenant_headers_from": ["127.0.0.1"], "anonymous": "allow", "max_auto_tenants": 10},
        "tenants": [{"id": "t0", "weight": 3}, {"id": "t1", "max_inflight": 2}],
        "pools": [
            {
                "settlement": "forward",
                "upstreams": [
                    {"name": f"u{i}", "url": server.url, "max_inflight": 12, "health": {"interval": "200ms"}}
                    for i, server in enumerate(servers)
                ],
            }
        ],
    }
    complaints: list[str] = []
    config = parse(json.dumps(given))
    gateway = Gateway(config, Recorder(config, complaints.append, outcomes.send))

    def app(exchange: Exchange) -> None:
        arrived[int((exchange.header(b"x-request-id") or b"")[1:])] += 1
        gateway(exchange)

    gateway.server.app = app
    await gateway.start()
    pool = gateway.first_pool
    clients = Clients(dice, gateway.server.port, min(total // 4, 2000))
    await asyncio.gather(*(clients.work() for _ in range(AT_ONCE)))  # caches are warm, pools have their size
    base_memory, base_objects = resident(), len(gc.get_objects())
    clients.total = total
    await asyncio.gather(*(clients.work() for _ in range(AT_ONCE)))
    await eventually(lambda: not pool.scheduler.jobs, "every request over", within=20)
    await eventually(lambda: not gateway.server.connections, "every connection closed", within=20)
    snapshot.validate(pool.scheduler)
    assert {upstream.inflight for upstream in pool.scheduler.upstreams.values()} == {0}
    assert pool.admission.requests == pool.admission.bytes == 0
    assert not pool.dispatcher.calls
    assert gateway.server.buffered == 0
    await eventually(lambda: not any(server.active for server in servers), "every upstream connection quiet")
    grown, objects = resident() - base_memory, len(gc.get_objects()) - base_objects
    await gateway.drain()
    for server in servers:
        await server.stop()
    assert outcomes.of == arrived, "exactly one outcome for each request that arrived"
    assert max(arrived) == 1
    assert not errors, errors[0]
    assert complaints == []
    return {
        "arrived": sum(arrived),
        "outcomes": dict(outcomes.kinds.most_common()),
        "statuses": dict(sorted(clients.statuses.items())),
        "memory grown": grown,
        "objects grown": objects,
        "dispatched": [server.seen for server in servers],
    }


def run(total: int, seed: int, folder: Path) -> dict[str, object]:
    descriptors, others = len(os.listdir("/proc/self/fd")), left_of_requests()

    async def alone() -> dict[str, object]:
        found = await soak(total, seed, folder)
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}, "no task is left"
        return found

    found = asyncio.run(alone())
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    assert left_of_requests() == others
    assert found["objects grown"] < SPARE_OBJECTS  # type: ignore[operator]
    assert found["memory grown"] < SPARE_BYTES  # type: ignore[operator]
    outcomes = found["outcomes"]
    assert isinstance(outcomes, dict)
    everyday = {
        Outcome.COMPLETED,
        Outcome.REFUSED_INVALID,
        Outcome.REFUSED_TOO_LARGE,
        Outcome.REFUSED_QUEUE_FULL,
        Outcome.EXPIRED,
        Outcome.CANCELLED_WAITING,
        Outcome.CANCELLED_RUNNING,
        Outcome.FAILED_UPSTREAM,
        Outcome.FAILED_TIMEOUT,
        Outcome.FAILED_MIDSTREAM,
    }
    assert everyday <= outcomes.keys(), "the run did not meet what it is about"
    report, replayed = audit(folder / "default"), replay(folder / "default")
    assert report.ok, [check for check in report.checks if not check.ok]
    assert replayed.identical, replayed.difference
    return found


def test_three_thousand_requests(tmp_path: Path) -> None:
    run(3_000, 1, tmp_path)


@pytest.mark.slow
def test_a_hundred_thousand_requests(tmp_path: Path) -> None:
    """More are made: the heads of six in a hundred never arrive whole, or are no heads."""
    print(json.dumps(run(108_000, 2, tmp_path), indent=2))  # noqa: T201
