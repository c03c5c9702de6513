"""Whatever happens, in whatever order: decisions replay byte for byte, and every promise is kept."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.ledger.recording import audit, check_of, replay, violated, write_segment
from tests.ledger.traffic import Traffic, setup

STEPS = 200
BOUNDED = settings(
    max_examples=5,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),  # a smaller seed is not a simpler run
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def recorded(folder: Path, traffic: Traffic, every: int, steps: int = STEPS) -> Path:
    for step in range(steps):
        traffic.step()
        if step % every == every - 1:
            traffic.rotate()
    for segment in folder.glob("*.jsonl"):
        segment.unlink()
    for number, lines in enumerate(traffic.end(), 1):
        write_segment(folder, number, lines)
    return folder


@pytest.mark.parametrize(
    "policy", ["sfq", "sfq:credit=300", "fcfs", "request-rr", "shortest", "scfq", "drr:quantum=90", "hierarchical"]
)
@pytest.mark.parametrize("settlement", ["fixed", "forward"])
@BOUNDED
@given(seed=st.integers(0, 2**32), every=st.integers(1, 120))
def test_any_traffic_replays_and_audits_clean(
    tmp_path: Path, policy: str, settlement: str, seed: int, every: int
) -> None:
    path = recorded(tmp_path / "pool", Traffic(seed, setup(policy, settlement)), every)
    result = replay(path)
    assert result.difference is None
    assert result.joints == STEPS // every == result.segments - 1
    report = audit(path)
    assert violated(report) == set(), [check.first for check in report.checks if not check.ok]
    assert report.admitted == sum(report.outcomes.values()) + report.living
    assert report.notes == []


@pytest.mark.slow
def test_ten_thousand_decisions_stay_in_the_band(tmp_path: Path) -> None:
    path = recorded(tmp_path / "pool", Traffic(7, setup("sfq", "forward")), every=6000, steps=26_000)
    report = audit(path)
    assert report.decisions >= 10_000
    assert violated(report) == set()
    band, pairs = check_of(report, "band"), check_of(report, "pairs")
    assert band.worst is not None
    assert band.limit is not None
    assert 0 < band.worst <= band.limit
    assert pairs.held > 10_000
