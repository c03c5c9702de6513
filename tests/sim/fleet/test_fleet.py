"""Several engines behind a router: one engine is an engine, k of them are k servers, and each layer does its part."""

from collections import Counter
from math import factorial, log, sqrt
from pathlib import Path
from random import Random
from statistics import fmean, stdev
from typing import Any

import pytest

from fairq.sim.engine.run import EngineRun
from fairq.sim.fleet.run import FleetRun
from fairq.sim.scenario import build
from fairq.sim.source import InvalidScenario
from fairq.traces import Request
from fairq.traces.write import write

DATA = Path(__file__).parents[3] / "data"


def fleet(policy: str, **given: Any) -> FleetRun:
    found = build({"layer": "fleet", "policies": [policy], "seed": 2, **given}).run(policy)
    assert isinstance(found, FleetRun)
    return found


@pytest.mark.parametrize("policy", ["fcfs", "vtc", "lcf", "vtc-predict:predictor=oracle"])
@pytest.mark.parametrize(
    "given",
    [
        {"trace": str(DATA / "vtc_real_trace.csv"), "first": 400, "speed": 3},
        {"workload": "cancels:rate=4,duration=60,lengths=geometric"},
        {"workload": "re-entry:clients=6,requests=8,lengths=geometric,think=1,cancels=0.2,patience=2"},
        {"workload": "multi-turn:conversations=2,duration=20"},
    ],
)
def test_a_fleet_of_one_engine_is_that_engine(policy: str, given: dict[str, Any]) -> None:
    alone = build({"layer": "engine", "policies": [policy], "seed": 2, **given}).run(policy)
    assert isinstance(alone, EngineRun)
    found = fleet(policy, engines=1, router="fcfs", **given)
    for one, other in zip(alone.calls, found.calls, strict=True):
        assert (one.arrival, one.admitted, one.first, one.finish) == (
            other.arrival,
            other.admitted,
            other.first,
            other.finish,
        )
        assert (one.reason, one.produced) == (other.reason, other.produced)
    assert alone.engine.iterations == found.engine.iterations


def test_engines_that_serve_one_at_a_time_behind_one_queue_are_m_m_k(tmp_path: Path) -> None:
    """Erlang's formula, for a router that holds everybody back until an engine is free."""
    servers, load, count, mean, token = 3, 0.7, 6_000, 400, 250_000
    service = mean * token / 1e9
    chance, at, requests = Random(5), 0.0, []
    for _ in range(count):
        at += chance.expovariate(load * servers / service)
        length = 1 + int(log(1 - chance.random()) / log(1 - 1 / mean))
        requests.append(Request(arrival=at, client="a", input_tokens=1, output_tokens=length))
    write(tmp_path / "poisson.csv", requests)
    found = fleet(
        "fcfs",
        trace=str(tmp_path / "poisson.csv"),
        engines=servers,
        router="fcfs",
        slots=1,
        cost={"a": token},
        pool_tokens=10**6,
    )
    times = [((call.finish or 0) - call.arrival) / 1e9 for call in found.calls][count // 20 :]
    size = len(times) // 20
    means = [fmean(times[i * size : (i + 1) * size]) for i in range(20)]
    offered = servers * load
    waits = offered**servers / factorial(servers) / (1 - load)
    waits /= sum(offered**n / factorial(n) for n in range(servers)) + waits
    formula = service + waits * service / (servers * (1 - load))
    error = stdev(means) / sqrt(20)
    assert error < 0.1 * formula
    assert abs(fmean(means) - formula) <= 4 * error


def test_no_engine_has_more_in_flight_than_its_slots_and_none_is_free_while_somebody_waits() -> None:
    found = fleet("fcfs", workload="poisson:rate=6,duration=40", engines=3, slots=4, router="sfq")
    sent = found.fleet.sent
    assert sum(sent.values()) == len(found.calls)
    moments = sorted(
        [(call.admitted or 0, 1) for call in found.calls] + [(call.finish or 0, -1) for call in found.calls]
    )
    running = 0
    for _, change in sorted(moments, key=lambda one: (one[0], one[1])):
        running += change
        assert running <= 12
    assert all(call.finish is not None for call in found.calls)


def noisy(tmp_path: Path) -> str:
    """One client sends three times what another does; both more than their half."""
    requests = [Request(arrival=i / 6, client="noisy", input_tokens=256, output_tokens=256) for i in range(1, 721)]
    requests += [Request(arrival=i / 2, client="quiet", input_tokens=256, output_tokens=256) for i in range(1, 241)]
    write(tmp_path / "noisy.csv", sorted(requests, key=lambda one: one.arrival))
    return str(tmp_path / "noisy.csv")


def share(found: FleetRun, until: int = 120) -> float:
    """Of the service that both have by then, the part of the quiet client."""
    made = Counter[str]()
    for call in found.calls:
        if (call.finish or 0) <= until * 10**9:
            made[call.job.flow] += call.produced
    return made["quiet"] / sum(made.values())


def test_a_fair_router_shares_what_plain_engines_do_not(tmp_path: Path) -> None:
    trace = noisy(tmp_path)
    plain = share(fleet("fcfs", trace=trace, router="fcfs", slots=16))
    at_router = share(fleet("fcfs", trace=trace, router="sfq", slots=16))
    in_engines = share(fleet("vtc", trace=trace, router="fcfs", slots=0))
    assert plain == pytest.approx(1 / 4, abs=0.03)  # what they ask for
    assert at_router > 0.4
    assert in_engines > 0.4


def test_an_answer_that_is_predicted_long_costs_more_at_the_router() -> None:
    """Both clients send as often; one's answers are eight times as long, and the router learns it."""
    requests = [
        {"client": name, "prompt": 100, "output": output, "count": 150, "every": 0.25}
        for name, output in (("short", 50), ("long", 400))
    ]
    found = fleet("fcfs", requests=requests, router="sfq", slots=6, engines=1)
    short, long = (
        sorted(call.finish or 0 for call in found.calls if call.job.flow == name)[75] for name in ("short", "long")
    )
    assert long > 1.8 * short


def test_the_same_run_twice_is_the_same() -> None:
    given = {"workload": "poisson:rate=4,duration=20,lengths=geometric", "engines": 2, "slots": 8}
    assert fleet("vtc", **given).digest == fleet("vtc", **given).digest


def test_a_client_whose_patience_outlasts_its_answer_changes_nothing() -> None:
    request = {"client": "a", "prompt": 8, "output": 2}
    assert fleet("fcfs", requests=[request | {"cancel": 100}]).digest == fleet("fcfs", requests=[request]).digest


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"router": "vtc"}, "router.*needs service by the token"),
        ({"router": "sfg"}, "router.*did you mean"),
        ({"placement": "d3lpm"}, "placement.*did you mean d2lpm"),
        ({"placement": "d2lpm:quantum=x"}, "must be a whole number"),
        ({"engines": 0}, "engines.*at least 1"),
    ],
)
def test_what_stands_before_the_engines_is_checked(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidScenario, match=message):
        build({"layer": "fleet", "policies": ["fcfs"], "workload": "poisson", **given})
