"""The fluid's virtual time on its grid, against the exact one."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.link_oracles import Packet
from tests.sim.links import PACKETS

from fairq.core.number import quotient
from fairq.core.policy import Layer
from fairq.policies.fluid import Fluid


@settings(max_examples=80, deadline=None)
@given(packets=PACKETS, weights=st.fixed_dictionaries(dict.fromkeys("abc", st.integers(1, 7))), bits=st.integers(4, 12))
def test_virtual_time_on_its_grid_lags_by_less_than_a_step_for_each_arrival_at_an_idle_flow(
    packets: list[Packet], weights: dict[str, int], bits: int
) -> None:
    """The bound that policies/fluid.py proves, with grids so coarse that they are used."""
    layer = Layer(name="test", normalize=lambda amount, above, below: amount * 420 // above)  # all lengths are whole
    exact, grid, joined = Fluid(layer, None), Fluid(layer, bits), 0
    step = Fraction(sum(weights.values()), 2**bits)
    for arrival, flow, size in packets:
        exact.advance(arrival)
        grid.advance(arrival)
        assert exact.ends.keys() == grid.ends.keys()
        behind = quotient(exact.virtual_time, exact.scale) - quotient(grid.virtual_time, grid.scale)
        assert behind == 0 if not joined else 0 <= behind < joined * step
        if not grid.ends:
            exact.reset()
            grid.reset()
            exact.advance(arrival)
            grid.advance(arrival)
            joined = 0
        joined += flow not in grid.ends
        for fluid in (exact, grid):
            fluid.enter(flow, layer.normalize(size, weights[flow], 1), (weights[flow], 1))
