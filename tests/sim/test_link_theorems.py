"""What the papers prove of their schedulers, as properties over random traffic; and that wrong schedulers break it."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bad.link import HoardingDRR, PacketClockWFQ
from tests.oracle import FluidLink, JointService
from tests.sim.link_oracles import Packet, Sent, Weights
from tests.sim.links import BURST, PACKETS, RATES, SHARES, WEIGHTS, scenario, sent

from fairq.core.policy import Policy
from fairq.policies import POLICIES
from fairq.sim.link.run import LinkRun

Check = Callable[[Sequence[Packet], Weights, Fraction, Sent], bool]


def largest(packets: Sequence[Packet], flow: str | None = None) -> int:
    return max((size for _, owner, size in packets if flow in (None, owner)), default=0)


def no_later_than_the_fluid_by_more_than_a_packet(
    packets: Sequence[Packet], weights: Weights, rate: Fraction, done: Sent
) -> bool:
    """Parekh, Gallager, theorem 1: a packet leaves at most Lmax / r later than in GPS."""
    fluid = FluidLink(packets, weights, rate)
    return all(end - fluid.finish[index] <= largest(packets) / rate for index, _, end in done)


def service(packets: Sequence[Packet], rate: Fraction, done: Sent, flow: str, time: Fraction) -> Fraction:
    """What the packet system has sent of the flow until `time`, a part of the packet under way included."""
    parts = ((min(end, time) - start) * rate for index, start, end in done if packets[index][1] == flow)
    return sum((part for part in parts if part > 0), Fraction(0))


def never_behind_the_fluid_by_more_than_a_packet(
    packets: Sequence[Packet], weights: Weights, rate: Fraction, done: Sent
) -> bool:
    """Theorem 2: W_GPS - W_PGPS <= Lmax, at every moment; the difference is largest where a packet begins."""
    fluid = FluidLink(packets, weights, rate)
    return all(
        fluid.service(flow, start) - service(packets, rate, done, flow, start) <= largest(packets)
        for flow in weights
        for _, start, _ in done
    )


def never_ahead_of_the_fluid_by_a_packet(
    packets: Sequence[Packet], weights: Weights, rate: Fraction, done: Sent
) -> bool:
    """Bennett, Zhang, theorem 1: W_WF2Q - W_GPS <= (1 - r_i/r) L_i; largest where a packet of the flow ends."""
    fluid, total = FluidLink(packets, weights, rate), sum(map(Fraction, weights.values()))
    for index, _, end in done:
        flow = packets[index][1]
        ahead = service(packets, rate, done, flow, end) - fluid.service(flow, end)
        if ahead > (1 - Fraction(weights[flow]) / total) * largest(packets, flow):
            return False
    return True


def waits_no_longer_than_its_own_queue_explains(
    packets: Sequence[Packet], weights: Weights, rate: Fraction, done: Sent
) -> bool:
    """Worst-case fairness: d - a <= Q_i(a)/r_i + L_i/r_i - L_i/r + Lmax/r, Q_i(a) the flow's own queue at arrival."""
    total = sum(map(Fraction, weights.values()))
    ends = {index: (start, end) for index, start, end in done}
    for index, (arrival, flow, size) in enumerate(packets):
        own = rate * Fraction(weights[flow]) / total
        queue = Fraction(size)
        for before in range(index):
            if packets[before][1] == flow:
                start, end = ends[before]
                queue += packets[before][2] if start >= arrival else max(Fraction(0), (end - arrival) * rate)
        allowed = queue / own + largest(packets, flow) * (1 / own - 1 / rate) + largest(packets) / rate
        if ends[index][1] - arrival > allowed:
            return False
    return True


@pytest.mark.parametrize(
    ("spec", "check"),
    [
        ("wfq", no_later_than_the_fluid_by_more_than_a_packet),
        ("wfq", never_behind_the_fluid_by_more_than_a_packet),
        ("wf2q", no_later_than_the_fluid_by_more_than_a_packet),
        ("wf2q", never_behind_the_fluid_by_more_than_a_packet),
        ("wf2q", never_ahead_of_the_fluid_by_a_packet),
        ("wf2q", waits_no_longer_than_its_own_queue_explains),
    ],
)
@settings(max_examples=50, deadline=None)
@given(packets=PACKETS, weights=WEIGHTS, rate=RATES)
def test_bound(spec: str, check: Check, packets: list[Packet], weights: dict[str, Fraction], rate: Fraction) -> None:
    assert check(packets, weights, rate, sent(packets, weights, spec, rate=str(rate)))


