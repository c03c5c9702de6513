"""A new run takes over what the last one had learnt of its tenants' requests, and nothing else."""

import json
from pathlib import Path

import pytest
from tests.ledger.recording import write_segment
from tests.ledger.traffic import Traffic, setup

from fairq.core.estimator import Estimator
from fairq.ledger.estimates import last_estimator


@pytest.mark.parametrize("seed", range(4))
def test_what_was_learnt_is_read_back_exactly(tmp_path: Path, seed: int) -> None:
    traffic = Traffic(seed, setup("sfq", "forward"))
    for step in range(400):
        traffic.step()
        if step % 150 == 149:
            traffic.rotate()
    for number, lines in enumerate(traffic.end(), 1):
        write_segment(tmp_path / "pool", number, lines)
    estimator = traffic.scheduler.estimator
    assert len(estimator.state()[1]) > 3
    assert plain(last_estimator(tmp_path / "pool")) == plain(estimator)


def test_a_segment_that_a_crash_left_empty_or_torn_is_no_memory_loss(tmp_path: Path) -> None:
    traffic = Traffic(1, setup())
    for _ in range(100):
        traffic.step()
    folder = write_segment(tmp_path / "pool", 1, [*traffic.end()[0], b'{"is":"Admit'])
    write_segment(folder, 2, [b'{"is":"Head","for'])
    write_segment(folder, 3, [])
    assert plain(last_estimator(folder)) == plain(traffic.scheduler.estimator)


def test_a_first_run_knows_nothing(tmp_path: Path) -> None:
    assert last_estimator(tmp_path / "nowhere") is None
    assert last_estimator(tmp_path) is None


def plain(estimator: Estimator | None) -> object:
    assert estimator is not None
    return json.loads(json.dumps(estimator.state()))
