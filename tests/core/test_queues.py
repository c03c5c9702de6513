"""The FIFO of a flow when jobs leave from anywhere in it."""

from hypothesis import given
from hypothesis import strategies as st
from tests.core.layers import bound

from fairq.core.job import Job
from fairq.core.policy import ROOMY, Pick
from fairq.policies.fcfs import FCFS


def waits(policy: FCFS) -> list[str]:
    """In the order in which they would be served, from a copy."""
    jobs = {job.id: job for queue in policy.queues.values() for job in queue}
    copy = bound(FCFS())
    copy.restore(policy.state(), jobs)
    order = []
    while isinstance(decision := copy.select(0, ROOMY), Pick):
        copy.commit(decision, 0)
        copy.charge(decision.job, 1, 0)
        order.append(decision.job.id)
    return order


@given(st.lists(st.tuples(st.sampled_from(["arrive", "cancel", "serve"]), st.sampled_from("AB"), st.integers(0, 30))))
def test_jobs_are_served_in_order_of_arrival_whoever_leaves_in_between(steps: list[tuple[str, str, int]]) -> None:
    """Names come back: a client may use the id of a request that it has cancelled for its next one."""
    policy = bound(FCFS())
    model: list[Job] = []
    for seq, (what, flow, number) in enumerate(steps):
        if what == "arrive":
            job = Job(id=f"{flow}{number % 7}", flow=flow, seq=seq)
            if all(job.id != other.id for other in model):
                model.append(job)
                policy.arrive(job, 0)
        elif what == "cancel" and model:
            policy.cancel(model.pop(number % len(model)), 0)
        elif what == "serve" and model:
            decision = policy.select(0, ROOMY)
            assert isinstance(decision, Pick)
            assert decision.job is model.pop(0)
            policy.commit(decision, 0)
            policy.charge(decision.job, 1, 0)
        policy.validate()
        assert policy.waiting() == len(model)
        assert waits(policy) == [job.id for job in model]


def test_cancelled_jobs_inside_a_queue_do_not_pile_up() -> None:
    """A paused flow whose clients come and go for ever, behind one that stays."""
    policy = bound(FCFS())
    policy.flow_open("A", False, 0)
    policy.arrive(Job(id="stays", flow="A"), 0)
    for number in range(10_000):
        job = Job(id=str(number), flow="A", seq=number)
        policy.arrive(job, 0)
        policy.cancel(job, 0)
        assert len(policy.queues["A"]) <= 2 + 66
    assert waits(policy) == []
    policy.flow_open("A", True, 0)
    assert waits(policy) == ["stays"]
