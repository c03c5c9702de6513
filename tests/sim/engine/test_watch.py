"""What a run watches against the same counted at every iteration, and what it says where a bound is not promised."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sim.engines import CLIENTS, engine, engines, families, traffic

from fairq.core.job import Generation
from fairq.core.number import Number
from fairq.policies.dlpm import DLPM
from fairq.policies.vtc import VTC
from fairq.sim.engine.bounds import MOST_PAIRED, Bound
from fairq.sim.engine.call import Call
from fairq.sim.engine.cost import Cost, Limits
from fairq.sim.engine.jumping import Jumping
from fairq.sim.engine.run import EngineRun, bind, parts_of
from fairq.sim.engine.stepping import Stepping
from fairq.sim.engine.watch import Watch

QUICK = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
ROOM = Limits(pool_tokens=150, block_tokens=1, max_sequences=8, step_tokens=64, reserve="limit")


def named(run: EngineRun) -> Mapping[str, Bound]:
    return {bound.name: bound for bound in run.bounds}


@QUICK
@given(requests=traffic(most=60), rules=engines(), cost=st.sampled_from(["weights", "a10g"]))
def test_the_spread_is_that_of_all_counters_at_every_event(
    requests: list[dict[str, Any]], rules: dict[str, Any], cost: str
) -> None:
    """Also with weights and a general cost: nobody who is looked at late was the worst before."""
    run = engine(requests, f"vtc:cost={cost}", **rules | {"head": "stop"})
    calls, _ = run.scenario.calls()
    policy = VTC(cost=cost)
    one = Jumping(policy, run.scenario.limits(), run.scenario.cost_model())
    bind(policy, one, run.weights(), 0)
    worst: list[Fraction] = [Fraction(0)]

    def look() -> None:
        counters = [Fraction(policy.read(client)) for client in policy.backlogged()]
        if counters:
            worst.append(max(counters) - min(counters))

    one.watch = look
    one.add(calls)
    one.run()
    bound = named(run)["vtc-spread"]
    if bound.holds is not None:
        assert bound.worst == float(max(worst) / parts_of(run.weights()) / policy.h.scale)


@QUICK
@given(requests=traffic(most=60), rules=engines())
def test_every_bound_of_a_general_cost_holds(requests: list[dict[str, Any]], rules: dict[str, Any]) -> None:
    run = engine(requests, "vtc:cost=a10g", **rules | {"head": "stop"})
    assert len(run.bounds) == 4
    assert all(bound.holds or (run.engine.preemptions and bound.unless) for bound in run.bounds)


def waits(one: Stepping, calls: list[Call], input_: int, output: int) -> int:
    """The most that others were given while one of whom nothing ran waited for its first admission, token by token."""
    since: dict[str, int] = {}
    worst = 0

    def look() -> None:
        nonlocal worst
        given = dict.fromkeys(CLIENTS, 0)
        for call in calls:
            if call.admitted is not None:
                given[call.job.flow] += input_ * (call.prompt - call.cached) + output * call.produced
        waiting = {call.job.flow for call in one.calls.values() if call.admitted is None}
        inside = {call.job.flow for call in one.members.values()}
        for client in CLIENTS:
            others = sum(given.values()) - given[client]
            if client in waiting and client not in inside:
                worst = max(worst, others - since.setdefault(client, others))
            else:
                since.pop(client, None)

    one.watch = look
    one.add(calls)
    one.run()
    return worst


def both_waits(calls: list[Call]) -> tuple[int, Number]:
    """What others got while one waited: by the witness, iteration by iteration, and by the watch."""
    policies = VTC(), VTC()
    engines_ = Stepping(policies[0], ROOM, Cost(1, 0, 0, 0)), Jumping(policies[1], ROOM, Cost(1, 0, 0, 0))
    for policy, one in zip(policies, engines_, strict=True):
        bind(policy, one, dict.fromkeys(CLIENTS, Fraction(1)), 0)
    copies = [Call(call.job, call.cancel_at) for call in calls]
    seen = waits(engines_[0], calls, 1, 2)
    engines_[1].observer = watch = Watch(engines_[1], policies[1], CLIENTS)
    engines_[1].add(copies)
    engines_[1].run()
    return seen, watch.wait


@QUICK
@given(calls=families(block=4))
def test_what_others_get_before_a_newcomer_is_counted(calls: list[Call]) -> None:
    """The witness looks at iterations, the watch at admissions: those just before the newcomer's own are in it too."""
    at_one_time = ROOM.step_tokens + max(call.prompt for call in calls)
    seen, watched = both_waits(calls)
    assert seen <= watched <= seen + at_one_time


