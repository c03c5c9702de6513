"""Links to test on, in the terms of the oracles: scenarios, random traffic, and what a link did."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st
from tests.sim.link_oracles import Packet, Sent, Weights

from fairq.sim.link.run import LinkRun
from fairq.sim.link.scenario import LinkScenario

BURST: list[Packet] = [(0, "0", 1)] * 11 + [(0, str(flow), 1) for flow in range(1, 11)]
SHARES = {"0": 10} | {str(flow): 1 for flow in range(1, 11)}


def scenario(packets: Sequence[Packet], weights: Weights, **more: Any) -> LinkScenario:
    return LinkScenario.model_validate(
        {
            "flows": [{"id": flow, "weight": str(weight)} for flow, weight in weights.items()],
            "packets": [{"flow": flow, "arrival": at, "size": size} for at, flow, size in packets],
            **more,
        }
    )


FLOWS = "abc"
PACKETS = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from(FLOWS), st.integers(1, 9)), min_size=1, max_size=24
).map(sorted)
WEIGHTS = st.fixed_dictionaries(
    dict.fromkeys(FLOWS, st.one_of(st.integers(1, 7).map(Fraction), st.fractions(Fraction(1, 3), 5, max_denominator=3)))
)
RATES = st.sampled_from([Fraction(1), Fraction(3), Fraction(2, 3), Fraction(7, 2)])


def sent(packets: Sequence[Packet], weights: Weights, spec: str, **more: Any) -> Sent:
    """What the link did, in the oracles' terms."""
    run = LinkRun(scenario(packets, weights, **more), spec)
    return [
        (job.seq - 1, Fraction(run.time(start or 0)), Fraction(run.time(finish)))
        for job, start, finish in run.departures
    ]