def overload(seed: int) -> tuple[list[Packet], dict[str, Fraction]]:
    """150 packets of eight flows with weights 1 to 10, at one and a half times the rate."""
    random, now, packets = Random(seed), 0.0, []
    for _ in range(150):
        now += random.expovariate(1.5 / 5)
        packets.append((int(now), random.choice("abcdefgh"), random.randint(1, 9)))
    return packets, {flow: Fraction(random.choice([1, 4, 7, 10])) for flow in "abcdefgh"}


def with_policy(bad: type[Policy], packets: Sequence[Packet], weights: Weights, spec: str = "") -> Sent:
    """`bad` in the place of the policy whose name it has."""
    name = bad.name
    good, POLICIES[name] = POLICIES[name], bad
    try:
        return sent(packets, weights, spec or name)
    finally:
        POLICIES[name] = good


def test_wfq_with_the_clock_of_the_packet_system_is_late() -> None:
    in_time, check = [], no_later_than_the_fluid_by_more_than_a_packet
    for seed in range(5):
        packets, weights = overload(seed)
        assert check(packets, weights, Fraction(1), sent(packets, weights, "wfq"))
        done = with_policy(PacketClockWFQ, packets, weights)
        in_time.append(check(packets, weights, Fraction(1), done))
    assert not all(in_time)


def test_wfq_runs_far_ahead_of_the_fluid_where_wf2q_does_not() -> None:
    """The burst of the paper: by 10 the heavy flow has 10 packets, the fluid 5."""
    assert not never_ahead_of_the_fluid_by_a_packet(BURST, SHARES, Fraction(1), sent(BURST, SHARES, "wfq"))
    assert never_ahead_of_the_fluid_by_a_packet(BURST, SHARES, Fraction(1), sent(BURST, SHARES, "wf2q"))


def gap(packets: Sequence[Packet], weights: Weights, done: Sent, one: str, other: str) -> Fraction:
    """The largest difference of normalized service of two flows over any interval in which packets of both wait."""
    events = [(Fraction(arrival), 0, index) for index, (arrival, _, _) in enumerate(packets)]
    events += [(start, 1, index) for index, start, _ in done]
    waiting, joint = {one: 0, other: 0}, JointService()
    for _, begins, index in sorted(events):
        flow, size = packets[index][1:]
        if flow not in waiting:
            continue
        if begins:
            joint.served(flow, size / Fraction(weights[flow]))
            waiting[flow] -= 1
            if not waiting[flow]:
                joint.left(flow)
        else:
            if not waiting[flow]:
                joint.joined(flow)
            waiting[flow] += 1
    return Fraction(joint.widest)


PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]
STALLS = st.one_of(
    st.just({}),
    st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 99)).map(
        lambda drawn: {"random_stalls": {"every": drawn[0], "for": drawn[1]}, "seed": drawn[2]}
    ),
)


@pytest.mark.parametrize("spec", ["sfq", "scfq"])
@settings(max_examples=60, deadline=None)
@given(packets=PACKETS, weights=WEIGHTS, stalls=STALLS)
def test_service_differs_by_at_most_a_packet_of_each_whatever_the_link_does(
    spec: str, packets: list[Packet], weights: dict[str, Fraction], stalls: dict[str, Any]
) -> None:
    """Goyal, Vin, Cheng, theorem 1; Golestani, theorem 1: |W_f/w_f - W_m/w_m| <= l_f/w_f + l_m/w_m."""
    done = sent(packets, weights, spec, **stalls)
    for one, other in PAIRS:
        bound = largest(packets, one) / weights[one] + largest(packets, other) / weights[other]
        assert gap(packets, weights, done, one, other) <= bound


def test_wfq_loses_that_bound_on_a_link_that_stalls() -> None:
    """The fluid runs on while the link stands still: A's packets are all of the past when B comes, and go first."""
    packets: list[Packet] = [(0, "A", 1)] * 40 + [(41, "B", 1)] * 20
    weights = {"A": 1, "B": 1}
    stalls = {"stalls": [{"at": 1, "for": 40}]}
    assert gap(packets, weights, sent(packets, weights, "wfq", **stalls), "A", "B") >= 18
    assert gap(packets, weights, sent(packets, weights, "sfq", **stalls), "A", "B") <= 2


