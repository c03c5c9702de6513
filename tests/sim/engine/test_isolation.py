"""Isolation: how much longer a client's requests take among all than alone."""

import json
from typing import Any

import pytest
from tests.cli.program import fairq

from fairq.sim.engine.run import EngineRun
from fairq.sim.scenario import build

MODEST = {"client": "modest", "prompt": 100, "output": 100, "count": 30, "every": 2}
FLOOD = {"client": "flood", "prompt": 300, "output": 300, "count": 400, "every": 0.15}


def run(policy: str, *requests: dict[str, Any]) -> EngineRun:
    scenario = build({"layer": "engine", "requests": list(requests), "policies": [policy], "isolation": True})
    found = scenario.run(policy)
    assert isinstance(found, EngineRun)
    return found


def test_alone_nobody_is_slowed_down() -> None:
    assert run("fcfs", MODEST).isolation == {"modest": 1.0}


def test_a_fair_policy_isolates_the_modest_from_a_flood() -> None:
    fcfs, vtc = (run(policy, MODEST, FLOOD).isolation for policy in ("fcfs", "vtc"))
    assert fcfs["modest"] is not None
    assert vtc["modest"] is not None
    assert fcfs["modest"] > 5 * vtc["modest"]
    assert vtc["modest"] < 3


def test_slowdown_is_the_quotient_of_two_runs() -> None:
    found = run("vtc", MODEST, FLOOD)
    alone = run("vtc", MODEST).clients()["modest"]["response"]["mean"]
    assert found.isolation["modest"] == pytest.approx(found.clients()["modest"]["response"]["mean"] / alone)
    assert found.measured()["isolation worst"] == max(value or 0 for value in found.isolation.values())


def test_the_command_tells_it_when_asked() -> None:
    command = ["sim", "engine", "--workload", "poisson:duration=10,clients=2", "--policy", "vtc"]
    assert json.loads(fairq(*command, "--json").out)["runs"][0]["isolation"] is None
    told = json.loads(fairq(*command, "--isolation", "--json").out)["runs"][0]["isolation"]
    assert set(told) == {"c0", "c1"}
    assert all(value >= 1 for value in told.values())
    assert "response among all / alone" in fairq(*command, "--isolation").out
