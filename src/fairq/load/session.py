"""One run of `fairq load` from settings to report, without a word to the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

from msgspec import Struct

from fairq.core.errors import ConfigError
from fairq.load.call import Result
from fairq.load.console import Charged, Console, difference
from fairq.load.plan import Identity, Planned, body, scaled
from fairq.load.replay import Replay
from fairq.load.tally import Fairness, Rates, TenantTally, fairness, tally
from fairq.load.target import Headers, Target, Unreachable, choose_model
from fairq.measure.latency import Summary, summary
from fairq.traces import Trace, default_rule

PATHS = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}


class Settings(Struct, frozen=True, kw_only=True):
    """What to replay, how fast, against whom. Times in seconds; see `fairq load --help`."""

    trace: Path
    target: str
    tenants_by: str | None = None
    speed: float = 1.0
    limit: int | None = None
    duration: float | None = None
    max_concurrency: int | None = None
    timeout: float = 600.0
    model: str | None = None
    api: str = "chat"
    stream: bool = True
    ignore_eos: bool = True
    identity: Identity = Identity()
    rates: Rates = Rates()
    seed: int = 0
    console: str | None = None
    console_token: str | None = None


class Report(Struct, frozen=True, kw_only=True):
    """What a run measured.

    sent, planned   requests
    seconds         from the first request to the end of the last
    details         by outcome, what one of its requests was told
    late            by how much requests were sent after their time (seconds)
    charged         what the console says; None without one
    """

    trace: str
    tenants_by: str
    target: str
    model: str
    speed: float
    planned: int
    sent: int
    seconds: float
    interrupted: bool
    late: Summary | None
    tenants: list[TenantTally]
    total: TenantTally
    details: dict[str, str]
    fairness: Fairness
    charged: Charged | None


class Session:
    """Reads and checks everything first; `run` then sends, and `report` may be asked for at any time afterwards.

    Raises, before anything is sent: TraceError, ConfigError (key, value, rule).
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        if settings.api not in PATHS:
            raise ConfigError("--api", settings.api, f"must be {' or '.join(PATHS)}")
        self.target = Target.parse("--target", settings.target)
        self.console = Console(settings.console, settings.console_token) if settings.console else None
        self.charged: Charged | None = None
        self.trace = Trace(settings.trace)
        self.rule = settings.tenants_by or default_rule(self.trace)
        self.plan = list(scaled(self.trace, self.rule, settings.speed, settings.limit))
        self.tenants = sorted({planned.tenant for planned in self.plan})
        self.model = settings.model or ""
        self.results: list[Result] = []
        self._replay: Replay | None = None
        self._stopped = False
        self._check_tenants()

    def _check_tenants(self) -> None:
        identity, rates = self.settings.identity, self.settings.rates
        without = [tenant for tenant in self.tenants if tenant not in identity.keys]
        if identity.keys and identity.key is None and without:
            more = f" and {len(without) - 1} more" if len(without) > 1 else ""
            raise ConfigError("--keys", without[0], f"this tenant of the trace{more} has no key")
        for tenant in self.tenants:
            for name, value in identity.headers(tenant):
                if not value.decode().isprintable() or not name.replace(b"-", b"").isalnum():
                    shown = "(not shown)" if name == b"authorization" else value.decode()
                    raise ConfigError(name.decode(), shown, "cannot be sent as a header")
        for tenant in rates.weights:
            if tenant not in self.tenants:
                raise ConfigError("--weight", tenant, "no such tenant in the trace")

    async def run(
        self, on_result: Callable[[Result], None] = lambda result: None, on_start: Callable[[], None] = lambda: None
    ) -> None:
        """Send the plan and wait for its end. `on_start`: target and console are there, sending begins.

        Unreachable when the target or the console does not answer before anything is sent. A console that
        has gone away afterwards costs the run nothing but its `charged`.
        """
        before = await self.console.state() if self.console else None
        await self._replayed(on_result, on_start)
        if self.console and before:
            with suppress(Unreachable):
                self.charged = difference(before, await self.console.settled())

    async def _replayed(self, on_result: Callable[[Result], None], on_start: Callable[[], None]) -> None:
        settings = self.settings
        upstream = self.target.connect(settings.timeout)
        try:
            headers = {tenant: self._headers(tenant) for tenant in self.tenants}
            self.model = await choose_model(self.target, upstream, headers[self.tenants[0]], settings.model)
            self._replay = Replay(
                upstream,
                self.target.path(PATHS[settings.api]),
                lambda planned: (headers[planned.tenant], self._body(planned)),
                max_concurrency=settings.max_concurrency,
                duration=settings.duration,
                on_result=on_result,
            )
            self.results = self._replay.results
            if not self._stopped:
                on_start()
                await self._replay.run(self.plan)
        finally:
            await upstream.close()

    def stop(self) -> None:
        """End the run now; what is under way counts as interrupted."""
        self._stopped = True
        if self._replay is not None:
            self._replay.stop()

    def _headers(self, tenant: str) -> Headers:
        return self.target.head([(b"content-type", b"application/json"), *self.settings.identity.headers(tenant)])

    def _body(self, planned: Planned) -> bytes:
        settings = self.settings
        return body(
            planned,
            model=self.model,
            chat=settings.api == "chat",
            stream=settings.stream,
            ignore_eos=settings.ignore_eos,
            key=str(settings.seed),
            block_tokens=self.trace.block_tokens,
        )

    def report(self) -> Report:
        """What is known so far."""
        results, rates = self.results, self.settings.rates
        charged = self.charged.normalized if self.charged else {}
        of: dict[str, list[Result]] = {tenant: [] for tenant in self.tenants}
        for result in results:
            of[result.tenant].append(result)
        tenants = [tally(tenant, found, rates, charged.get(tenant)) for tenant, found in of.items() if found]
        start = min((result.sent for result in results), default=time.perf_counter_ns())
        end = max((result.end for result in results), default=start)
        return Report(
            trace=self.trace.name,
            tenants_by=self.rule,
            target=self.settings.target,
            model=self.model,
            speed=self.settings.speed,
            planned=len(self.plan),
            sent=len(results),
            seconds=(end - start) / 1e9,
            interrupted=self._stopped,
            late=summary(Fraction(result.late, 10**9) for result in results),
            tenants=sorted(tenants, key=lambda tenant: (-tenant.service, tenant.tenant)),
            total=tally("", results, Rates(rates.alpha, rates.beta)),
            details={result.outcome: result.detail for result in results if result.detail},
            fairness=fairness(results, rates),
            charged=self.charged,
        )
