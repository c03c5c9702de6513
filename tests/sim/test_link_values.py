"""The link against values of papers and of other programs, and against schedulers as the papers write them down."""

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.program import fairq
from tests.oracle import FluidLink
from tests.sim import link_oracles as papers
from tests.sim.link_oracles import Packet, Weights
from tests.sim.links import BURST, PACKETS, RATES, SHARES, WEIGHTS, scenario, sent

from fairq.sim.link.run import LinkRun

FIGURE_3: list[Packet] = [
    *((1, "1", 1), (2, "1", 1), (3, "1", 2), (11, "1", 2)),
    *((0, "2", 3), (5, "2", 2), (9, "2", 2)),
]
EIGHTS_AND_TWOS: list[Packet] = [(0, "A", 8)] * 3 + [(0, "B", 2)] * 7


def finishes(packets: Sequence[Packet], weights: Weights, spec: str, **more: Any) -> dict[str, list[str]]:
    """Flow -> when each of its packets is over."""
    told = LinkRun(scenario(packets, weights, **more), spec).as_json()["departures"]
    return {flow: [one["finish"] for one in told if one["flow"] == flow] for flow in weights}


@pytest.mark.parametrize(
    ("weights", "policy", "first", "second"),
    [
        ((1, 1), "gps", "3 5 9 13", "5 9 11"),
        ((1, 1), "wfq", "4 5 7 13", "3 9 11"),
        ((1, 2), "gps", "4 5 9 13", "4 8 11"),
        ((1, 2), "wfq", "4 5 9 13", "3 7 11"),
    ],
)
def test_figure_3_of_parekh_and_gallager(weights: tuple[int, int], policy: str, first: str, second: str) -> None:
    found = finishes(FIGURE_3, {"1": weights[0], "2": weights[1]}, policy)
    assert found == {"1": first.split(), "2": second.split()}


def test_the_articles_eights_and_twos_in_gps_and_pgps() -> None:
    """Three packets of 8 and seven of 2, all at 0: PGPS sends three of B, A, four of B, then A twice."""
    weights = {"A": 1, "B": 1}
    assert finishes(EIGHTS_AND_TWOS, weights, "gps") == {
        "A": ["16", "30", "38"],
        "B": ["4", "8", "12", "16", "20", "24", "28"],
    }
    assert finishes(EIGHTS_AND_TWOS, weights, "wfq") == {
        "A": ["14", "30", "38"],
        "B": ["2", "4", "6", "16", "18", "20", "22"],
    }


def test_the_burst_of_the_wf2q_paper_in_gps_and_wfq() -> None:
    """A flow of weight 10 sends 11 unit packets, ten flows of weight 1 one each, all at 0."""
    gps = finishes(BURST, SHARES, "gps")
    assert gps.pop("0") == [str(time) for time in (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 21)]
    assert all(ends == ["20"] for ends in gps.values())
    wfq = finishes(BURST, SHARES, "wfq")
    assert wfq["0"] == [str(time) for time in (*range(1, 11), 21)]


def test_wf2q_sends_the_burst_of_its_paper_in_every_other_place() -> None:
    assert finishes(BURST, SHARES, "wf2q")["0"] == [str(time) for time in range(1, 22, 2)]


def test_drr_as_an_independent_program_sends_it() -> None:
    """ns.py 0.4.3 with a least quantum of 500, one byte per unit of time."""
    sizes = {"0": (200, 750, 200), "1": (500, 500), "2": (50, 700, 180)}
    packets = [(0, flow, size) for flow, queue in sizes.items() for size in queue]
    told = LinkRun(scenario(packets, dict.fromkeys(sizes, 1)), "drr:quantum=500").as_json()["departures"]
    assert [(int(one["finish"]), one["flow"], one["size"]) for one in told] == [
        *((200, "0", 200), (700, "1", 500), (750, "2", 50), (1500, "0", 750)),
        *((2000, "1", 500), (2700, "2", 700), (2880, "2", 180), (3080, "0", 200)),
    ]


