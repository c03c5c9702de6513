"""Requests that wait for others: one at a time, turns of a conversation, thoughts of a tree; both engines alike."""

from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest

from fairq.sim.engine.run import EngineRun
from fairq.sim.scenario import build
from fairq.workloads import make


def run(workload: str, policy: str, **given: Any) -> EngineRun:
    scenario = build({"layer": "engine", "workload": workload, "seed": 3, "policies": [policy], **given})
    found = scenario.run(policy)
    assert isinstance(found, EngineRun)
    return found


@pytest.mark.parametrize("engine", ["jump", "step"])
def test_a_client_that_waits_for_its_answer_has_one_request_in_the_engine(engine: str) -> None:
    calls = run("re-entry:clients=3,requests=6,output=40,think=1", "vtc", engine=engine).calls
    by_client = defaultdict(list)
    for call in calls:
        assert call.finish is not None
        by_client[call.job.flow].append((call.arrival, call.finish))
    for times in by_client.values():
        assert len(times) == 6
        assert all(finish <= after for (_, finish), (after, _) in pairwise(times))


@pytest.mark.parametrize("policy", ["fcfs", "lcf", "vtc", "vtc-predict"])
@pytest.mark.parametrize(
    "workload",
    [
        "re-entry:clients=5,requests=6,lengths=geometric,think=0.5,cancels=0.3,patience=3",
        "multi-turn:conversations=2,duration=10,turns=3,think=1",
        "tree-of-thoughts:trees=2,clients=2,height=3,output=30",
    ],
)
def test_both_engines_agree_on_who_comes_when(workload: str, policy: str) -> None:
    jump, step = (run(workload, policy, engine=engine, pool_tokens=5000) for engine in ("jump", "step"))
    assert [call.arrival for call in jump.calls] == [call.arrival for call in step.calls]
    assert jump.digest == step.digest


def test_a_turn_comes_its_think_time_after_the_answer_before_it() -> None:
    spec = "multi-turn:conversations=1,duration=20,turns=4"
    made, calls = make(spec, 3).requests, run(spec, "fcfs").calls
    followed = 0
    for request, call in zip(made, calls, strict=True):
        if request.after is not None:
            followed += 1
            assert call.arrival == (calls[request.after].finish or 0) + round(request.think * 10**9)
    assert followed == 3 * len(made) // 4


def test_one_that_cannot_be_served_lets_the_next_one_come() -> None:
    found = run("re-entry:clients=1,requests=3,input=900,output=200", "fcfs", pool_tokens=1000)
    assert [call.reason for call in found.calls] == ["error"] * 3
