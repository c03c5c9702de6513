"""Workloads of independent requests. Rates are requests per second of all clients, times seconds, lengths tokens.

Every one of them takes, besides its own parameters, those of `Traffic`.
"""

from __future__ import annotations

from random import Random

from msgspec import Struct
from msgspec.structs import replace

from fairq.core.errors import ConfigError
from fairq.traces.request import Request
from fairq.workloads import arrivals
from fairq.workloads.lengths import lengths


class Traffic(Struct, frozen=True, kw_only=True):
    """clients          a request is charged to one of them, each as likely
    input, output    mean tokens; `lengths` says how they spread: fixed, uniform, geometric, lognormal, pareto
    cancels          share of the requests whose client leaves, after about `patience` seconds (exponential)
    error            the predicted length is off by up to this share either way (0.5: +-50 %); None: no prediction
    """

    clients: int = 4
    input: float = 256
    output: float = 256
    lengths: str = "fixed"
    cancels: float = 0
    patience: float = 10
    error: float | None = None

    def requests(self, chance: Random, times: list[float], names: list[str] | None = None) -> list[Request]:
        """One request at each of the times; `names`: whose each is."""
        draw = lengths(self.lengths)
        made = []
        for place, at in enumerate(times):
            client = names[place] if names else f"c{chance.randrange(self.clients)}"
            given, wanted = draw(chance, self.input), draw(chance, self.output)
            leaves = chance.expovariate(1 / self.patience) if chance.random() < self.cancels else None
            told = None if self.error is None else max(1, round(wanted * (1 + chance.uniform(-self.error, self.error))))
            made.append(
                Request(
                    arrival=at,
                    client=client,
                    input_tokens=given,
                    output_tokens=wanted,
                    cancel=leaves,
                    predicted=told,
                )
            )
        return made

    def check(self) -> None:
        """Raises ConfigError."""
        lengths(self.lengths)
        if self.clients < 1:
            raise ConfigError("clients", self.clients, "must be at least 1")
        if not 0 <= self.cancels <= 1:
            raise ConfigError("cancels", self.cancels, "must be a share from 0 to 1")
        if self.error is not None and not 0 <= self.error <= 1:
            raise ConfigError("error", self.error, "must be a share from 0 to 1")


def poisson(chance: Random, traffic: Traffic, *, rate: float = 2, duration: float = 60) -> list[Request]:
    """Independent arrivals."""
    return traffic.requests(chance, arrivals.poisson(chance, rate, duration))


def on_off(
    chance: Random, traffic: Traffic, *, rate: float = 4, on: float = 10, off: float = 10, duration: float = 60
) -> list[Request]:
    """Each client is busy and silent by turns, from its own moment of the cycle on; `rate` while all are busy."""
    times = []
    for client in range(traffic.clients):
        phase = chance.uniform(0, on + off)
        own = arrivals.on_off(chance, rate / traffic.clients, on, off, duration, phase)
        times += [(at, f"c{client}") for at in own]
    times.sort()
    return traffic.requests(chance, [at for at, _ in times], [client for _, client in times])


def ramp(
    chance: Random, traffic: Traffic, *, start: float = 0.5, end: float = 4, duration: float = 60
) -> list[Request]:
    """Poisson arrivals whose rate goes straight from `start` to `end`."""
    return traffic.requests(chance, arrivals.ramp(chance, start, end, duration))


def burst(
    chance: Random, traffic: Traffic, *, size: int = 20, every: float = 20, duration: float = 60
) -> list[Request]:
    """`size` requests at once, every so often."""
    return traffic.requests(chance, arrivals.bursts(size, every, duration))


def heavy_tail(chance: Random, traffic: Traffic, *, rate: float = 2, duration: float = 60) -> list[Request]:
    """Poisson arrivals; few requests hold most of the tokens (a bounded Pareto law)."""
    return replace(traffic, lengths="pareto").requests(chance, arrivals.poisson(chance, rate, duration))


def re_entry(chance: Random, traffic: Traffic, *, requests: int = 10, think: float = 0) -> list[Request]:
    """Every client sends one request at a time, `requests` in all, the next about `think` seconds after an answer.

    A closed loop: never more than one request of a client is in the system.
    """
    arrivals.allowed(traffic.clients * requests)
    names = [f"c{client}" for client in range(traffic.clients)]
    made = traffic.requests(chance, [0.0] * (len(names) * requests), names * requests)
    first, rest = made[: len(names)], made[len(names) :]
    pauses = [chance.expovariate(1 / think) if think else 0.0 for _ in rest]
    return first + [replace(one, after=place, think=pauses[place]) for place, one in enumerate(rest)]


def cancelled(chance: Random, traffic: Traffic, *, rate: float = 2, duration: float = 60) -> list[Request]:
    """Poisson arrivals; half of the clients (or `cancels`) leave before they have their answer."""
    return replace(traffic, cancels=traffic.cancels or 0.5).requests(chance, arrivals.poisson(chance, rate, duration))


def mispredicted(chance: Random, traffic: Traffic, *, rate: float = 2, duration: float = 60) -> list[Request]:
    """Poisson arrivals; the length of each answer is predicted, and wrong by up to half (or `error`) either way."""
    error = 0.5 if traffic.error is None else traffic.error
    return replace(traffic, error=error).requests(chance, arrivals.poisson(chance, rate, duration))
