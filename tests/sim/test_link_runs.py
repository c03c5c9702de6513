"""The link itself: buffers, stalls, rates, traces, and refusals."""

from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.program import fairq
from tests.sim.links import PACKETS, WEIGHTS, scenario, sent

from fairq.core.errors import ConfigError
from fairq.sim.link import line
from fairq.sim.link.run import LinkRun
from fairq.sim.link.scenario import LinkScenario
from fairq.sim.link.stalls import Stalls

POLICIES = ["fcfs", "request-rr", "sfq", "wfq", "wf2q", "scfq", "virtual-clock", "drr:quantum=4", "hierarchical", "gps"]


def run(spec: str, **given: Any) -> LinkRun:
    return LinkRun(LinkScenario.model_validate(given), spec)


def test_a_full_buffer_drops_the_packet_that_arrives() -> None:
    """One packet is in service, two may wait."""
    packets = [{"flow": "A", "arrival": 0, "size": 10, "count": 5}]
    done = run("fcfs", packets=packets, buffer=2)
    assert [job.id for job, _, _ in done.departures] == ["A#1", "A#2"]
    assert [job.id for job in done.dropped] == ["A#3", "A#4", "A#5"]


def test_the_packet_in_service_has_left_the_buffer() -> None:
    packets = [{"flow": "A", "arrival": at, "size": 10} for at in (0, 1, 2, 3)]
    done = run("fcfs", packets=packets, buffer=2)
    assert [job.id for job in done.dropped] == ["A#4"]


def test_a_flow_that_fills_its_own_buffer_costs_the_others_nothing() -> None:
    packets = [{"flow": "A", "arrival": 0, "size": 1, "count": 9}, {"flow": "B", "arrival": 0, "size": 1, "count": 3}]
    told = run("sfq", flows=[{"id": "A", "buffer": 4}, {"id": "B"}], packets=packets).as_json()
    assert [told["flows"][flow]["dropped"] for flow in "AB"] == [5, 0]
    assert [one["seq"] for one in told["dropped"]] == [5, 6, 7, 8, 9]


def test_a_stall_delays_the_packet_under_way_by_its_length() -> None:
    packets = [{"flow": "A", "arrival": 0, "size": 4, "count": 2}]
    done = run("fcfs", packets=packets, stalls=[{"at": 2, "for": 10}, {"at": 20, "for": 5}])
    assert [(start, finish) for _, start, finish in done.departures] == [(0, 14), (14, 18)]


def test_nothing_begins_during_a_stall_and_who_arrives_meanwhile_competes_afterwards() -> None:
    packets = [{"flow": "B", "arrival": 1, "size": 1}, {"flow": "A", "arrival": 3, "size": 1}]
    done = run("sfq", packets=packets, stalls=[{"at": 0, "for": 4}, {"at": 4, "for": 1}])
    assert [(job.flow, start) for job, start, _ in done.departures] == [("A", 5), ("B", 6)]


def test_a_packet_may_end_at_the_instant_at_which_a_stall_begins() -> None:
    done = run("fcfs", packets=[{"flow": "A", "arrival": 0, "size": 2}], stalls=[{"at": 2, "for": 9}])
    assert done.departures[0][2] == 2


def test_gps_stands_still_while_the_link_does() -> None:
    packets = [{"flow": "A", "arrival": 0, "size": 4}, {"flow": "B", "arrival": 0, "size": 4}]
    told = run("gps", packets=packets, stalls=[{"at": 2, "for": 10}]).as_json()["departures"]
    assert [one["finish"] for one in told] == ["18", "18"]


@settings(max_examples=80, deadline=None)
@given(
    gaps=st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), max_size=6),
    start=st.integers(0, 40),
    work=st.integers(1, 20),
)
def test_work_is_the_time_outside_stalls(gaps: list[tuple[int, int]], start: int, work: int) -> None:
    """Against a list of moments in which the link works."""
    stalls, now = [], 0
    for gap, length in gaps:
        stalls.append((now + gap, now + gap + length))
        now += gap + length
    works = [t for t in range(200) if not any(begin <= t < end for begin, end in stalls)]
    clock = Stalls(stalls)
    first = clock.works_from(start)
    assert first == min(t for t in works if t >= start)
    assert clock.worked(start) == sum(t < start for t in works)
    done = clock.when(clock.worked(first) + work)
    assert sum(first <= t < done for t in works) == work
    assert done - 1 in works


