"""VTC: theorems on random runs, corner cases of Algorithm 2, pairs recorded from the authors' artifact."""

from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.bad import engine as bad
from tests.sim.engines import engine, engines, traffic

from fairq.core.job import Generation
from fairq.core.policy import Policy
from fairq.policies import make
from fairq.policies.lcf import LCF
from fairq.policies.vtc import VTC
from fairq.sim.engine.call import Call
from fairq.sim.engine.cost import Cost, Limits
from fairq.sim.engine.jumping import Jumping
from fairq.sim.engine.run import bind
from fairq.sim.engine.stepping import Stepping
from fairq.sim.engine.watch import Watch

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


class Witness:
    """True service of every client at every iteration of a run, counted token by token from the requests themselves."""

    def __init__(self, policy: Policy, calls: list[Call], limits: Limits) -> None:
        self.calls, self.policy = calls, policy
        self.clients = sorted({call.job.flow for call in calls})
        self.engine = Stepping(policy, limits, Cost(1, 0, 0, 0))
        bind(policy, self.engine, dict.fromkeys(self.clients, Fraction(1)), 0)
        self.engine.add(calls)
        self.engine.watch = self.look
        self.gap = 0  # the largest |W_f - W_g| over an interval in which both have queued requests
        self.behind = 0  # the largest W_g - W_f over one in which f has
        self._pairs: dict[tuple[str, str], tuple[int, int]] = {}
        self._alone: dict[tuple[str, str], int] = {}
        self.engine.run()

    def served(self) -> dict[str, int]:
        served = dict.fromkeys(self.clients, 0)
        for call in self.calls:
            if call.admitted is not None:
                served[call.job.flow] += call.prompt + 2 * call.produced
        return served

    def look(self) -> None:
        served, waiting = self.served(), set(self.policy.backlogged())
        pairs, alone = {}, {}
        for f, g in combinations(self.clients, 2):
            apart = served[f] - served[g]
            if {f, g} <= waiting:
                least, most = self._pairs.get((f, g), (apart, apart))
                pairs[f, g] = min(least, apart), max(most, apart)
                self.gap = max(self.gap, max(most, apart) - min(least, apart))
            for one, other, ahead in ((f, g, -apart), (g, f, apart)):
                if one in waiting:
                    alone[one, other] = least = min(self._alone.get((one, other), ahead), ahead)
                    self.behind = max(self.behind, ahead - least)
        self._pairs, self._alone = pairs, alone


def as_calls(requests: list[tuple[str, int, int, int]]) -> list[Call]:
    """(client, arrival, prompt, output)"""
    ordered = sorted(requests, key=lambda one: one[1])
    return [
        Call(Generation(id=str(i), flow=client, seq=i, arrival=at, size=output, prompt=prompt, limit=max(output, 1)))
        for i, (client, at, prompt, output) in enumerate(ordered)
    ]


requests_ = st.lists(
    st.tuples(st.sampled_from("ABC"), st.integers(0, 60), st.integers(1, 20), st.integers(0, 20)),
    min_size=5,
    max_size=50,
)
ORCA = Limits(pool_tokens=60, block_tokens=1, max_sequences=8, step_tokens=64, reserve="limit")
U = max(1 * 20, 2 * 60)


# Theorems
@QUICK
@given(requests=traffic(most=60), rules=engines())
def test_counters_of_queued_clients_are_within_u_and_service_within_2u(
    requests: list[dict[str, Any]], rules: dict[str, Any]
) -> None:
    """Lemma 4.3 and theorem 4.4, by the run's own watch: one engine, nobody preempted, nobody passed over."""
    run = engine(requests, "vtc", **rules | {"head": "stop"})
    for bound in run.bounds:
        assert bound.holds or (bound.unless and run.engine.preemptions)


@QUICK
@given(requests=requests_)
def test_true_service_obeys_theorems_4_4_and_4_9(requests: list[tuple[str, int, int, int]]) -> None:
    seen = Witness(VTC(), as_calls(requests), ORCA)
    assert seen.gap <= 2 * U
    assert seen.behind <= 4 * U


@QUICK
@given(requests=requests_)
def test_a_run_watches_what_the_witness_sees(requests: list[tuple[str, int, int, int]]) -> None:
    """The watch reads counters, less their lifts; the witness counts tokens."""
    seen = Witness(VTC(), as_calls(requests), ORCA)
    policy = VTC()
    one = Jumping(policy, ORCA, Cost(1, 0, 0, 0))
    bind(policy, one, dict.fromkeys("ABC", Fraction(1)), 0)
    one.observer = watch = Watch(one, policy, "ABC")
    one.add(as_calls(requests))
    one.run()
    assert (watch.pairs.gap, watch.pairs.behind) == (seen.gap, seen.behind)


