"""A pool at work: its scheduler's shell, its upstreams, its terms. One pool, one order of decisions, one ledger."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Final

import msgspec

from fairq import placements, policies
from fairq.core import events as ev
from fairq.core.commands import Ended
from fairq.core.cost import CostModel
from fairq.core.estimator import Estimator
from fairq.core.lifecycle import Outcome
from fairq.core.scheduler import Scheduler
from fairq.core.setup import Setup
from fairq.gateway.admission import Admission, Bounds
from fairq.gateway.backend import Backend
from fairq.gateway.calibration import Calibration
from fairq.gateway.config import ANONYMOUS, Config, Terms
from fairq.gateway.config_sections import Pool as PoolConfig
from fairq.gateway.config_sections import Upstream as UpstreamConfig
from fairq.gateway.dispatcher import Dispatcher, Record
from fairq.gateway.openai.rewrite import STEERING

SECOND: Final = 1_000_000_000
MAX_DERIVED: Final = 4096  # terms of tenants without an entry that are kept


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


bounds = lru_cache(Bounds)  # most tenants have the same


class Pool:
    """
    record    takes its ledger lines
    log       called with the record of each request that ended, and why an attempt of it failed ("" if none did)
    complain  takes what an operator should read, one line each
    """

    def __init__(
        self,
        config: Config,
        pool: PoolConfig,
        record: Record,
        log: Callable[[Ended, str], None],
        complain: Callable[[str], None],
    ) -> None:
        self.name, self.clock = pool.name, time.monotonic_ns
        self._log, self._complain = log, complain
        self._loop = asyncio.get_running_loop()
        self.call_later = self._loop.call_later
        self._terms: Mapping[str, Terms] = {}
        self._derived: dict[str, Terms] = {}
        self._configured_rates = CostModel()
        self._calibration: Calibration | None = None
        self._adopt(config, pool)
        setup = setup_of(config, pool)
        scheduler = Scheduler(setup, policies.make(setup.policy), placements.make(setup.placement))
        queue = config.queue
        self.admission = Admission(Bounds(queue.requests, queue.bytes), self._bounds, self.clock)
        self.dispatcher = Dispatcher(scheduler, self.admission, record, self.clock, self._loop.call_soon, self._call_at)
        self.backends: dict[str, Backend] = {}
        self._leaving: dict[Backend, asyncio.Task[None]] = {}

    @property
    def scheduler(self) -> Scheduler:
        return self.dispatcher.scheduler

    def remember(self, last: Estimator) -> None:
        """What the last run had learned, before the ledger's head is made: predictions, and the calibration too."""
        self.scheduler.estimator.restore(last.state())
        rates = self._configured_rates
        if self._calibration is not None and last.model.alpha == rates.alpha:
            self._calibration = Calibration(rates.beta / rates.alpha, last.model.beta / rates.alpha)

    def start(self) -> None:
        """Upstreams join the rotation. Separate from making the pool, so that the ledger's head comes first."""
        if self._rates() != self.scheduler.estimator.model:
            self._calibrated()
        self._replace_backends(self._backends_of(self._config, self.config))

    def terms(self, tenant: str) -> Terms:
        """O(1): those of tenants without an entry are made once."""
        found = self._terms.get(tenant) or self._derived.get(tenant)
        if found is None:
            if len(self._derived) >= MAX_DERIVED:
                self._derived.clear()
            found = self._derived[tenant] = self._config.default_terms(tenant)
        return found

    def forget(self, tenant: str) -> None:
        self._derived.pop(tenant, None)

    def models(self) -> Iterator[str]:
        """The names it serves, as far as they are known: "*" stands for whatever its upstreams list."""
        for name in self.config.models:
            if name != "*":
                yield name
        if "*" in self.config.models:
            for backend in self.backends.values():
                yield from backend.models

    def retry_after(self, outcome: Outcome, tenant: str = "") -> int | None:
        """Seconds, where the outcome promises a Retry-After. `tenant`: see `Admission.retry_after`."""
        if outcome in (Outcome.REFUSED_QUEUE_FULL, Outcome.EXPIRED):
            return self.admission.retry_after(tenant)
        if outcome in (Outcome.REFUSED_NO_UPSTREAM, Outcome.REFUSED_SHUTTING_DOWN):
            return 1
        return None

    def report(self, error: Exception) -> None:
        """An error of ours that must not spread. It is printed with its traceback."""
        self._loop.call_exception_handler({"message": f"in pool {self.name}", "exception": error})

    def log(self, record: Ended, failure: str) -> None:
        """A request is over."""
        self._log(record, failure)
        if self._calibration is not None and self._calibration.observe(record):
            self._calibrated()

    # Changes from outside
    def prepare(self, config: Config, pool: PoolConfig) -> Callable[[], None]:
        """Make ready for a configuration that was checked before: all that may fail fails here. The function that is
        returned applies it; nothing that waits or runs is lost."""
        return partial(self._reload, config, pool, self._backends_of(config, pool))

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

    def cut(self) -> None:
        """What still runs has had its time."""
        for call in list(self.dispatcher.calls.values()):
            call.cut()

    async def close(self) -> None:
        self.dispatcher.close()
        for task in self._leaving.values():
            task.cancel()
        for backend in (*self.backends.values(), *self._leaving):
            await backend.close()

    # Building blocks
    def _adopt(self, config: Config, pool: PoolConfig) -> None:
        rates = config.cost_model(pool)
        if not (config.cost.calibrate and rates.alpha and rates.beta):
            self._calibration = None
        elif self._calibration is None or rates != self._configured_rates:
            self._calibration = Calibration(rates.beta / rates.alpha)
        self._configured_rates = rates
        self._config, self.config = config, pool
        self._terms = config.terms()
        self._derived.clear()
        self.strip = STEERING - set(config.security.allow_fields)
        self.show_upstream = config.security.show_upstream

    def _bounds(self, tenant: str) -> Bounds:
        terms = self.terms(tenant)
        return bounds(terms.queue_requests, terms.queue_bytes)

    def _reload(self, config: Config, pool: PoolConfig, backends: dict[str, Backend]) -> None:
        self._adopt(config, pool)
        self.admission.total = Bounds(config.queue.requests, config.queue.bytes)
        self._replace_backends(backends)
        self._reconfigured("file")

    def _reconfigured(self, by: str) -> None:
        setup = setup_of(self._config, self.config)
        self.dispatcher.emit(
            ev.Reconfigured,
            flows=[terms.flow() for terms in self._terms.values()],
            default_flow=setup.default_flow,
            wait_for_upstream=setup.wait_for_upstream,
            cost=self._rates(),
            by=by,
        )

    def _rates(self) -> CostModel:
        """As configured, and as measured where that is wanted."""
        rates, calibration = self._configured_rates, self._calibration
        return rates if calibration is None else msgspec.structs.replace(rates, beta=rates.alpha * calibration.ratio)

    def _calibrated(self) -> None:
        rates = self._rates()
        self.dispatcher.emit(ev.CalibrationChanged, alpha=rates.alpha, beta=rates.beta)

    # Upstreams
    def _backends_of(self, config: Config, pool: PoolConfig) -> dict[str, Backend]:
        """One for each upstream of `pool`: the present one where nothing has changed about it."""
        present = ((upstream, self.backends.get(upstream.label)) for upstream in pool.upstreams)
        return {
            upstream.label: backend if backend and backend.config == upstream else self._make(config, pool, upstream)
            for upstream, backend in present
        }

    def _make(self, config: Config, pool: PoolConfig, upstream: UpstreamConfig) -> Backend:
        def changed(why: str) -> None:
            self._tell(backend)
            change = "is back in rotation" if backend.health.well else "leaves the rotation"
            self._complain(f"pool {self.name}: upstream {backend.name} {change}: {why}")

        def may_leave() -> bool:
            others = (other for name, other in self.backends.items() if name != backend.name)
            return any(other.health.well and not other.draining for other in others)

        backend = Backend(config, upstream, self.call_later, changed, may_leave, lists_models="*" in pool.models)
        return backend

    def _replace_backends(self, wanted: dict[str, Backend]) -> None:
        """The new ones are told of first, so that the queue is at no moment without one, and those that go are at hand
        until all that was decided before is done. Running requests end where they run."""
        before = self.backends
        self.backends = before | wanted
        for name, backend in wanted.items():
            last = before.get(name)
            if last is backend:
                backend.reconfigure(self._config, lists_models="*" in self.config.models)
                continue
            if last is not None:
                backend.succeed(last)
                self._retire(last)
            self._tell(backend)
            backend.watch()
        for name, backend in before.items():
            if name not in wanted:
                self._retire(backend)
                self.dispatcher.emit(ev.UpstreamRemoved, upstream=name)
        try:
            self.dispatcher.turn()
        except Exception as error:  # about one request; the reload is about all
            self.report(error)
        self.backends = wanted

    def _retire(self, backend: Backend) -> None:
        backend.retire()
        self._leaving[backend] = task = self._loop.create_task(backend.finish())
        task.add_done_callback(lambda _: self._leaving.pop(backend, None))

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
