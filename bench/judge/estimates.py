"""Tenants that are not what they are taken for, beside an honest one, through a gateway and a scripted upstream.

The upstream takes a stated time per output token and answers as long as the prompt says; no request has a limit, so
that fairq can only guess. Costs are output tokens, so charges and service have one unit.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from fairq.core.commands import Dispatch, Ended
from fairq.gateway.config import parse
from fairq.gateway.gateway import Gateway
from fairq.gateway.http1 import Upstream
from fairq.gateway.recording import Recorder
from fairq.ledger.audit import Audit
from fairq.ledger.reader import Reader, pools_in
from fairq.ledger.replay import Replay
from fairq.load.call import Call, Result
from fairq.measure.fairness import PairGaps
from fairq.testing.clock import eventually
from fairq.testing.connection import Received
from fairq.testing.replies import Gate, Pause, Script, completion, usage
from fairq.testing.upstream import ScriptedUpstream

SLOTS = 8
REQUESTS = 200
PER_TOKEN = 20e-6  # seconds
FIRST = 100  # tokens: what is predicted of a tenant never seen
HONEST, ODD, OPENER = "honest", "odd", "opener"
Length = Callable[[int], int]  # of a tenant's n-th answer, tokens


class Case(Struct, frozen=True):
    """`unknown`: the odd tenant asks for another model every time, so that nothing can be learned of it."""

    name: str
    odd: Length
    honest: Length
    unknown: bool = False


CASES = [
    Case("1,000 where 100 are predicted at first; honest: 100", lambda n: 1000, lambda n: 100),
    Case("1,000 where 100 are predicted at first; honest: 1,000", lambda n: 1000, lambda n: 1000),
    Case("1,000 where 100 are predicted always; honest: 1,000", lambda n: 1000, lambda n: 1000, unknown=True),
    Case("1 and 4,000 in turn; honest: 2,000", lambda n: 4000 if n % 2 else 1, lambda n: 2000),
]


class Found(Struct, frozen=True):
    """Of the odd tenant, then of the honest one, over the time in which both are backlogged. Tokens.

    apart   the largest difference of actual service over any stretch of that time
    bound   what `forward` promises for it: 2q + 2 D (e + 2c)
    """

    name: str
    settlement: str
    charged: tuple[int, int]
    actual: tuple[int, int]
    apart: int
    bound: int
    clean: bool
    identical: bool

    @property
    def ratio(self) -> float:
        return self.actual[0] / self.actual[1]


def judge() -> Iterator[Found]:
    """Every case under both settlements."""
    for case in CASES:
        for settlement in ("forward", "fixed"):
            with tempfile.TemporaryDirectory(prefix="fairq-judge-") as folder:
                asyncio.run(_serve(Path(folder), settlement, case))
                yield _found(case.name, settlement, Path(folder))


async def _serve(folder: Path, settlement: str, case: Case) -> None:
    async with ScriptedUpstream() as upstream:
        upstream.default = _answer
        given = {
            "listen": {"port": 0},
            "ledger": {"dir": str(folder)},
            "queue": {"time_to_live": "1h", "max_time_to_live": "1h"},
            "identity": {"trusted_tenant_headers_from": ["127.0.0.1/32"]},
            "cost": {"alpha": 0, "beta": 1, "default_output": FIRST, "context_length": 8192},
            "pools": [{"settlement": settlement, "upstreams": [{"url": upstream.url, "max_inflight": SLOTS}]}],
        }
        config = parse(json.dumps(given))
        gateway = Gateway(config, Recorder(config, print, lambda pool, lines: None))
        await gateway.start()
        try:
            await _send(gateway, upstream, case)
        finally:
            await gateway.drain()


async def _send(gateway: Gateway, upstream: ScriptedUpstream, case: Case) -> None:
    """Everything waits before the first slot is free: both tenants are backlogged from the first decision on."""
    scheduler = gateway.first_pool.scheduler
    client = Upstream("127.0.0.1", gateway.server.port or 0)
    results: list[Result] = []

    def post(tenant: str, tokens: int, model: str = "m") -> None:
        body = msgspec.json.encode({"model": model, "messages": [{"role": "user", "content": str(tokens)}]})
        headers = [(b"host", b"fairq"), (b"x-fairq-tenant", tenant.encode())]
        call = Call(0, tenant, 0, lambda call, result: results.append(result))
        client.send(b"POST", b"/v1/chat/completions", headers, body, call)

    try:
        upstream.enqueue(*[[Gate("open"), *completion(1)]] * SLOTS)
        for _ in range(SLOTS):
            post(OPENER, 1)
        await eventually(lambda: upstream.standing_at("open") == SLOTS)
        for n in range(REQUESTS):
            post(ODD, case.odd(n), f"m{n}" if case.unknown else "m")
            post(HONEST, case.honest(n))
        await eventually(lambda: scheduler.policy.waiting() == 2 * REQUESTS, within=60)
        await upstream.release("open", SLOTS)
        await eventually(lambda: len(results) == SLOTS + 2 * REQUESTS, within=600)
    finally:
        await client.close()


def _answer(seen: Received) -> Script:
    tokens = int(seen.json["messages"][0]["content"])
    return [Pause(tokens * PER_TOKEN), *completion(1, counts=usage(1, tokens))]


def _found(name: str, settlement: str, folder: Path) -> Found:
    [pool] = pools_in(folder)
    audit, replay = Audit(), Replay()
    dispatched: list[Dispatch] = []
    ended: dict[str, Ended] = {}
    for line in Reader(pool):
        audit.feed(line.value)
        replay.feed(line)
        if isinstance(line.value, Dispatch) and line.value.tenant != OPENER:
            dispatched.append(line.value)
        elif isinstance(line.value, Ended):
            ended[line.value.id] = line.value
    both = _while_both(dispatched)
    gaps, charged, actual = PairGaps(), Counter[str](), Counter[str]()
    gaps.enter(ODD, 0)
    gaps.enter(HONEST, 0)
    for command in both:
        charged[command.tenant] += command.charge
        actual[command.tenant] += ended[command.id].actual
        gaps.charge(command.tenant, ended[command.id].actual)
    records = [ended[command.id] for command in dispatched]
    late = max(0, *(record.actual - record.estimate for record in records))
    largest = max(record.estimate for record in records)
    return Found(
        name=name,
        settlement=settlement,
        charged=(charged[ODD], charged[HONEST]),
        actual=(actual[ODD], actual[HONEST]),
        apart=int(gaps.close(1)[HONEST, ODD].gap),
        bound=2 * max(record.charge for record in records) + 2 * SLOTS * (late + 2 * largest),
        clean=audit.finish().ok,
        identical=replay.finish().identical,
    )


def _while_both(dispatched: list[Dispatch]) -> list[Dispatch]:
    """Up to the decision that takes the last waiting request of one of the two."""
    left = Counter(command.tenant for command in dispatched)
    for number, command in enumerate(dispatched, 1):
        left[command.tenant] -= 1
        if not left[command.tenant]:
            return dispatched[:number]
    return dispatched
