"""The recorded 27 clients, several times as fast as a real engine can serve them, under one policy and then another."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

from msgspec import Struct
from tests.llama.server import LlamaServer
from tests.llama.serving import Serve, ask, fairq

from fairq.core.commands import Ended
from fairq.ledger.reader import Reader, pools_in
from fairq.load.tally import Rates
from fairq.traces import Trace

TRACE = Path(__file__).parents[2] / "data" / "vtc_real_trace.csv"
SLOTS = 8
HEAVIEST = 5
RATES = Rates()  # cost units: 1 per prompt token, 2 per completion token
LONG_AGO = "2h"  # time to live: nobody's wait may end there


class Offer(Struct, frozen=True):
    """
    capacity  cost units per second that the engine served with all slots busy and requests taken from the trace in
              their order, fairq not involved
    speed     how much faster than recorded the trace is replayed
    offered   cost units per second at which it then arrives
    """

    requests: int
    capacity: float
    speed: float
    offered: float


class PairResult(Struct, frozen=True):
    """Two of the heaviest tenants while both were backlogged, as the audit found it. Ratios: larger over smaller."""

    tenants: str
    seconds: float
    charged: tuple[float, float]
    actual: tuple[float, float]
    gap: float

    @property
    def ratio(self) -> float:
        return max(self.actual) / min(self.actual) if min(self.actual) else float("inf")

    @property
    def charged_ratio(self) -> float:
        return max(self.charged) / min(self.charged) if min(self.charged) else float("inf")


class Outcome(Struct, frozen=True):
    """What one run of the trace came to.

    gap, bound     the difference of charged service, over all pairs and stretches, that came nearest to its bound 2q
    light_wait     median wait in the queue of the lighter half of the tenants, s; `small_wait`: of all but the heaviest
    story          `fairq explain` of the lighter half's request that waited longest
    """

    policy: str
    settlement: str
    seconds: float
    outcomes: dict[str, int]
    clean: bool
    identical: bool
    gap: float
    bound: float
    pairs: list[PairResult]
    light_wait: float
    small_wait: float
    story: str


def offer(llama: LlamaServer, limit: int | None, overload: float) -> Offer:
    """Measure the engine alone, closed loop with one request per slot, and scale the trace to `overload` times that."""
    requests = list(Trace(TRACE))[:limit]
    sample = ask(
        *("load", TRACE, "--target", llama.url, "--api", "completions", "--limit", str(min(len(requests), 240))),
        *("--speed", "1000000", "--max-concurrency", str(SLOTS)),
    )
    capacity = sum(tenant["service"] for tenant in sample["tenants"]) / sample["seconds"]
    whole = sum(float(RATES.alpha * r.input_tokens + RATES.beta * r.output_tokens) for r in requests)
    lasts = requests[-1].arrival - requests[0].arrival
    speed = overload * capacity / (whole / lasts)
    return Offer(len(requests), capacity, speed, whole / lasts * speed)


def run(llama: LlamaServer, offered: Offer, policy: str, settlement: str) -> Outcome:
    """The trace through `fairq serve` into the engine, and what the ledger says about it afterwards."""
    with tempfile.TemporaryDirectory(prefix="fairq-judge-") as name:
        folder = Path(name)
        ledger = folder / "ledger"
        config = {
            "listen": {"port": 0},
            "console": {"enabled": False},
            "log": "off",
            "ledger": {"dir": str(ledger)},
            "queue": {"requests": 100_000, "time_to_live": LONG_AGO, "max_time_to_live": LONG_AGO},
            "tenant_defaults": {"queue": {"requests": 100_000}},
            "identity": {"trusted_tenant_headers_from": ["127.0.0.1/32"]},
            "timeouts": {"first_byte": LONG_AGO},
            "pools": [
                {
                    "policy": policy,
                    "settlement": settlement,
                    "context_length": 4096,
                    "upstreams": [{"url": llama.url, "max_inflight": SLOTS}],
                }
            ],
        }
        with Serve(config, folder) as serve:
            report = ask(
                *("load", TRACE, "--target", serve.url, "--api", "completions", "--limit", str(offered.requests)),
                *("--speed", str(offered.speed), "--timeout", "7200", "--tenant-header", "x-fairq-tenant"),
                *("--model", "fairq-tiny"),
            )
        [audited] = ask("audit", ledger)["pools"]
        checks = {check["name"]: check for check in audited["checks"]}
        [pool] = pools_in(ledger)
        ended = list(_ended(pool))
        heaviest, light = _by_demand(offered.requests)
        waits = {id_: record.wait for id_, record in ended if record.tenant in light}
        return Outcome(
            policy=policy,
            settlement=settlement,
            seconds=report["seconds"],
            outcomes=report["total"]["outcomes"],
            clean=audited["ok"],
            identical=ask("replay", ledger)["identical"],
            gap=checks["pairs"]["worst"],
            bound=checks["pairs"]["limit"],
            pairs=list(_pairs(audited, heaviest)),
            light_wait=median(waits.values()) / 1e9,
            small_wait=median(record.wait for _, record in ended if record.tenant not in heaviest) / 1e9,
            story=fairq("explain", ledger, max(waits, key=lambda id_: waits[id_])),
        )


def _ended(pool: Path) -> Iterator[tuple[str, Ended]]:
    for line in Reader(pool):
        if isinstance(line.value, Ended):
            yield line.value.id, line.value


def _by_demand(limit: int) -> tuple[list[str], set[str]]:
    """The heaviest tenants of the trace, heaviest first, and the lighter half of all, by recorded cost."""
    demand: Counter[str] = Counter()
    for request in list(Trace(TRACE))[:limit]:
        demand[request.client] += int(RATES.alpha * request.input_tokens + RATES.beta * request.output_tokens)
    order = [tenant for tenant, _ in demand.most_common()]
    return order[:HEAVIEST], set(order[-(len(order) // 2) :])


def _pairs(audited: Any, heaviest: list[str]) -> Iterator[PairResult]:
    found = {frozenset(pair["tenants"]): pair for pair in audited["pairs"]}
    for one, other in combinations(heaviest, 2):
        pair = found[frozenset((one, other))]
        yield PairResult(
            f"{one} and {other}", pair["seconds"], tuple(pair["charged"]), tuple(pair["actual"]), pair["gap"]
        )
