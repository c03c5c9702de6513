"""What the audit says of fairness: of SFQ, of policies that promise none, and of one that lies."""

from fractions import Fraction
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.bad.banking_sfq import BankingSFQ
from tests.ledger.recording import FAR, Recording, audit, check_of, replay, violated, write_segment

from fairq.core import events as ev
from fairq.core.job import Flow
from fairq.core.lifecycle import Outcome
from fairq.core.lines import encode
from fairq.core.setup import Setup
from fairq.ledger.heaviest import charges
from fairq.ledger.segment import Opened


def skewed(policy: str) -> Recording:
    """A sends 50 units for each 2 that B sends, request by request: a queue in front of one slot."""
    run = Recording(Setup(policy=policy, wait_for_upstream=FAR))
    for _ in range(100):
        run.admit("A", 50)
        run.admit("B", 2)
    run.upstream(1)
    for _ in range(100):
        run.now += 1
        run.finish(run.running()[0])
    return run


def test_first_come_first_served_shows_a_several_fold_gap(tmp_path: Path) -> None:
    report = audit(skewed("fcfs").save(tmp_path / "pool"))
    pairs = check_of(report, "pairs")
    assert report.ok  # it never promised more
    assert not pairs.promised
    assert pairs.violations > 0
    assert pairs.worst is not None
    assert pairs.limit == 2 * 50
    assert pairs.worst > 20 * pairs.limit  # 50 of each: 48 units apart every time
    (pair,) = report.pairs
    one, other = pair.charged
    assert one == 25 * other or one == 25 * other + 50


def test_sfq_on_the_same_load_is_even(tmp_path: Path) -> None:
    report = audit(skewed("sfq").save(tmp_path / "pool"))
    assert violated(report) == set()
    (pair,) = report.pairs
    one, other = pair.charged
    assert abs(one - other) <= 2 * 50
    assert min(one, other) > 100


def test_weights_divide_what_is_normalized(tmp_path: Path) -> None:
    flows = [Flow(id="A", weight=Fraction(3)), Flow(id="B")]
    run = Recording(Setup(flows=flows, wait_for_upstream=FAR))
    for _ in range(200):
        run.admit("A", 6)
        run.admit("B", 6)
    run.upstream(1)
    for _ in range(200):
        run.finish(run.running()[0])
    report = audit(run.save(tmp_path / "pool"))
    assert violated(report) == set()
    served = charges(tmp_path / "pool")
    assert served["A"] + served["B"] == 201 * 6
    assert abs(served["A"] / 3 - served["B"]) <= 2 * 6


def test_the_bound_needs_the_largest_cost_of_the_whole_busy_period(tmp_path: Path) -> None:
    """The debt example: A was charged 100 before the interval, so B gets 100 inside it, one by one."""
    run = Recording(Setup(wait_for_upstream=FAR))
    run.admit("A", 100)
    for _ in range(150):
        run.admit("B", 1)
    run.upstream(1)
    run.admit("A", 1)
    head, start = replace(run.make_head(), opened=Opened.ROTATED), len(run.lines)
    for _ in range(120):
        run.finish(run.running()[0])
    whole = audit(run.save(tmp_path / "whole"))
    assert violated(whole) == set()
    # Only what comes after A's large request: the head still tells that somebody is 100 ahead.
    later = write_segment(tmp_path / "later", 1, [encode(head) + b"\n", *run.lines[start:]])
    report = audit(later)
    assert violated(report) == set()
    pairs = check_of(report, "pairs")
    assert pairs.worst == 100  # while the largest cost inside is 1
    assert pairs.limit == 200


def test_idle_time_that_is_banked_breaks_every_bound(tmp_path: Path) -> None:
    run = Recording(Setup(wait_for_upstream=FAR), lambda spec: BankingSFQ())
    run.admit("B", 1)
    for _ in range(200):
        run.admit("A", 10)
    run.upstream(1)
    for _ in range(100):
        run.finish(run.running()[0])
    for _ in range(90):
        run.admit("B", 10)  # it was away for 100 requests, and now takes all of them back
    for _ in range(80):
        run.finish(run.running()[0])
    path = run.save(tmp_path / "pool")
    report = audit(path)
    assert violated(report) >= {"least meter first", "band", "pairs"}
    assert not replay(path).identical  # the registered sfq decides otherwise
    assert replay(path, make_policy=lambda spec: BankingSFQ()).identical


