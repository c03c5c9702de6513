"""The fluid that packet schedulers imitate: generalized processor sharing, as its virtual time.

    dV/dt = r / (sum of w over the flows that the fluid is serving);   V = 0 at the start of a busy period
    S = max(V(a), F of the flow's packet before),  F = S + L / w;      it is served while V goes from S to F

V is exact until its denominator would pass 2**bits; from then on, in this busy period, it is rounded down to a grid of
at least 2**bits / (sum of w) points per unit, and lags behind the exact V by less than n steps of it, where n counts
the arrivals so far that found their flow idle in the fluid. Proof: no service is lost, what does not move V is kept; so
only the start tags of those n are rounded. Lowering tags by at most d lowers V by at most d, and each rounding adds at
most one step to d. (Exact rationals gain a few bits at each of those arrivals, without end.)
"""

from collections.abc import Mapping
from copy import copy
from fractions import Fraction
from heapq import heappop, heappush, heapreplace
from typing import Any

from fairq.core.memory import recall, remembered
from fairq.core.number import Number, quotient
from fairq.core.policy import Layer

MEMORY = ("scale", "full", "ends", "weights", "weight", "virtual_time", "at", "unspent")


class Fluid:
    """Tags are counted in 1/scale of a tag of the layer.

    bits  None: exact for ever
    ends  flow -> F of its last packet, of the flows that are being served
    heap  the least (F, flow) of them is the first; an F there may be that of an earlier packet of the flow
    """

    def __init__(self, layer: Layer, bits: int | None = 256) -> None:
        self.speed = layer.rate * layer.normalize(1, 1, 1)
        self.limit = None if bits is None else 1 << bits
        self.ends: dict[str, Number] = {}
        self.heap: list[tuple[Number, str]] = []
        self.weights: dict[str, Number] = {}
        self.reset()

    def reset(self) -> None:
        """A busy period begins."""
        self.virtual_time: Number = 0
        self.scale = 1
        self.full = False  # is the grid as fine as it gets?
        self.weight: Number = 0  # of all that are being served
        self.at: Number = 0
        self.unspent: Number = 0  # service up to `at` that did not move V to the next point of the grid

    def advance(self, now: Number) -> int:
        """Moves V to `now`. Returns the factor by which every tag has grown, 1 unless the grid became finer."""
        service = self.unspent + (now - self.at) * self.speed * self.scale
        self.at = now
        heap, ends, weight, virtual_time = self.heap, self.ends, self.weight, self.virtual_time
        while heap:
            end, flow = heap[0]
            needed = (end - virtual_time) * weight
            if needed > service:
                steps, self.unspent = divmod(service, weight)
                self.virtual_time = virtual_time + steps
                self.weight = weight
                return self._refine() if self.unspent and not self.full else 1
            if ends[flow] > end:
                heapreplace(heap, (ends[flow], flow))
                continue
            service -= needed
            virtual_time = end
            heappop(heap)
            del ends[flow]
            weight -= self.weights.pop(flow)
        self.virtual_time, self.weight, self.unspent = virtual_time, 0, 0
        return 1

    def _refine(self) -> int:
        factor = Fraction(self.unspent, self.weight).denominator
        if self.limit is not None and self.scale * factor > self.limit:
            self.full = True
            return 1
        self.scale *= factor
        self.virtual_time = self.virtual_time * factor + quotient(self.unspent * factor, self.weight)
        self.unspent = 0
        self.ends = {flow: end * factor for flow, end in self.ends.items()}
        self.heap = [(end * factor, flow) for end, flow in self.heap]
        return factor

    def virtual_time_at(self, now: Number) -> Number:
        """V at `now`, in units of the present scale; changes nothing."""
        if now == self.at:
            return self.virtual_time
        twin = copy(self)
        twin.ends, twin.heap, twin.weights = dict(self.ends), self.heap[:], dict(self.weights)
        factor = twin.advance(now)
        return quotient(twin.virtual_time, factor)

    def enter(self, flow: str, length: Number, weight: tuple[int, int]) -> tuple[Number, Number]:
        """A packet arrives; `length` is its L/w as a tag distance. Its S and F. `advance` comes first."""
        start = self.ends.get(flow)
        if start is not None:
            end = start + length * self.scale
        else:
            start = self.virtual_time
            end = start + length * self.scale
            heappush(self.heap, (end, flow))
            self.weights[flow] = share = weight[0] if weight[1] == 1 else Fraction(*weight)
            self.weight += share
        self.ends[flow] = end
        return start, end

    def state(self) -> dict[str, Any]:
        return remembered(self, MEMORY)

    def restore(self, state: Mapping[str, Any]) -> None:
        recall(self, MEMORY, state)
        self.heap = sorted((end, flow) for flow, end in self.ends.items())
