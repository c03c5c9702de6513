"""What fairq's console says about a run: charged service, and sharing while jointly backlogged.

The console counts since it started. It is asked before and after the run, and the difference is the run's
(with whatever other traffic there was meanwhile).
"""

from __future__ import annotations

import asyncio
from fractions import Fraction

import msgspec
from msgspec import Struct

from fairq.core.errors import ConfigError
from fairq.load.tally import mean_jain
from fairq.load.target import Headers, Target, ask

TENANTS = 1000  # told apart in an answer; the others are one, `other`
SETTLE = 10.0  # seconds for the last lines of the ledger to reach the console


class TenantState(Struct):
    """`normalized`: charged service over weight, cost units."""

    id: str
    normalized: float


class SetState(Struct):
    """Normalized service of these tenants over the time in which exactly they were backlogged."""

    tenants: list[str]
    charged: dict[str, float]
    actual: dict[str, float]


class FairnessState(Struct):
    sets: list[SetState]


class BoundsState(Struct):
    decisions: int
    violations: int
    worst_margin: float | None


class RecordState(Struct):
    events: int


class PoolState(Struct):
    name: str
    waiting: int
    inflight: int
    bounds: BoundsState
    fairness: FairnessState
    record: RecordState
    tenants: list[TenantState]


class State(Struct):
    """The part of GET /api/state that matters here."""

    pools: list[PoolState]

    def normalized(self) -> dict[str, Fraction]:
        """By tenant, over all pools."""
        total: dict[str, Fraction] = {}
        for tenant in (tenant for pool in self.pools for tenant in pool.tenants):
            total[tenant.id] = total.get(tenant.id, Fraction(0)) + Fraction(tenant.normalized)
        return total

    def sets(self) -> dict[tuple[str, ...], SetState]:
        """By pool and tenants: fairness does not reach across pools."""
        return {(pool.name, *shared.tenants): shared for pool in self.pools for shared in pool.fairness.sets}

    def busy(self) -> bool:
        return any(pool.waiting or pool.inflight for pool in self.pools)


class Charged(Struct, frozen=True, kw_only=True):
    """The run as the console saw it.

    normalized      charged service over weight by tenant, cost units
    jain_charged, jain_actual
                    mean of Jain's indices over sets of jointly backlogged tenants, weighted by service;
                    None when no two tenants were
    decisions       of the run; violations: broken promises since the console began to count
    worst_margin    least distance to the bound V <= M <= V + q since then
    """

    normalized: dict[str, float]
    jain_charged: float | None
    jain_actual: float | None
    decisions: int
    violations: int
    worst_margin: float | None


class Console:
    """Asks the console at `url`. ConfigError for a bad address; Unreachable when it does not answer as expected."""

    def __init__(self, url: str, token: str | None) -> None:
        self.target = Target.parse("--console", url)
        if token is not None and not (token.isascii() and token.isprintable()):
            raise ConfigError("--console-token", "(not shown)", "cannot be sent as a header")
        self._headers: Headers = self.target.head(
            [(b"authorization", f"Bearer {token}".encode())] if token is not None else []
        )

    async def state(self) -> State:
        upstream = self.target.connect(60)
        try:
            status, found = await ask(self.target, upstream, f"/api/state?tenants={TENANTS}", self._headers)
        finally:
            await upstream.close()
        if status in (401, 403):
            raise self.target.unreachable(f"GET /api/state has status {status}: give --console-token")
        try:
            return msgspec.convert(found, State)
        except msgspec.ValidationError as error:
            raise self.target.unreachable(f"is no fairq console: GET /api/state has status {status}, {error}") from None

    async def settled(self) -> State:
        """The state once nothing waits or runs any more and no event has come since the last look."""
        before = await self.state()
        try:
            async with asyncio.timeout(SETTLE):
                while True:
                    await asyncio.sleep(0.2)
                    now = await self.state()
                    if not now.busy() and _events(now) == _events(before):
                        return now
                    before = now
        except TimeoutError:
            return before


def _events(state: State) -> int:
    return sum(pool.record.events for pool in state.pools)


def difference(before: State, after: State) -> Charged:
    """What happened between two looks."""
    first, last = before.normalized(), after.normalized()
    earlier, later = before.sets(), after.sets()
    margins = [pool.bounds.worst_margin for pool in after.pools if pool.bounds.worst_margin is not None]
    return Charged(
        normalized={tenant: float(total - first.get(tenant, 0)) for tenant, total in last.items()},
        jain_charged=mean_jain(
            _gained(earlier[key].charged if key in earlier else {}, later[key].charged) for key in later
        ),
        jain_actual=mean_jain(
            _gained(earlier[key].actual if key in earlier else {}, later[key].actual) for key in later
        ),
        decisions=sum(pool.bounds.decisions for pool in after.pools)
        - sum(pool.bounds.decisions for pool in before.pools),
        violations=sum(pool.bounds.violations for pool in after.pools),
        worst_margin=min(margins, default=None),
    )


def _gained(before: dict[str, float], after: dict[str, float]) -> list[Fraction]:
    return [Fraction(total) - Fraction(before.get(tenant, 0)) for tenant, total in after.items()]
