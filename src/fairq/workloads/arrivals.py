"""When requests arrive: seconds, ascending. A generator is passed in, so a seed names the whole workload."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from random import Random

from fairq.core.errors import ConfigError

Clock = Callable[[float], float]
MOST = 2_000_000


def allowed(requests: float) -> None:
    """Raises ConfigError: a slip of a digit should not fill the memory."""
    if requests > MOST:
        raise ConfigError("workload", None, f"about {requests:,.0f} requests; at most {MOST:,}")


def poisson(chance: Random, rate: float, duration: float) -> list[float]:
    """Independent arrivals, `rate` per second: about rate * duration of them."""
    return _by_operational_time(chance, rate * duration, lambda amount: amount / rate)


def ramp(chance: Random, start: float, end: float, duration: float) -> list[float]:
    """Poisson, at a rate that goes straight from `start` to `end`: about (start + end) / 2 * duration arrivals."""
    slope = (end - start) / duration
    if not slope:
        return poisson(chance, start, duration)
    # amount = start t + slope t^2 / 2 have arrived by t; the root of it that lies inside, without cancellation
    return _by_operational_time(
        chance,
        (start + end) / 2 * duration,
        lambda amount: 2 * amount / (start + sqrt(max(0.0, start * start + 2 * slope * amount))),
    )


def on_off(chance: Random, rate: float, on: float, off: float, duration: float, phase: float = 0.0) -> list[float]:
    """Poisson for `on` seconds, nothing for `off`, and again: about rate * on / (on + off) * duration in the long run.

    phase  where in its cycle it starts (s)
    """
    cycle = on + off
    active = _active(phase + duration, on, cycle) - _active(phase, on, cycle)
    skipped = _active(phase, on, cycle)

    def moment(amount: float) -> float:
        cycles, inside = divmod(amount / rate + skipped, on)
        return cycles * cycle + inside - phase

    return _by_operational_time(chance, rate * active, moment)


def bursts(size: int, every: float, duration: float) -> list[float]:
    """`size` at once at 0, `every`, 2 * `every`, ... before `duration`."""
    allowed(size * duration / every)
    times, n = [], 0
    while n * every < duration:
        times += [n * every] * size
        n += 1
    return times


def _active(until: float, on: float, cycle: float) -> float:
    """Seconds of work in [0, until)."""
    cycles, inside = divmod(until, cycle)
    return cycles * on + min(inside, on)


def _by_operational_time(chance: Random, total: float, moment: Clock) -> list[float]:
    """A Poisson process of rate 1 over [0, total), each of its points moved to when so many have been due."""
    allowed(total)
    times, amount = [], chance.expovariate(1)
    while amount < total:
        times.append(moment(amount))
        amount += chance.expovariate(1)
    return times