@settings(max_examples=40, deadline=None)
@given(packets=PACKETS, weights=WEIGHTS, seed=st.integers(0, 9))
@pytest.mark.parametrize("spec", POLICIES)
def test_a_trace_changes_nothing_and_has_three_steps_for_each_packet(
    spec: str, packets: list[Any], weights: dict[str, Fraction], seed: int
) -> None:
    given = scenario(packets, weights, rate="3/2", random_stalls={"every": 5, "for": 3}, seed=seed)
    plain, recorded = LinkRun(given, spec), LinkRun(given, spec, "events")
    assert plain.as_json() == recorded.as_json()
    steps = list(recorded.trace().steps())
    assert steps == list(recorded.trace().steps())
    kinds = [step.kind for step in steps]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == dict.fromkeys(
        ("arrive", "start", "finish"), len(packets)
    )
    times = [Fraction(step.time) for step in steps]
    assert times == sorted(times) or spec == "gps"  # a fluid's clock stands still in a stall
    assert all(step.why is not None for step in steps if step.kind == "start")
    ends = [step.what["packet"] for step in steps if step.kind == "finish"]
    assert ends == [job.id for job, _, _ in recorded.departures]


@settings(max_examples=30, deadline=None)
@given(packets=PACKETS, weights=WEIGHTS)
@pytest.mark.parametrize("spec", POLICIES)
def test_the_link_is_never_idle_while_a_packet_waits(
    spec: str, packets: list[Any], weights: dict[str, Fraction]
) -> None:
    """Work conservation: the last packet of every busy period ends when any work-conserving link would end it."""
    now, periods = 0, []
    for arrival, _, size in packets:
        if arrival > now:
            periods.append(now)
            now = arrival
        now += size
    periods.append(now)
    ends = {finish for _, _, finish in sent(packets, weights, spec)}
    assert set(periods) - {0} <= ends
    assert max(ends) == now


def test_lies_about_the_length_move_packets_under_wfq_and_not_under_sfq() -> None:
    """A says that its packets of 9 are of 1. WFQ believes it; SFQ charges what was sent."""
    honest = [{"flow": flow, "arrival": 0, "size": 9, "count": 8} for flow in "AB"]
    lying = [honest[0] | {"estimate": 1}, honest[1]]
    for spec, gains in (("wfq", True), ("sfq", False)):
        before, after = ("".join(job.flow for job, _, _ in run(spec, packets=p).departures) for p in (honest, lying))
        assert (before[:8].count("A"), after[:8].count("A")) == (4, 8 if gains else 4)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("--packet A:0", "size: missing; the form is FLOW:ARRIVAL:SIZE"),
        ("--packet A:0:0", "size = '0': must be at least 1"),
        ("--packet A:-1:3", "arrival = '-1': must be at least 0"),
        ("--flow B --packet A:0:1", "packets[0].flow = 'A': there is no such flow"),
        ("--flow A --flow A --packet A:0:1", "flows[1].id = 'A': given twice"),
        ("--packet A:0:1 --rate 0", "--rate = '0': must be greater than 0"),
        ("--packet A:0:1 --rate nan", "must be a number such as"),
        ("--packet A:0:1 --stall 5:0", "stalls[0].for = '0': must be at least 1"),
        ("--packet A:0:1 --stall 5:3 --stall 6:1", "stalls[1].at = '6': must come after the stall before it has ended"),
        ("--packet A:0:1:count=2000000", "packets: 2000000 in all, more than 1000000"),
        ("--packet A:0:99999999999999999999", "must be at most 9007199254740991"),
        ("--packet A:0:1 --policy wfqq", "did you mean wfq"),
        ("--packet A:0:1 --policy drr:quantum=0", "drr.quantum = '0': must be at least 1"),
        ("--packet A:0:1 --policy rr", "needs preemption, which layer link lacks"),
        ("", "packets: missing"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments: str, complaint: str) -> None:
    result = fairq("sim", "link", *arguments.split())
    assert result.status == 2
    (line,) = result.err.splitlines()
    assert line.startswith("fairq sim link: ")
    assert complaint in line


def test_a_fluid_whose_numbers_grow_too_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten flows of different weights come and go; here 64 bits are too many."""
    random = Random(1)
    packets = [{"flow": f"f{random.randrange(10)}", "arrival": 4 * n, "size": random.randint(1, 7)} for n in range(300)]
    flows = [{"id": f"f{n}", "weight": 2 * n + 3} for n in range(10)]
    given = LinkScenario.model_validate({"flows": flows, "packets": packets})
    assert len(LinkRun(given, "gps").departures) == 300
    monkeypatch.setattr(line, "WIDEST", 64)
    with pytest.raises(ConfigError, match=r"'gps': exact times need more than 64 bits after \d+ packets"):
        LinkRun(given, "gps")