def test_drr_with_weights_two_to_one_repeats_two_and_one() -> None:
    packets = [(0, "0", 100)] * 8 + [(0, "1", 100)] * 4
    told = LinkRun(scenario(packets, {"0": 2, "1": 1}), "drr:quantum=100").as_json()["departures"]
    assert "".join(one["flow"] for one in told) == "001" * 4


def test_the_deficits_of_figures_2_and_3_of_the_drr_paper() -> None:
    """Quantum 500, heads 200 and 750: after the first round 300 is left, after the next visit 50."""
    packets = [(0, "1", 200), (0, "1", 750), (0, "1", 200), (0, "2", 500), (0, "2", 500)]
    steps = list(LinkRun(scenario(packets, {"1": 1, "2": 1}), "drr:quantum=500", "events").trace().steps())
    ends = [step.show["deficits"]["1"] for step in steps if step.kind == "finish" and "1" in step.show["deficits"]]
    assert ends == [300, 300, 50, 50]


def test_the_command_prints_departures_as_documented() -> None:
    arguments = "link --rate 1 --flow A:weight=1 --packet A:0:8 --packet A:3:2 --policy wfq --policy gps --json"
    result = fairq("sim", *arguments.split())
    assert result.status == 0, result.err
    document = json.loads(result.out)
    assert (document["layer"], [run["policy"] for run in document["runs"]]) == ("link", ["wfq", "gps"])
    assert document["runs"][0]["departures"] == [
        {"flow": "A", "seq": 1, "size": 8, "arrival": 0, "start": "0", "finish": "8"},
        {"flow": "A", "seq": 2, "size": 2, "arrival": 3, "start": "8", "finish": "10"},
    ]
    assert [one["start"] for one in document["runs"][1]["departures"]] == [None, None]


@pytest.mark.parametrize(
    ("spec", "paper"),
    [
        ("wfq", papers.PGPS),
        ("wf2q", papers.WF2Q),
        ("sfq", papers.SFQ),
        ("scfq", papers.SCFQ),
        ("virtual-clock", papers.VirtualClock),
    ],
)
@settings(max_examples=80, deadline=None)
@given(packets=PACKETS, weights=WEIGHTS, rate=RATES)
def test_every_packet_goes_when_the_paper_says(
    spec: str, paper: type[papers.Discipline], packets: list[Packet], weights: dict[str, Fraction], rate: Fraction
) -> None:
    assert sent(packets, weights, spec, rate=str(rate)) == paper(packets, weights, rate).run()


@settings(max_examples=80, deadline=None)
@given(packets=PACKETS, weights=WEIGHTS, quantum=st.sampled_from([1, 2, 5, 9, 30]))
def test_drr_goes_as_the_paper_says_also_with_quanta_below_the_packets(
    packets: list[Packet], weights: dict[str, Fraction], quantum: int
) -> None:
    paper = papers.DRR(packets, weights, 1)
    paper.quantum = quantum
    assert sent(packets, weights, f"drr:quantum={quantum}") == paper.run()


@settings(max_examples=80, deadline=None)
@given(packets=PACKETS, weights=WEIGHTS, rate=RATES)
def test_gps_is_the_fluid_from_event_to_event(
    packets: list[Packet], weights: dict[str, Fraction], rate: Fraction
) -> None:
    fluid = FluidLink(packets, weights, rate)
    found = {index: finish for index, _, finish in sent(packets, weights, "gps", rate=str(rate))}
    assert [found[index] for index in range(len(packets))] == fluid.finish


@pytest.mark.parametrize("policy", ["wfq", "wf2q", "gps"])
def test_the_virtual_time_that_is_shown_moves_between_arrivals(policy: str) -> None:
    """Two backlogged flows of weight 1 on a link of rate 1: dV/dt = 1/2 until 8 units of each have gone, at 16."""
    steps = LinkRun(scenario([(0, "a", 2), (0, "b", 2)] * 4, {"a": 1, "b": 1}), policy, "events").trace().steps()
    assert {Fraction(step.time) / 2 == Fraction(step.show["virtual_time"]) for step in steps} == {True}
