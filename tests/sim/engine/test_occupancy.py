"""Occupancy and gaps between tokens against what the requests themselves tell."""

import json
from typing import Any

import pytest
from tests.cli.program import fairq

from fairq.sim.engine.run import EngineRun
from fairq.sim.scenario import build


def run(engine: str = "jump", **given: Any) -> EngineRun:
    scenario = {
        "layer": "engine",
        "workload": "poisson:rate=2,duration=40,lengths=geometric",
        "policies": ["vtc"],
        "occupancy": True,
        "engine": engine,
    }
    found = build(scenario | given).run("vtc")
    assert isinstance(found, EngineRun)
    return found


RULES = [
    {},
    {"prefill": "chunked", "step_tokens": 1000, "max_sequences": 64},
    {"prefill": "chunked", "reserve": "limit", "block_tokens": 16, "max_sequences": 1000},
]


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("engine", ["jump", "step"])
def test_the_gaps_of_all_answers_add_up_to_their_times(engine: str, rules: dict[str, Any]) -> None:
    found = run(engine, **rules)
    assert found.occupancy is not None
    assert found.engine.preemptions == 0
    gaps = found.occupancy.gaps
    assert gaps.count == sum(call.produced - 1 for call in found.calls)
    assert gaps.total == pytest.approx(sum((call.finish or 0) - (call.first or 0) for call in found.calls))


@pytest.mark.parametrize("rules", RULES)
def test_the_mean_batch_is_littles_law(rules: dict[str, Any]) -> None:
    """Sequences in the engine on average: the time that all of them spend there, over the time it runs."""
    found = run(**rules)
    assert found.occupancy is not None
    filled = found.occupancy.filled()
    inside = sum((call.finish or 0) - (call.admitted or 0) for call in found.calls)
    assert filled.batch_mean == pytest.approx(inside / found.engine.now)
    assert 0 < filled.kv_mean < filled.kv_max <= 1


@pytest.mark.parametrize("rules", RULES)
def test_both_engines_are_as_full(rules: dict[str, Any]) -> None:
    jump, step = (run(engine, **rules).occupancy for engine in ("jump", "step"))
    assert jump is not None
    assert step is not None
    one, other = jump.filled(), step.filled()
    assert one.batch_max == other.batch_max
    assert one.kv_max == pytest.approx(other.kv_max, abs=0.01)
    assert one.kv_mean == pytest.approx(other.kv_mean, rel=0.02)
    assert one.gaps is not None
    assert other.gaps is not None
    assert one.gaps.p99 == pytest.approx(other.gaps.p99, rel=0.03)


def test_a_prompt_that_stops_the_others_is_one_long_gap() -> None:
    """Prefill first: 2,000 tokens at 0.22 ms hold everybody up for 0.44 s, besides the 28 ms of an iteration."""
    requests = [
        {"client": "a", "prompt": 10, "output": 200},
        {"client": "b", "at": 2, "prompt": 2_000, "output": 5},
    ]
    found = build({"layer": "engine", "requests": requests, "policies": ["fcfs"], "occupancy": True}).run("fcfs")
    told = found.as_json()["occupancy"]["gap"]
    assert told["max"] == pytest.approx(0.44 + 2 * 0.0285, rel=0.05)
    assert told["p50"] < 0.03


def test_the_command_tells_it_when_asked() -> None:
    command = ["sim", "engine", "--workload", "poisson:duration=5", "--policy", "fcfs", "--json"]
    assert json.loads(fairq(*command).out)["runs"][0]["occupancy"] is None
    told = json.loads(fairq(*command, "--occupancy").out)["runs"][0]["occupancy"]
    assert set(told) == {"kv", "batch", "gap"}
