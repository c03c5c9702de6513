"""The highest load at which a policy still holds what was promised.

The load is how many times faster than recorded the requests come. It is doubled or halved until one load that holds and
one that does not are known, and then bisected. Nothing says that a policy which breaks a promise at one load breaks it
at every higher one; what is found is an edge, above which the promise was seen broken.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from msgspec import Struct

from fairq.core.errors import ConfigError
from fairq.sim.engine.run import EngineRun
from fairq.sim.engine.scenario import SECOND, EngineScenario

LOWEST, HIGHEST = Fraction(1, 64), Fraction(64)


class Target(Struct, frozen=True):
    """What must hold; None where nothing is asked. At least one must be given.

    ttft        99th percentile of the time to the first token, of all requests (s)
    client      the same of the worst-off client (s)
    difference  mean service difference (weighted tokens per second)
    served      share of the requests that get an answer
    """

    ttft: float | None = None
    client: float | None = None
    difference: float | None = None
    served: float | None = None

    def check(self) -> None:
        """Raises ConfigError."""
        given = {name: getattr(self, name) for name in self.__struct_fields__ if getattr(self, name) is not None}
        if not given:
            raise ConfigError("target", None, "none is given: what must hold?")
        for name, value in given.items():
            if not value > 0:
                raise ConfigError(name, value, "must be greater than 0")

    def measured(self, run: EngineRun) -> dict[str, float | None]:
        """What each target is about, of those that are given."""
        figures = run.measured()
        worst = [one["ttft"]["p99"] for one in run.clients().values() if one["ttft"]]
        told = {
            "ttft": figures["ttft p99"],
            "client": max(worst, default=None),
            "difference": figures["service difference mean"],
            "served": figures["served"] / len(run.calls) if run.calls else None,
        }
        return {name: told[name] for name in told if getattr(self, name) is not None}

    def broken(self, measured: dict[str, float | None]) -> tuple[str, ...]:
        found = []
        for name, value in measured.items():
            limit = getattr(self, name)
            if value is None or (value < limit if name == "served" else value > limit):
                found.append(name)
        return tuple(found)


class Capacity(Struct, frozen=True):
    """load       highest that holds, None when none from 1/64 on does
    requests, tokens  per second at that load: offered, and served
    measured   what was promised, at that load
    above      the lowest load that was seen to break a promise, and what it breaks; None: all up to 64 hold
    """

    policy: str
    load: float | None
    requests: float | None
    tokens: float | None
    measured: dict[str, float | None]
    above: float | None
    broken: tuple[str, ...]


def capacity(scenario: EngineScenario, policy: str, target: Target, tolerance: float = 0.02) -> Capacity:
    """Of one policy, to within `tolerance` of the load. Raises ConfigError."""
    target.check()
    seen: dict[Fraction, tuple[EngineRun, dict[str, float | None]]] = {}

    def holds(load: Fraction) -> bool:
        run: Any = scenario.model_copy(update={"speed": scenario.speed * load}).run(policy)
        seen[load] = run, target.measured(run)
        return not target.broken(seen[load][1])

    low, high = _edge(holds)
    while low is not None and high is not None and high / low > 1 + Fraction(tolerance):
        middle = (low + high).limit_denominator(10**6) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    broken = () if high is None else target.broken(seen[high][1])
    above = None if high is None else float(high)
    if low is None:
        return Capacity(policy, None, None, None, {}, above, broken)
    run, measured = seen[low]
    span = (run.calls[-1].arrival - run.calls[0].arrival) / SECOND
    requests = len(run.calls) / span if span else None
    return Capacity(policy, float(low), requests, run.throughput, measured, above, broken)


def _edge(holds: Any) -> tuple[Fraction | None, Fraction | None]:
    """A load that holds and one, twice as high, that does not; None where there is none."""
    load = Fraction(1)
    if holds(load):
        while load < HIGHEST:
            if not holds(2 * load):
                return load, 2 * load
            load *= 2
        return load, None
    while load > LOWEST:
        if holds(load / 2):
            return load / 2, load
        load /= 2
    return None, load
