"""A pool of slots that each give one token per tick: what tenants really get, when outputs are what the test says."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from heapq import heappop, heappush
from typing import Any

from tests.core.pool import TOKENS, Pool

from fairq.core.job import Flow


class Slots:
    """`outputs`: tenant -> (n -> tokens of its n-th request). All requests are there from the start.

    `got(tenant)` is the actual service so far: tokens of what has ended, and of what runs up to now.
    """

    def __init__(
        self,
        outputs: Mapping[str, Callable[[int], int]],
        requests: int,
        slots: int = 8,
        weights: Mapping[str, int | Fraction] | None = None,
        **terms: Any,
    ) -> None:
        flows = [Flow(id=name, weight=Fraction((weights or {}).get(name, 1))) for name in outputs]
        self.pool = Pool({}, validate=False, flows=flows, wait_for_upstream=1, **{"cost": TOKENS, **terms})
        self.tokens: dict[str, int] = {}
        for number in range(requests):
            for name, output in outputs.items():
                self.tokens[self.pool.admit(name)] = output(number)
        self.ends: list[tuple[int, str]] = []
        self.began: dict[str, int] = {}
        self.largest_underestimate = self.largest_estimate = 0
        self.pool.upstream("u1", slots)
        self.start()

    def start(self) -> None:
        for id_, dispatch in self.pool.running.items():
            if id_ not in self.began:
                self.began[id_] = self.pool.now
                heappush(self.ends, (self.pool.now + self.tokens[id_], id_))
                self.largest_estimate = max(self.largest_estimate, dispatch.estimate)
                self.largest_underestimate = max(self.largest_underestimate, self.tokens[id_] - dispatch.estimate)

    def step(self) -> None:
        """To the next end of a request."""
        self.pool.now, id_ = heappop(self.ends)
        self.pool.finish(id_, self.tokens[id_])
        self.start()

    def got(self, tenant: str) -> int:
        running = sum(self.pool.now - self.began[id_] for id_, one in self.pool.running.items() if one.tenant == tenant)
        return self.pool.served[tenant] + running

    def all_backlogged(self) -> bool:
        return all(self.pool.queues.get(flow) for flow in self.pool.flows)
