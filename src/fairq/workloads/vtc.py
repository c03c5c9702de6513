"""The synthetic suites of "Fairness in Serving Large Language Models" (Sheng et al., OSDI 2024), by name.

Each request of them has the arrival, client and lengths that the paper's artifact draws with numpy and seed 42, to the
last bit; so a simulation runs on the very requests that were measured. Clients are "0", "1", ...
"""

from __future__ import annotations

from msgspec import Struct

from fairq.core.errors import UnknownName
from fairq.traces.request import Request
from fairq.workloads.arrivals import allowed
from fairq.workloads.numpy_random import NumpyRandom

Range = tuple[int, int]  # half open


class Suite(Struct, frozen=True, kw_only=True):
    """rates: requests per second of each client; on_off: client 0 alternates between so many seconds of work and none.

    form  uniform: each client's requests are equally far apart; poisson: one Poisson process, whose requests are shared
          out by chance in proportion to the rates; short-long: so, and client 0's are a quarter as long; swapped: so,
          and client 0's have input and output exchanged; ramp: client 1 goes from 0.2 requests per second to its rate;
          shift: three phases with rates of their own
    """

    form: str = "uniform"
    rates: tuple[float, ...]
    duration: float = 600.0
    input: Range = (256, 257)
    output: Range = (256, 257)
    on_off: float | None = None


def _overload(low: float, length: int) -> Suite:
    return Suite(rates=(low, 2 * low), input=(length, length + 1), output=(length, length + 1))


SUITES = {
    "overload": Suite(rates=(1.5, 3), duration=360),
    "overload-multi": Suite(rates=(0.4, 0.4, 0.4, 0.6, 0.6, 0.6, 0.6, 0.6), duration=360),
    "overload-weighted": Suite(rates=(0.8, 0.8, 1.2, 1.6), duration=360),
    "overload-s4": _overload(4, 256),
    "overload-s4-short": _overload(8, 128),
    "overload-s4-long": _overload(2, 512),
    "overload-s4-35000-128": _overload(6, 128),
    "overload-s4-35000-256": _overload(3, 256),
    "overload-s4-35000-512": _overload(1.5, 512),
    "overload-s4-35000-768": _overload(1, 768),
    "proportional": Suite(rates=(0.25, 0.5, 1.5)),
    "on_off_less": Suite(rates=(0.5, 2), on_off=60),
    "on_off_overload": Suite(rates=(2, 3), on_off=60),
    "poisson_on_off": Suite(form="poisson", rates=(0.5, 2), input=(16, 512), output=(16, 512), on_off=60),
    "poisson_short_long": Suite(form="short-long", rates=(8, 1.5)),
    "poisson_short_long_2": Suite(form="swapped", rates=(8, 1.5), input=(32, 33), output=(512, 513)),
    "increase": Suite(form="ramp", rates=(0.5, 2)),
    "dist_shift": Suite(form="shift", rates=(0.5, 2), duration=900, on_off=60),
    "ablation_lshare": Suite(rates=(0.2, 0.8), duration=300),
}


def suite(name: str, duration: float | None = None, seed: int = 42) -> list[Request]:
    """In order of arrival; at one instant the smaller client first. `duration` (s) instead of its own.

    Raises UnknownName.
    """
    if name not in SUITES:
        raise UnknownName("suite", name, SUITES)
    known, chance = SUITES[name], NumpyRandom(seed)
    seconds = known.duration if duration is None else duration
    allowed(sum(known.rates) * seconds)
    if known.form == "uniform":
        made = _steady(chance, known, known.rates, 0, seconds, known.on_off)
    elif known.form == "ramp":
        made = _ramp(chance, known, seconds)
    elif known.form == "shift":
        phases = ((known.rates, known.on_off), ((1.0, 1.0), None), ((0.5, 1.5), None))
        third = seconds / 3
        made = [
            one
            for i, (rates, on_off) in enumerate(phases)
            for one in _steady(chance, known, rates, i * third, third, on_off)
        ]
    else:
        made = _shared_out(chance, known, seconds)
    return sorted(made, key=lambda one: one.arrival)


def _lengths(chance: NumpyRandom, known: Suite, count: int) -> list[tuple[int, int]]:
    inputs = chance.integers(*known.input, count)
    return list(zip(inputs, chance.integers(*known.output, count), strict=True))


def _off(at: float, on_off: float | None) -> bool:
    return on_off is not None and int(at // on_off) % 2 == 1


def _steady(
    chance: NumpyRandom, known: Suite, rates: tuple[float, ...], start: float, seconds: float, on_off: float | None
) -> list[Request]:
    made = []
    for client, rate in enumerate(rates):
        lengths = _lengths(chance, known, int(rate * seconds))
        at = start + chance.rand() * 1 / rate
        for given, wanted in lengths:
            at += 1 / rate
            if client or not _off(at, on_off):
                made.append(Request(arrival=at, client=str(client), input_tokens=given, output_tokens=wanted))
    return made


def _ramp(chance: NumpyRandom, known: Suite, seconds: float) -> list[Request]:
    made, low, high = [], 0.2, known.rates[1]
    for client, average in enumerate((known.rates[0], 0.5 * (low + high))):
        at = 0.0
        for given, wanted in _lengths(chance, known, int(average * seconds)):
            at += 1 / (low + (high - low) * at / seconds if client else known.rates[0])
            made.append(Request(arrival=at, client=str(client), input_tokens=given, output_tokens=wanted))
    return made


def _shared_out(chance: NumpyRandom, known: Suite, seconds: float) -> list[Request]:
    count, share = int(sum(known.rates) * seconds), known.rates[0] / sum(known.rates)
    clients = [int(chance.rand() > share) for _ in range(count)]
    lengths = _lengths(chance, known, count)
    made, at = [], 0.0
    for client, (given, wanted) in zip(clients, lengths, strict=True):
        at += chance.exponential(1 / sum(known.rates))
        if client == 0 and _off(at, known.on_off):
            continue
        if client == 0 and known.form == "short-long":
            given, wanted = given // 4, wanted // 4
        elif client == 0 and known.form == "swapped":
            given, wanted = wanted, given
        made.append(Request(arrival=at, client=str(client), input_tokens=given, output_tokens=wanted))
    return made
