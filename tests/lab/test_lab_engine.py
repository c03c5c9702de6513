"""The lab runs an engine a second time to hear what it decides; it has to hear the run that it draws."""

from pathlib import Path
from typing import Any

import pytest

from fairq.lab import catalogue
from fairq.lab.engine import engine_steps
from fairq.sim.engine.scenario import EngineScenario
from fairq.sim.scenario import load

LAB = Path(__file__).parents[2] / "examples" / "scenarios" / "engine" / "lab.yaml"


@pytest.mark.parametrize("policy", [each.name for each in catalogue.policies().policies if "engine" in each.layers])
def test_the_steps_admit_what_the_run_admits_in_its_order(policy: str) -> None:
    scenario: Any = load(LAB)
    assert isinstance(scenario, EngineScenario)
    run = scenario.run(policy, None)
    admitted = [job for job in run.jobs() if job["admitted"] is not None]
    order: dict[int, set[str]] = {}
    for job in admitted:
        order.setdefault(job["admitted"], set()).add(job["id"])
    told = [set(step.what["admitted"]) for step in engine_steps(scenario, run) if step.what["admitted"]]
    assert told == [order[at] for at in sorted(order)]