def test_what_others_get_after_ones_last_answer_has_ended_is_counted() -> None:
    """Prompts only, 8 at a time. Of C's two the second waits while the 8 of the second iteration are computed."""
    prompts = [("C", 9), *[("A", 1)] * 10, *[("B", 1)] * 5, ("C", 1)]
    jobs = [
        Generation(id=str(number), flow=client, seq=number, arrival=0, size=0, prompt=prompt, limit=1)
        for number, (client, prompt) in enumerate(prompts)
    ]
    assert both_waits([Call(job) for job in jobs]) == (8, 8)


@QUICK
@given(calls=families(block=4), quantum=st.sampled_from([1, 10, 60, 500]))
def test_quotas_are_those_of_every_iteration_or_between_them(calls: list[Call], quantum: int) -> None:
    """Lemma A.1. A refill and the admission after it happen between two looks; the watch sees the top of it."""
    found = []
    for observed in (False, True):
        policy = DLPM(quantum=quantum)
        one = Jumping(policy, ROOM, Cost(1, 0, 0, 0))
        bind(policy, one, dict.fromkeys(CLIENTS, Fraction(1)), 0)
        seen = [0]
        if observed:
            one.observer = watch = Watch(one, policy, CLIENTS)
        else:

            def look(policy: DLPM = policy, seen: list[int] = seen) -> None:
                seen.extend(policy.quota(client) for client in policy.used)

            one.watch = look
        one.add([Call(call.job, call.cancel_at) for call in calls])
        one.run()
        found.append((min(seen), max(seen)))
    quotas = watch.quotas
    assert quotas is not None
    assert quotas.low <= found[0][0]
    assert found[0][1] <= quotas.high <= quantum


@pytest.mark.parametrize("policy", ["vtc", "dlpm:quantum=100"])
def test_of_many_clients_the_pairs_that_ask_for_most_are_watched(policy: str) -> None:
    """And it is said how many; what needs no pairs is watched for all."""
    many = MOST_PAIRED + 8
    requests = [{"client": f"c{n}", "prompt": 4 + n, "output": 6, "count": 2} for n in range(many)]
    run = engine(requests, policy, pool_tokens=200, reserve="limit")
    kind = policy[: policy.find(":")] if ":" in policy else policy
    told = named(run)
    assert all(bound.holds for bound in told.values())
    among = {name: bound.among for name, bound in told.items()}
    assert (among[f"{kind}-gap"], among[f"{kind}-behind"], among[f"{kind}-wait"]) == (MOST_PAIRED, MOST_PAIRED, None)
    assert (told[f"{kind}-wait"].limit or 0) / (told[f"{kind}-behind"].limit or 1) == many - 1


def test_where_nothing_is_promised_every_bound_says_why() -> None:
    requests = [{"client": name, "prompt": 8, "output": 30, "count": 9} for name in "AB"]
    names = ["vtc-spread", "vtc-gap", "vtc-behind", "vtc-wait"]
    for policy in ("vtc", "vtc:cost=a10g"):
        for keys, why in (
            ({"reserve": "prompt", "pool_tokens": 60}, "requests were preempted"),
            ({"head": "skip"}, "a head that does not fit is passed over"),
        ):
            run = engine(requests, policy, **keys)
            assert [bound.name for bound in run.bounds] == names
            assert {(bound.holds, bound.worst, bound.unless) for bound in run.bounds} == {(None, None, why)}


def test_what_input_that_costs_more_than_output_can_come_to_is_in_the_limit() -> None:
    """w_p = 3, w_q = 1, 100 tokens of cache, prompts of 50: a batch costs up to 3 * 50 + 50."""
    run = engine([{"client": "A", "prompt": 50, "output": 9}], "vtc:input=3,output=1", pool_tokens=100, reserve="limit")
    assert named(run)["vtc-spread"].limit == 3 * 50 + 50