@QUICK
@given(requests=requests_)
def test_a_counter_without_a_lift_is_the_true_service(requests: list[tuple[str, int, int, int]]) -> None:
    policy = LCF()
    seen = Witness(policy, as_calls(requests), ORCA)
    assert policy.show()["counters"] == seen.served()


def adversary(kind: str) -> list[tuple[str, int, int, int]]:
    """Traffic that breaks a policy which makes the mistake."""
    if kind == "returns":  # B works long alone, then A comes and wants the same
        return [("B", 0, 4, 8)] * 60 + [("A", 1, 4, 8)] + [("A", 120, 4, 8)] * 60 + [("B", 120, 4, 8)] * 60
    return [("A", 0, 1, 19)] * 60 + [("B", 0, 19, 1)] * 60


@pytest.mark.parametrize(
    ("policy", "kind"),
    [(bad.NeverLifts, "returns"), (bad.ForgetsOutputs, "lengths"), (LCF, "returns")],
)
def test_the_gap_bound_catches_bad_counting(policy: type[VTC], kind: str) -> None:
    assert Witness(policy(), as_calls(adversary(kind)), ORCA).gap > 2 * U
    assert Witness(VTC(), as_calls(adversary(kind)), ORCA).gap <= 2 * U


# Algorithm 2, corner by corner
def test_the_first_arrival_has_nothing_to_be_lifted_to() -> None:
    run = engine([{"client": "A", "prompt": 4, "output": 3}])
    assert run.counters == {"A": 4 + 2 * 3}


def test_two_newcomers_at_once_into_an_empty_queue_start_level() -> None:
    """C left the queue last, at 10; A and B are lifted to C's counter as it is then, though C's request still runs."""
    run = engine(
        [{"client": "C", "prompt": 10, "output": 20}]
        + [{"client": name, "at": 5, "prompt": 1, "output": 1} for name in "AB"]
    )
    at_5 = 10 + 2 * 5
    assert run.counters == {"A": at_5 + 3, "B": at_5 + 3, "C": 10 + 2 * 20}


def test_a_client_whose_requests_run_but_do_not_wait_is_lifted_when_it_comes_back() -> None:
    """A's first request runs all the time. Into an empty queue it is lifted to B, who was the last to leave it."""
    run = engine(
        [
            {"client": "A", "prompt": 1, "output": 30},
            {"client": "B", "at": 1, "prompt": 40, "output": 1},
            {"client": "A", "at": 5, "prompt": 1, "output": 1},
        ]
    )
    b = (1 + 2 * 1) + 40 + 2  # lifted to A's counter at 1, then its own
    ran = 2 * (30 - 5)
    assert run.counters == {"A": b + ran + 1 + 2, "B": b}


def test_nobody_is_lowered_and_who_left_last_is_not_lifted_to_itself() -> None:
    run = engine(
        [
            {"client": "A", "prompt": 40, "output": 2},
            {"client": "B", "at": 10, "prompt": 1, "output": 1},
            {"client": "A", "at": 20, "prompt": 1, "output": 1},
            {"client": "A", "at": 30, "prompt": 1, "output": 1},
        ]
    )
    assert run.counters == {"B": 44 + 3, "A": 44 + 3 + 3 + 3}


def test_ties_go_to_the_smaller_id() -> None:
    run = engine([{"client": name, "prompt": 5, "output": 5} for name in "CAB"], max_sequences=1)
    assert [call.job.flow for call in sorted(run.calls, key=lambda call: call.admitted or 0)] == ["A", "B", "C"]


def test_a_request_that_can_never_fit_is_turned_away_and_stops_nobody() -> None:
    run = engine(
        [{"client": "A", "prompt": 90, "output": 20}, {"client": "A", "prompt": 5, "output": 5}], pool_tokens=100
    )
    assert [call.reason for call in run.calls] == ["error", "stop"]
    assert run.counters == {"A": 5 + 2 * 5}


def test_an_empty_answer_costs_its_prompt_only() -> None:
    run = engine([{"client": "A", "prompt": 7, "output": 0}])
    assert run.counters == {"A": 7}
    assert run.calls[0].first is None
    assert run.calls[0].finish == 10**9


def test_a_head_that_does_not_fit_stops_everybody() -> None:
    """A is least and does not fit; B's request would, but waits."""
    requests = [
        {"client": "C", "prompt": 10, "output": 40},
        {"client": "A", "at": 1, "prompt": 40, "output": 5},
        {"client": "B", "at": 1, "prompt": 1, "output": 1},
    ]
    keys = {"pool_tokens": 80, "reserve": "limit"}
    stopped, skipped = (engine(requests, "vtc", head=head, **keys) for head in ("stop", "skip"))
    assert stopped.calls[2].admitted == stopped.calls[0].finish
    assert skipped.calls[2].admitted == 10**9


