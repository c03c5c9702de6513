"""A scheduler restored from its state has the same future, byte for byte; and tags may be shifted at any time."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.pool import Pool, scheduler
from tests.core.traffic import BIG, Traffic, pairs

from fairq.core import meters, snapshot
from fairq.core.lines import decode, encode

POLICIES = ["sfq", "sfq:credit=30", "request-rr", "shortest", "fcfs"]
some_traffic = st.lists(st.tuples(st.integers(0, 99), st.integers(0, BIG - 1)), max_size=60)


def played(traffic: list[tuple[int, int]], **terms: str) -> Pool:
    pool = Pool({"u1": 2, "u2": 1}, validate=False, **terms)
    play = Traffic(pool).play
    for kind, number in traffic:
        play(kind, number)
    return pool


@pytest.mark.parametrize("settlement", ["fixed", "forward"])
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=15, deadline=None)
@given(traffic=some_traffic, share=st.floats(0, 1))
def test_saving_and_loading_at_any_point_changes_no_future(
    policy: str, settlement: str, traffic: list[tuple[int, int]], share: float
) -> None:
    """The events cross as ledger lines, the state as JSON, as in a segment."""
    events = [decode(encode(event)) for event in played(traffic, policy=policy, settlement=settlement).events]
    cut = int(share * len(events))
    one = scheduler(Pool({}, policy=policy, settlement=settlement).setup)
    for event in events[:cut]:
        one.handle(event)
    state = msgspec.json.decode(encode(snapshot.save(one)))
    other = scheduler(one.setup)
    snapshot.load(other, state)
    snapshot.validate(other)
    assert encode(snapshot.save(other)) == encode(state)
    for event in events[cut:]:
        assert list(map(encode, other.handle(event))) == list(map(encode, one.handle(event)))
        assert other.next_deadline() == one.next_deadline()
    assert encode(snapshot.save(other)) == encode(snapshot.save(one))


@pytest.mark.parametrize("policy", ["sfq", "sfq:credit=3000"])
@pytest.mark.parametrize("settlement", ["fixed", "forward"])
def test_rebasing_and_sweeping_change_no_decision(
    policy: str, settlement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tags that are shifted at nearly every dispatch, against tags that never are: the same orders and charges."""
    runs = []
    for rebase_at, keep in ((1 << 21, 0), (1 << 200, 1 << 60)):
        monkeypatch.setattr(meters, "REBASE_AT", rebase_at)
        monkeypatch.setattr(meters, "KEEP", keep)
        pool = played(list(pairs(11, 6000)), policy=policy, settlement=settlement)
        shown = [(one.id, one.upstream, one.charge, one.attempt) for one in pool.orders]
        leads = [one.why.values["meter"] - one.why.values["virtual_time"] for one in pool.orders]  # type: ignore[operator]
        runs.append((shown, leads))
        assert len(shown) > 1000
    assert runs[0] == runs[1]


def test_integer_tags_decide_as_exact_ones_where_charges_divide_by_weights() -> None:
    """The grid of 2**-20 and its rounding are invisible when no charge is rounded."""
    from fractions import Fraction

    from fairq.core.job import Flow, Job
    from fairq.core.number import exact, fixed
    from fairq.core.policy import ROOMY, Layer, Need, Pick
    from fairq.policies.sfq import SFQ

    orders = []
    for normalize, rebase in ((exact, False), (fixed, True)):
        policy = SFQ()
        policy.bind(Layer(name="test", provides=frozenset(Need), normalize=normalize, rebase=rebase))
        for name, weight in (("A", 1), ("B", 2), ("C", 4)):
            policy.flow_changed(Flow(id=name, weight=Fraction(weight)), 0)
        order = ""
        for count, (kind, number) in enumerate(pairs(5, 20_000)):
            if kind < 52:
                policy.arrive(Job(id=str(count), flow="ABC"[number % 3], seq=count, size=4 * (number % 50 + 1)), 0)
            elif isinstance(decision := policy.select(0, ROOMY), Pick):
                policy.commit(decision, 0)
                policy.charge(decision.job, decision.job.size or 0, 0)
                order += decision.job.flow
        orders.append(order)
    assert len(orders[0]) > 9_000
    assert orders[0] == orders[1]
