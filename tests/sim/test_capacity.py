"""Capacity: at the load that was found the promise holds, and just above it does not."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from tests.cli.program import fairq

from fairq.core.errors import ConfigError
from fairq.sim.capacity import Target, capacity
from fairq.sim.engine.scenario import EngineScenario
from fairq.sim.scenario import build
from fairq.traces import Request
from fairq.traces.write import write


def noisy(tmp_path: Path) -> EngineScenario:
    """One client sends nine requests for each of the other's."""
    requests = [Request(arrival=i / 3, client="noisy", input_tokens=200, output_tokens=200) for i in range(180)]
    requests += [Request(arrival=i * 3, client="quiet", input_tokens=200, output_tokens=200) for i in range(20)]
    write(tmp_path / "noisy.csv", sorted(requests, key=lambda one: one.arrival))
    scenario = build({"layer": "engine", "trace": str(tmp_path / "noisy.csv"), "policies": ["fcfs"]})
    assert isinstance(scenario, EngineScenario)
    return scenario


def test_the_edge_is_between_a_load_that_holds_and_one_that_does_not(tmp_path: Path) -> None:
    scenario, target = noisy(tmp_path), Target(ttft=5)
    found = capacity(scenario, "vtc", target)
    assert found.load is not None
    assert found.above is not None
    assert found.above / found.load <= 1.02
    assert found.broken == ("ttft",)
    for load, holds in ((found.load, True), (found.above, False)):
        run = scenario.model_copy(update={"speed": Fraction(load)}).run("vtc")
        assert (run.measured()["ttft p99"] <= 5) == holds


def test_a_fair_policy_carries_more_where_every_client_is_promised_something(tmp_path: Path) -> None:
    """First come first served makes the quiet client wait behind the other's queue."""
    scenario = noisy(tmp_path)
    quiet = build({**scenario.model_dump(mode="json", exclude_unset=True), "layer": "engine"})
    assert isinstance(quiet, EngineScenario)
    loads = {policy: capacity(quiet, policy, Target(difference=150)).load or 0 for policy in ("fcfs", "vtc")}
    assert loads["vtc"] > 1.05 * loads["fcfs"]


def test_twice_the_speed_of_an_engine_is_twice_the_load(tmp_path: Path) -> None:
    scenario = noisy(tmp_path)
    cost = {"a": 40_000_000, "b": 200_000, "c": 0, "d": 0}
    half = {key: value // 2 for key, value in cost.items()}
    given = scenario.model_dump(mode="json", exclude_unset=True) | {"layer": "engine"}
    slow, fast = (build(given | {"cost": one}) for one in (cost, half))
    assert isinstance(slow, EngineScenario)
    assert isinstance(fast, EngineScenario)
    first = capacity(slow, "fcfs", Target(ttft=8))
    second = capacity(fast, "fcfs", Target(ttft=4))
    assert first.load is not None
    assert second.load == pytest.approx(2 * first.load, rel=0.05)


def test_what_never_holds_and_what_always_does_are_said(tmp_path: Path) -> None:
    scenario = noisy(tmp_path)
    never = capacity(scenario, "fcfs", Target(ttft=0.001))
    assert (never.load, never.broken) == (None, ("ttft",))
    always = capacity(scenario, "fcfs", Target(ttft=1e6))
    assert (always.load, always.above) == (64.0, None)


def test_a_capacity_needs_a_target() -> None:
    with pytest.raises(ConfigError, match="what must hold"):
        Target().check()
    result = fairq("capacity", "--workload", "poisson")
    assert (result.status, result.err.count("\n")) == (2, 1)
    result = fairq("capacity", "--workload", "poisson", "--ttft", "0")
    assert (result.status, result.err.count("\n")) == (2, 1)


def test_the_command_compares_policies() -> None:
    result = fairq("capacity", "--workload", "poisson:duration=20", "--ttft", "4", "--policy", "vtc", "--json")
    told = json.loads(result.out)
    assert told["runs"][0]["policy"] == "vtc"
    assert told["runs"][0]["measured"]["ttft"] <= 4
