"""Deficit round robin visit by visit, and with quanta of any size."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fairq.core.job import Flow, Job
from fairq.core.policy import ROOMY, Layer, Need, Pick
from fairq.policies.drr import DRR


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.lists(st.integers(1, 9), min_size=30, max_size=30), min_size=2, max_size=4),
    quantum=st.integers(1, 12),
)
def test_after_m_visits_a_backlogged_flow_has_sent_m_quanta_to_within_a_packet(
    sizes: list[list[int]], quantum: int
) -> None:
    """Lemma 2. All flows are backlogged, so the ring keeps its order and visit n is of flow n modulo their number."""
    policy = DRR(quantum=quantum)
    policy.bind(Layer(name="test", provides=frozenset({Need.SIZE})))
    flows = "abcd"[: len(sizes)]
    for flow, queue in zip(flows, sizes, strict=True):
        policy.flow_changed(Flow(id=flow), 0)
        for number, size in enumerate(queue):
            policy.arrive(Job(id=f"{flow}{number}", flow=flow, size=size), 0)
    left, given = dict.fromkeys(flows, 30), dict.fromkeys(flows, 0)
    visit = 0
    while min(left.values()) > 1:
        decision = policy.select(0, ROOMY)
        assert isinstance(decision, Pick)
        job = decision.job
        policy.commit(decision, 0)
        policy.charge(job, job.size or 0, 0)
        visit += int(decision.why.values["visits"])
        assert job.flow == flows[visit % len(flows)]
        given[job.flow] += job.size or 0
        left[job.flow] -= 1
        for place, flow in enumerate(flows):
            visits = visit // len(flows) + (place <= visit % len(flows))
            ended = visits - (flow == job.flow)  # the visit under way may still send
            assert ended * quantum - 9 <= given[flow] <= visits * quantum
            assert policy.ring.key[flow] >= 0
            assert policy.ring.key[flow] < 9 or flow == job.flow


def test_a_quantum_of_one_does_not_walk_a_million_rounds() -> None:
    """The nearest head needs 999,999 more rounds; `select` finds that in one."""
    policy = DRR(quantum=1)
    policy.bind(Layer(name="test", provides=frozenset({Need.SIZE})))
    for flow, size in (("A", 2_000_000), ("B", 1_000_000)):
        policy.flow_changed(Flow(id=flow), 0)
        policy.arrive(Job(id=flow, flow=flow, size=size), 0)
    decision = policy.select(0, ROOMY)
    assert isinstance(decision, Pick)
    assert decision.job.flow == "B"
    policy.commit(decision, 0)
    assert policy.ring.key == {"A": 1_000_000}
