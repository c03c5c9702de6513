"""A pool at work: its scheduler's shell, its upstreams, its terms. One pool, one order of decisions, one ledger."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from fairq import placements, policies
from fairq.core import events as ev
from fairq.core.commands import Ended
from fairq.core.lifecycle import Outcome
from fairq.core.roster import Setup
from fairq.core.scheduler import Scheduler
from fairq.gateway.admission import Admission, Bounds
from fairq.gateway.backend import Backend
from fairq.gateway.config import ANONYMOUS, Config, Terms
from fairq.gateway.config_sections import Pool as PoolConfig
from fairq.gateway.config_sections import Upstream as UpstreamConfig
from fairq.gateway.dispatcher import Dispatcher, Record
from fairq.gateway.openai.rewrite import STEERING

SECOND = 1_000_000_000


def setup_of(config: Config, pool: PoolConfig) -> Setup:
    """What the pool's scheduler is built from."""
    return Setup(
        pool=pool.name,
        policy=pool.policy,
        settlement=pool.settlement,
        placement=pool.placement,
        cost=config.cost_model(pool),
        flows=[terms.flow() for terms in config.terms().values()],
        default_flow=config.default_terms(ANONYMOUS).flow(),
        wait_for_upstream=int(pool.wait_for_upstream * SECOND),
    )


class Pool:
    def __init__(self, config: Config, pool: PoolConfig, record: Record, log: Callable[[Ended], None]) -> None:
        self.name, self.clock = pool.name, time.monotonic_ns
        self.log = log
        self._loop = asyncio.get_running_loop()
        self.call_later = self._loop.call_later
        self._terms: Mapping[str, Terms] = {}
        self._adopt(config, pool)
        setup = setup_of(config, pool)
        scheduler = Scheduler(setup, policies.make(setup.policy), placements.make(setup.placement))
        queue = config.queue
        self.admission = Admission(Bounds(queue.requests, queue.bytes), self._bounds, self.clock)
        self.dispatcher = Dispatcher(scheduler, self.admission, record, self.clock, self._call_at)
        self.backends: dict[str, Backend] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    @property
    def scheduler(self) -> Scheduler:
        return self.dispatcher.scheduler

    def start(self) -> None:
        """Upstreams join the rotation. Separate from making the pool, so that the ledger's head comes first."""
        for upstream in self.config.upstreams:
            self._add(upstream)

    def terms(self, tenant: str) -> Terms:
        return self._terms.get(tenant) or self._config.default_terms(tenant)

    def retry_after(self, outcome: Outcome) -> int | None:
        """Seconds, where the outcome promises a Retry-After."""
        if outcome in (Outcome.REFUSED_QUEUE_FULL, Outcome.EXPIRED):
            return self.admission.retry_after()
        if outcome in (Outcome.REFUSED_NO_UPSTREAM, Outcome.REFUSED_SHUTTING_DOWN):
            return 1
        return None

    # Changes from outside
    def reconfigure(self, config: Config, pool: PoolConfig) -> None:
        """A reload that was checked before. Nothing that waits or runs is lost."""
        self._adopt(config, pool)
        self.admission.total = Bounds(config.queue.requests, config.queue.bytes)
        self._reconfigured("file")
        self._replace_upstreams({upstream.label: upstream for upstream in pool.upstreams})

    def drain_upstream(self, name: str, draining: bool) -> None:
        backend = self.backends[name]
        backend.draining = draining
        self._tell(backend)

    def set_weight(self, tenant: str, weight: Fraction) -> None:
        """Until the next reload, which goes by the file again."""
        self._terms = {**self._terms, tenant: replace(self.terms(tenant), weight=weight)}
        self._reconfigured("admin")

    def pause(self, tenant: str, paused: bool) -> None:
        self.dispatcher.emit(ev.Paused if paused else ev.Resumed, tenant=tenant)

    def drain(self) -> None:
        """No more: what waits is refused, what runs may end."""
        self.dispatcher.emit(ev.Draining)

    async def close(self) -> None:
        for call in list(self.dispatcher.calls.values()):
            call.cut()
        self.dispatcher.close()
        for backend in self.backends.values():
            await backend.close()
        for task in self._leaving:
            task.cancel()

    # Building blocks
    def _adopt(self, config: Config, pool: PoolConfig) -> None:
        self._config, self.config = config, pool
        self._terms = config.terms()
        self.strip = STEERING - set(config.security.allow_fields)
        self.show_upstream = config.security.show_upstream

    def _bounds(self, tenant: str) -> Bounds:
        terms = self.terms(tenant)
        return Bounds(terms.queue_requests, terms.queue_bytes)

    def _reconfigured(self, by: str) -> None:
        setup = setup_of(self._config, self.config)
        self.dispatcher.emit(
            ev.Reconfigured,
            flows=[terms.flow() for terms in self._terms.values()],
            default_flow=setup.default_flow,
            wait_for_upstream=setup.wait_for_upstream,
            cost=setup.cost,
            by=by,
        )

    def _replace_upstreams(self, wanted: Mapping[str, UpstreamConfig]) -> None:
        """An upstream that is gone or looks different is replaced; its running requests end where they run."""
        for name, backend in list(self.backends.items()):
            if backend.config == wanted.get(name):
                backend.reconfigure(self._config)
                continue
            del self.backends[name]
            leaving = self._loop.create_task(backend.retire())
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
            if name not in wanted:
                self.dispatcher.emit(ev.UpstreamRemoved, upstream=name)
        for name, upstream in wanted.items():
            if name not in self.backends:
                self._add(upstream)

    def _add(self, upstream: UpstreamConfig) -> None:
        backend = Backend(self._config, upstream, lambda _: self._tell(backend), self._loop.call_later)
        self.backends[backend.name] = backend
        self._tell(backend)
        backend.watch()

    def _tell(self, backend: Backend) -> None:
        self.dispatcher.emit(
            ev.UpstreamChanged,
            upstream=backend.name,
            slots=backend.config.max_inflight,
            healthy=backend.health.well,
            draining=backend.draining,
        )

    def _call_at(self, due: int, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(max(due - self.clock(), 0) / SECOND, callback)
