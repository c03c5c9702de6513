"""Equinox has no published formula to test against: what any reading of it must do."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.sim.engines import engine, traffic

from fairq.measure.fairness import jain
from fairq.policies import POLICIES
from fairq.policies.equinox import Equinox
from fairq.sim.engine.run import EngineRun
from fairq.sim.engine.scenario import EngineScenario

ARENA = Path(__file__).parents[2] / "data" / "vtc_real_trace.csv"
QUICK = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


class ByName(Equinox):
    def first(self) -> tuple[Any, str] | None:
        return min(((self.read(flow), flow) for flow in self.ranking), default=None)


@QUICK
@given(requests=traffic())
def test_without_latency_and_resources_it_is_vtc_with_prediction(requests: list[dict[str, Any]]) -> None:
    """Equal counters are its own to break, by who has waited longer; here as VTC does, by name."""
    plain = "equinox:alpha=1,beta=0,delta=0,output=2"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(POLICIES, "equinox", ByName)
        admitted = [call.admitted for call in engine(requests, plain).calls]
    assert admitted == [call.admitted for call in engine(requests, "vtc-predict").calls]


@QUICK
@given(requests=traffic())
def test_scaling_all_counters_leaves_the_decisions(requests: list[dict[str, Any]]) -> None:
    one, half = (engine(requests, f"equinox:alpha={alpha},beta=0,delta=0") for alpha in ("1", "1/2"))
    assert [call.admitted for call in one.calls] == [call.admitted for call in half.calls]


def test_among_equal_scores_who_has_waited_longer_goes_first() -> None:
    """B and A are both lifted to C's counter; B came first."""
    requests = [
        {"client": "C", "prompt": 10, "output": 10, "count": 2},
        {"client": "B", "at": 1, "prompt": 10, "output": 10},
        {"client": "A", "at": 2, "prompt": 10, "output": 10},
    ]
    admitted = {call.job.flow: call.admitted or 0 for call in engine(requests, "equinox", max_sequences=1).calls}
    assert admitted["B"] < admitted["A"]


def test_late_service_counts_less() -> None:
    requests = [{"client": name, "prompt": 10, "output": 10} for name in "AB"]
    found = engine(requests, "equinox:beta=0", max_sequences=1).counters
    assert Fraction(found["B"]) < Fraction(found["A"])  # served after ten seconds of waiting


def test_with_perfect_prediction_it_is_about_as_fair_as_vtc_on_the_arena_trace() -> None:
    """Jain's index of the clients' service in the first 300 s, when the engine is overloaded."""
    scenario = EngineScenario.model_validate({"trace": ARENA, "first": 750})

    def index(policy: str) -> float:
        rates = EngineRun(scenario, policy).service.rates()
        found = jain([sum(row) for row in rates.values()])
        assert found is not None
        return float(found)

    assert index("equinox:predictor=oracle") >= index("vtc") - 0.05