@settings(max_examples=60, deadline=None)
@given(packets=PACKETS, weights=WEIGHTS, quantum=st.sampled_from([1, 3, 9, 20]))
def test_drr_service_differs_by_at_most_a_quantum_and_two_packets(
    packets: list[Packet], weights: dict[str, Fraction], quantum: int
) -> None:
    """Shreedhar, Varghese, theorem 3: |W_i/f_i - W_j/f_j| <= Q + 2 Max, Q the least quantum, f_i = Q_i / Q."""
    done = sent(packets, weights, f"drr:quantum={quantum}")
    least = min(weights.values())
    shares = {flow: weight / least for flow, weight in weights.items()}
    for one, other in PAIRS:
        assert gap(packets, shares, done, one, other) <= quantum * least + 2 * largest(packets)


def test_drr_that_hoards_deficits_breaks_it() -> None:
    """B comes back with a packet at a time and leaves; each time it keeps what it had left."""
    packets: list[Packet] = sorted(
        [(0, "A", 9)] * 60 + [(at, "B", 1) for at in range(0, 270, 9)] + [(270, "B", 9)] * 40
    )
    weights = {"A": Fraction(1), "B": Fraction(1)}
    assert gap(packets, weights, sent(packets, weights, "drr:quantum=9"), "A", "B") <= 9 + 2 * 9
    assert gap(packets, weights, with_policy(HoardingDRR, packets, weights, "drr:quantum=9"), "A", "B") > 9 + 2 * 9


@settings(max_examples=50, deadline=None)
@given(packets=PACKETS, weights=WEIGHTS)
def test_sfq_sends_each_packet_by_its_expected_arrival_and_a_packet_of_each_other_flow(
    packets: list[Packet], weights: dict[str, Fraction]
) -> None:
    """Theorem 4, weights as rates that together are the link's: L <= EAT + sum of l_n/C over the others + l/C."""
    total = sum(weights.values())
    expected: dict[str, Fraction] = {}
    for index, _, end in sorted(sent(packets, weights, "sfq")):
        arrival, flow, size = packets[index]
        due = max(Fraction(arrival), expected.get(flow, Fraction(0)))
        assert end <= due + sum(largest(packets, other) for other in weights if other != flow) + size
        expected[flow] = due + size / (weights[flow] / total)


@settings(max_examples=50, deadline=None)
@given(packets=PACKETS, weights=WEIGHTS)
def test_virtual_clock_sends_each_packet_by_its_clock_and_one_more_packet(
    packets: list[Packet], weights: dict[str, Fraction]
) -> None:
    total = sum(weights.values())
    clock: dict[str, Fraction] = {}
    for index, _, end in sorted(sent(packets, weights, "virtual-clock")):
        arrival, flow, size = packets[index]
        clock[flow] = max(Fraction(arrival), clock.get(flow, Fraction(0))) + size / (weights[flow] / total)
        assert end <= clock[flow] + largest(packets)


def steps(packets: Sequence[Packet], weights: Weights, spec: str) -> Iterator[Any]:
    return LinkRun(scenario(packets, weights), spec, "events").trace().steps()


@settings(max_examples=40, deadline=None)
@given(packets=PACKETS, weights=WEIGHTS)
def test_sfq_never_turns_its_clock_back_and_a_returning_flow_starts_at_it(
    packets: list[Packet], weights: dict[str, Fraction]
) -> None:
    clock, before = Fraction(0), {flow: Fraction(0) for flow in weights}
    waiting: set[str] = set()
    for step in steps(packets, weights, "sfq"):
        virtual_time = Fraction(step.show["virtual_time"])
        assert virtual_time >= clock
        meters = {flow: Fraction(meter) for flow, meter in step.show["meters"].items()}
        assert all(meter >= before[flow] for flow, meter in meters.items())
        for flow in step.queues.keys() - waiting:
            assert meters[flow] == max(before[flow], clock)
        clock, waiting, before = virtual_time, set(step.queues), before | meters
