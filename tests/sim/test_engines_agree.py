"""The jumping engine gives the stepping engine's results bit for bit, whatever traffic, rules and policy."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sim.engines import both, drive, engines, families, traffic

from fairq.sim.engine.call import Call
from fairq.sim.engine.jumping import Jumping
from fairq.sim.engine.run import EngineRun
from fairq.sim.engine.scenario import EngineScenario
from fairq.sim.engine.stepping import Stepping

ARENA = Path(__file__).parents[2] / "data" / "vtc_real_trace.csv"
PREDICTED = [f"vtc-predict:predictor={name}" for name in ("last5", "ema", "oracle", "oracle50,cost=a10g")]
POLICIES = ["fcfs", "vtc", "vtc:cost=a10g", "lcf", "rpm:limit=3", "sfq", "request-rr", "drr", "priority", *PREDICTED]


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(requests=traffic(), rules=engines())
def test_jumping_is_stepping(policy: str, requests: list[dict[str, Any]], rules: dict[str, Any]) -> None:
    step, jump = both(requests, policy, **rules)
    assert jump.jobs() == step.jobs()
    assert jump.counters == step.counters
    assert jump.digest == step.digest  # iterations and the clock too
    for run in (step, jump):  # everything was given back
        assert run.engine.free == run.engine.limits.blocks
        assert not run.engine.calls
        assert all(call.reason for call in run.calls)


@pytest.mark.parametrize("policy", ["fcfs", "vtc", "lpm", "dlpm:quantum=1", "dlpm:quantum=30", "lpm:fallback=3"])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), rules=engines(), several=st.sampled_from([1, 2, 4]))
def test_jumping_is_stepping_when_prompts_share_blocks(
    policy: str, data: st.DataObject, rules: dict[str, Any], several: int
) -> None:
    block = rules["block_tokens"] * (1 if rules["block_tokens"] == 16 else several)
    rules |= {"prefix_cache": True, "prefix_tokens": block, "pool_tokens": max(rules["pool_tokens"], 6 * block + 40)}
    calls = data.draw(families(block))
    told = []
    for kind in (Stepping, Jumping):
        own = [Call(call.job, call.cancel_at) for call in calls]
        one = drive(kind, policy, own, rules)
        told.append([(c.admitted, c.first, c.finish, c.produced, c.cached, c.preemptions) for c in own])
        told.append([one.iterations, one.clock, one.policy.show()])
        assert one.cache is not None
        one.cache.validate()
        assert one.cache.held == 0
        assert one.free == one.limits.blocks
    assert told[:2] == told[2:]


def test_a_blocked_head_is_overtaken_while_counters_move() -> None:
    """A is first and does not fit; while its requests run its counter passes B's, whose request does fit, long before
    any request ends. An engine that jumps to the next end without asking the policy admits B too late."""
    requests = [
        {"client": "A", "at": 0, "prompt": 5, "output": 60, "count": 2},
        {"client": "B", "at": 0, "prompt": 30, "output": 60},
        {"client": "A", "at": 5, "prompt": 80, "output": 5},
        {"client": "B", "at": 5, "prompt": 5, "output": 5},
    ]
    step, jump = both(requests, "vtc", pool_tokens=250, reserve="limit")
    first_a, _, _, second_a, second_b = step.calls
    assert second_b.admitted is not None
    assert first_a.finish is not None
    assert 6 * 10**9 < second_b.admitted < first_a.finish == second_a.admitted
    assert jump.digest == step.digest


@pytest.mark.parametrize("policy", ["fcfs", "vtc", "vtc-predict:predictor=ema", "equinox", "dlpm", "attained-service"])
@pytest.mark.parametrize(
    "keys", [{}, {"reserve": "prompt", "block_tokens": 16}, {"reserve": "limit", "prefill": "chunked"}], ids=str
)
def test_they_agree_on_the_arena_trace(policy: str, keys: dict[str, Any]) -> None:
    """27 clients, a pool of 10,000 tokens that is always full."""
    told = []
    for kind in ("step", "jump"):
        given = {"trace": ARENA, "first": 200, "speed": 3, "engine": kind}
        told.append(EngineRun(EngineScenario.model_validate(given | keys), policy).digest)
    assert told[0] == told[1]
