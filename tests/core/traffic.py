"""Traffic made of pairs of numbers, each an event that is possible now. Hypothesis shrinks it; a seed makes it long."""

import random
from collections.abc import Iterator
from fractions import Fraction

from tests.core.pool import SECOND, Pool

from fairq.core import events as ev
from fairq.core.cost import Source, Usage
from fairq.core.job import Flow
from fairq.core.lifecycle import Outcome, State

TENANTS = ("A", "B", "C", "D", "ä", "\U0001f600")
SIZES = (1, 1, 2, 3, 7, 10, 100, 101, 999, 5_000, 65_536)  # a heavy tail
WEIGHTS = (Fraction(1), Fraction(2), Fraction(3), Fraction(1, 3), Fraction(7, 5), Fraction(10))
BIG = 1 << 20


def pairs(seed: int, count: int) -> Iterator[tuple[int, int]]:
    source = random.Random(seed)
    return ((source.randrange(100), source.randrange(BIG)) for _ in range(count))


class Traffic:
    """
    busy   few requests leave unserved and upstreams stay up, so that queues are long
    exact  every request has a fixed cost, so that nothing depends on estimates
    """

    def __init__(self, pool: Pool, tenants: int = 4, busy: bool = False, exact: bool = False) -> None:
        self.pool, self.tenants = pool, TENANTS[:tenants]
        self.busy, self.exact = busy, exact

    def play(self, kind: int, number: int) -> None:
        pool = self.pool
        tenant = self.tenants[number % len(self.tenants)]
        rest = number // len(self.tenants)
        pool.now += rest % 7
        waiting, running = list(pool.waiting), list(pool.running)
        if kind < 45:
            self._admit(tenant, rest)
        elif kind < 75 and running:
            self._finish(running[rest % len(running)], rest)
        elif kind < 78 and running:
            pool.send(ev.SlotFreed, id=running[rest % len(running)])
        elif kind < 80:
            delivering = [i for i, entry in pool.scheduler.jobs.items() if entry.state is State.DELIVERING]
            if delivering and rest % 5:
                self._finish(delivering[rest % len(delivering)], rest)
            elif delivering:
                pool.send(ev.Cancelled, id=delivering[0])
        elif kind < 82 and running:
            pool.send(ev.AttemptFailed, id=running[rest % len(running)], outcome=Outcome.FAILED_CONNECT)
        elif kind < 83:
            pool.send(ev.Paused, tenant=tenant)
        elif kind < 86:
            pool.send(ev.Resumed, tenant=tenant)
        elif kind < 88:
            self._reconfigure(rest)
        elif kind < 91 and not self.busy:
            pool.pass_time(rest % SECOND)
        elif kind < 94 and waiting and not self.busy:
            pool.send(ev.Cancelled if rest % 3 else ev.Evicted, id=waiting[rest % len(waiting)])
        elif kind < 95 and running:
            pool.send(ev.Cancelled, id=running[rest % len(running)])
        elif kind < 96 and pool.retrying:
            pool.send(ev.Cancelled, id=next(iter(pool.retrying)))
        elif kind < 98:
            up = self.busy or rest % 5 > 0
            pool.upstream(
                f"u{number % 2 + 1}", rest % 4 + self.busy, healthy=up, draining=rest % 11 == 0 and not self.busy
            )
        elif kind < 99 and not self.busy:
            pool.send(ev.UpstreamRemoved, upstream=f"u{number % 2 + 1}")
        elif not self.exact:
            pool.send(ev.CalibrationChanged, alpha=Fraction(rest % 3), beta=Fraction(rest % 7 + 1, 2))

    def _admit(self, tenant: str, number: int) -> None:
        size = SIZES[number % len(SIZES)]
        if self.exact or number % 2:
            self.pool.admit(tenant, size=size, wait=0 if self.busy else size * 100)
        else:
            self.pool.admit(tenant, input_bytes=size, output_limit=size, wait=SECOND)

    def _finish(self, id_: str, number: int) -> None:
        sources = (Source.UPSTREAM, Source.UPSTREAM, Source.COUNTED, Source.NONE)
        outcomes = (Outcome.COMPLETED, Outcome.COMPLETED, Outcome.CANCELLED_RUNNING, Outcome.FAILED_UPSTREAM)
        usage = Usage(number % 31, SIZES[number % len(SIZES)], 0, sources[number % 4])
        self.pool.send(ev.Finished, id=id_, outcome=outcomes[number % 4], usage=usage)

    def _reconfigure(self, number: int) -> None:
        flows = []
        for place, tenant in enumerate(self.tenants):
            choice = number >> 3 * place
            if choice % 3:
                cap = (None, None, 1, 2)[choice % 4]
                flows.append(Flow(id=tenant, weight=WEIGHTS[choice % len(WEIGHTS)], max_inflight=cap))
        self.pool.reconfigure(flows)