def test_intervals_are_cut_where_a_weight_changes(tmp_path: Path) -> None:
    """A's weight goes from 1 to 9. Over the whole time normalized service is not comparable; on each side it is."""
    run = Recording(Setup(flows=[Flow(id="A"), Flow(id="B")], wait_for_upstream=FAR))
    for _ in range(200):
        run.admit("A", 9)
        run.admit("B", 9)
    run.upstream(1)
    for step in range(200):
        if step == 100:
            flows = [Flow(id="A", weight=Fraction(9)), Flow(id="B")]
            cost = run.setup.cost
            run.emit(ev.Reconfigured, flows=flows, default_flow=Flow(id=""), wait_for_upstream=FAR, cost=cost)
        run.now += 1
        run.finish(run.running()[0])
    report = audit(run.save(tmp_path / "pool"))
    assert violated(report) == set()
    assert run.order[:100].count("A") == 50
    assert abs(run.order[101:].count("A") - 90) <= 1


@pytest.mark.parametrize(("cause", "reason"), [("paused", "paused or capped"), ("dark", "no usable upstream")])
def test_waiting_for_another_reason_is_named(tmp_path: Path, cause: str, reason: str) -> None:
    run = Recording(Setup(wait_for_upstream=FAR))
    if cause == "paused":
        run.upstream(1)
        run.emit(ev.Paused, tenant="A")
    else:
        run.upstream(1, healthy=False)
    run.admit("A", 1)
    run.emit(ev.Tick)
    report = audit(run.save(tmp_path / "pool"))
    assert violated(report) == set()
    assert report.idle == {reason: 1}  # behind the Admitted; behind the last event nothing can be said yet


def test_a_head_that_may_be_retried_elsewhere_is_not_left_alone(tmp_path: Path) -> None:
    run = Recording(Setup(wait_for_upstream=FAR))
    run.upstream(1, "u")
    run.upstream(1, "v")
    run.admit("A", 1)
    run.emit(ev.AttemptFailed, id="A1", outcome=Outcome.FAILED_CONNECT)
    run.emit(ev.Tick)
    path = run.save(tmp_path / "pool")
    assert violated(audit(path)) == set()
    lines = [line for line in run.lines if b'"attempt":2' not in line]
    assert len(lines) == len(run.lines) - 1
    write_segment(path, 1, [encode(run.head) + b"\n", *lines])
    assert violated(audit(path)) == {"work conservation"}


def test_forward_settlement_charges_what_was_used(tmp_path: Path) -> None:
    """A uses ten times what is estimated. Its charges follow, one request late; the audit rebuilds the carry."""
    setup = Setup(settlement="forward", wait_for_upstream=FAR)
    run = Recording(replace(setup, cost=replace(setup.cost, alpha=Fraction(1), beta=Fraction(1), default_output=10)))
    for _ in range(150):
        run.admit("A", input_bytes=40, output_limit=10)
        run.admit("B", input_bytes=40, output_limit=10)
    run.upstream(1)
    for _ in range(200):
        id_ = run.running()[0]
        run.finish(id_, prompt=10, completion=190 if id_.startswith("A") else 10)
    path = run.save(tmp_path / "pool")
    report = audit(path)
    assert violated(report) == set()
    (pair,) = report.pairs
    one, other = pair.actual
    assert abs(one - other) <= 2 * 200 + (200 + 2 * 20) * 2  # 2q, and what was under way: design section 5
    assert report.largest_carry >= 180
    (segment,) = path.glob("*.jsonl")
    lines = segment.read_bytes().splitlines(keepends=True)
    at = max(i for i, line in enumerate(lines) if b'"is":"Dispatch"' in line and b'"charge":200' in line)
    lines[at] = lines[at].replace(b'"charge":200', b'"charge":20')
    segment.write_bytes(b"".join(lines))
    assert "charges" in violated(audit(path))


def test_beyond_the_limit_the_heaviest_tenants_are_compared_and_said_so(tmp_path: Path) -> None:
    run = Recording(Setup(wait_for_upstream=FAR))
    for number in range(30):
        for _ in range(3):
            run.admit(f"t{number:02}", 1 + number)
    run.upstream(1)
    for _ in range(80):
        run.finish(run.running()[0])
    path = run.save(tmp_path / "pool")
    heavy = [name for name, _ in charges(path).most_common(4)]
    report = audit(path, pairs=4, only=heavy)
    assert violated(report) == set()
    assert report.watched == sorted(heavy)
    assert len(report.pairs) == 6
    assert report.unwatched_decisions == 81 - sum(run.order.count(name) for name in heavy)