def test_cancelled_requests_are_charged_for_what_they_got() -> None:
    run = engine([{"client": "A", "prompt": 3, "output": 50, "cancel": "4.5"}])
    (call,) = run.calls
    assert (call.reason, call.produced, call.finish) == ("cancel", 5, 5 * 10**9)
    assert run.counters == {"A": 3 + 2 * 5}


def test_weights_divide_charges() -> None:
    requests = [{"client": name, "prompt": 4, "output": 6, "count": 40} for name in "AB"]
    run = engine(requests, "vtc", max_sequences=2, clients=[{"id": "A", "weight": 3}])
    done = [call.job.flow for call in sorted(run.calls, key=lambda call: call.admitted or 0)][:40]
    assert abs(done.count("A") - 30) <= 2


def test_the_general_cost_charges_each_token_at_its_own_price() -> None:
    """h(3, 0) at admission and h(3, n) - h(3, n-1) for the n-th token make h(3, 5) together."""

    def h(p: int, q: int) -> Fraction:
        once, p1, q1, pq, qq = map(Fraction, ("1.14601454", "0.21001891", "0.10075395", "0.0039868", "0.00324733"))
        return once + p1 * p + q1 * q + pq * p * q + qq * q * q

    run = engine([{"client": "A", "prompt": 3, "output": 5}], "vtc:cost=a10g")
    assert Fraction(run.counters["A"]) == h(3, 5)


def test_predicted_and_true_lengths_are_settled_when_a_request_ends() -> None:
    """Whatever was predicted, in the end a client has paid for the tokens it got."""
    requests = [
        {"client": name, "at": 3 * i, "prompt": 2 + i, "output": 1 + 5 * i % 17} for i in range(6) for name in "A"
    ]
    paid = sum(one["prompt"] + 2 * one["output"] for one in requests)  # type: ignore[operator]
    for predictor in ("last5", "ema", "oracle", "oracle50"):
        assert engine(requests, f"vtc-predict:predictor={predictor}").counters == {"A": paid}


# What the authors' artifact did, with unit decodes and prefill in no time
class UnitDecode(Cost):
    def duration(self, prefilled: int, batch: int, context: int, moved: int = 0) -> int:
        return 1 if batch else 0


def recorded(requests: list[tuple[str, int, int, int]], policy: str) -> list[Call]:
    calls = as_calls(requests)
    rules = {"block_tokens": 1, "prefill": "first", "admit_every": 1, "reserve": "peak"}
    one = Stepping(made := make(policy), Limits(pool_tokens=24, **rules), UnitDecode(1, 0, 0, 0))
    bind(made, one, {"A": Fraction(1), "B": Fraction(1)}, 0)
    one.add(calls)
    one.run()
    return calls


@pytest.mark.parametrize(
    ("policy", "admissions"),
    [
        ("fcfs", {0: [0, 1], 1: [2], 3: [3, 4], 4: [5], 6: [6, 7]}),
        ("vtc", {0: [0, 4], 1: [1], 3: [5, 6], 4: [2], 6: [3, 7]}),
        ("vtc-predict:predictor=oracle", {0: [0, 4], 1: [1], 3: [5, 2], 4: [6], 6: [3, 7]}),
    ],
)
def test_eight_equal_requests_are_admitted_as_recorded(policy: str, admissions: dict[int, list[int]]) -> None:
    calls = recorded([("A", 0, 4, 4)] * 4 + [("B", 0, 4, 4)] * 4, policy)
    found: dict[int, list[int]] = {}
    for call in sorted(calls, key=lambda call: call.order):
        found.setdefault(call.admitted or 0, []).append(int(call.job.id))
    assert {at: sorted(ids) for at, ids in found.items()} == {at: sorted(ids) for at, ids in admissions.items()}


def test_eight_equal_requests_cost_both_the_same() -> None:
    """True service is 48 each; the artifact's own counters say 54, since it charges running requests twice."""
    calls = recorded([("A", 0, 4, 4)] * 4 + [("B", 0, 4, 4)] * 4, "vtc")
    assert {name: sum(c.prompt + 2 * c.produced for c in calls if c.job.flow == name) for name in "AB"} == {
        "A": 48,
        "B": 48,
    }


@pytest.mark.parametrize(
    ("policy", "first_tokens"),
    [
        ("fcfs", [43, 49, 50, 56]),
        ("vtc", [28, 29, 42, 43]),
        ("lcf", [28, 29, 35, 36]),
        ("vtc-predict:predictor=oracle", [28, 35, 42, 49]),
        ("vtc-predict:predictor=ema", [28, 35, 42, 49]),
    ],
)
def test_a_client_that_returns_is_served_as_recorded(policy: str, first_tokens: list[int]) -> None:
    """A was there at the start and comes back at 25, while B's twelve requests are being served."""
    calls = recorded([("A", 0, 4, 8)] + [("B", 0, 4, 8)] * 12 + [("A", 25, 4, 8)] * 4, policy)
    assert [call.first for call in calls[-4:]] == first_tokens
