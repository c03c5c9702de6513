"""Packet schedulers as their papers write them down: all packets in a list, tags in rationals, nothing clever."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.oracle import FluidLink

Packet = tuple[int, str, int]
"""Arrival, flow, size."""

Weights = Mapping[str, Fraction | int]
Sent = list[tuple[int, Fraction, Fraction]]
"""Index of the packet, when it began, when it was over; in order of time."""


class Discipline:
    def __init__(self, packets: Sequence[Packet], weights: Weights, rate: Fraction | int) -> None:
        self.packets, self.weights, self.rate = packets, weights, rate
        self.setup()

    def setup(self) -> None: ...
    def arrived(self, index: int) -> None: ...
    def began(self, index: int) -> None: ...
    def idle(self) -> None: ...
    def key(self, index: int, now: Fraction) -> Any:
        raise NotImplementedError

    def length(self, index: int) -> Fraction:
        _, flow, size = self.packets[index]
        return Fraction(size) / self.weights[flow]

    def choose(self, waiting: list[int], now: Fraction) -> int:
        return min(waiting, key=lambda index: (self.key(index, now), self.packets[index][1], index))

    def run(self) -> Sent:
        packets = self.packets
        coming = sorted(range(len(packets)), key=lambda index: packets[index][0])
        waiting: list[int] = []
        now, sent = Fraction(0), []
        while coming or waiting:
            if not waiting:
                now = max(now, Fraction(packets[coming[0]][0]))
            while coming and packets[coming[0]][0] <= now:
                waiting.append(coming[0])
                self.arrived(coming.pop(0))
            index = self.choose(waiting, now)
            waiting.remove(index)
            self.began(index)
            end = now + Fraction(packets[index][2]) / self.rate
            while coming and packets[coming[0]][0] < end:
                waiting.append(coming[0])
                self.arrived(coming.pop(0))
            sent.append((index, now, end))
            now = end
            if not waiting:
                self.idle()
        return sent


class PGPS(Discipline):
    """The packet that would be over first in GPS."""

    def setup(self) -> None:
        self.fluid = FluidLink(self.packets, self.weights, self.rate)

    def key(self, index: int, now: Fraction) -> Any:
        return self.fluid.finish[index]


class WF2Q(PGPS):
    """The same among those that have begun in GPS: arrived, and the flow's packet before is over."""

    def begun(self, index: int) -> Fraction:
        arrival, flow, _ = self.packets[index]
        before = [other for other in range(index) if self.packets[other][1] == flow]
        return max(Fraction(arrival), self.fluid.finish[before[-1]]) if before else Fraction(arrival)

    def choose(self, waiting: list[int], now: Fraction) -> int:
        return super().choose([index for index in waiting if self.begun(index) <= now], now)


class SFQ(Discipline):
    """Goyal, Vin, Cheng: v is the start tag of the packet in service; after a busy period, the largest finish tag."""

    def setup(self) -> None:
        self.start: dict[int, Fraction] = {}
        self.last = dict.fromkeys(self.weights, Fraction(0))
        self.v, self.largest = Fraction(0), Fraction(0)

    def arrived(self, index: int) -> None:
        flow = self.packets[index][1]
        self.start[index] = max(self.v, self.last[flow])
        self.last[flow] = self.start[index] + self.length(index)

    def began(self, index: int) -> None:
        self.v = self.start[index]
        self.largest = max(self.largest, self.start[index] + self.length(index))

    def idle(self) -> None:
        self.v = self.largest

    def key(self, index: int, now: Fraction) -> Any:
        return self.start[index]


class SCFQ(SFQ):
    """Golestani: the least finish tag, and v is the finish tag of the packet in service."""

    def began(self, index: int) -> None:
        self.v = self.key(index, Fraction(0))

    def idle(self) -> None: ...

    def key(self, index: int, now: Fraction) -> Any:
        return self.start[index] + self.length(index)


class VirtualClock(Discipline):
    """Zhang: a clock per flow, advanced by the size over the flow's rate; all weights together are the link's rate."""

    def setup(self) -> None:
        self.clock = dict.fromkeys(self.weights, Fraction(0))
        self.stamp: dict[int, Fraction] = {}

    def arrived(self, index: int) -> None:
        arrival, flow, size = self.packets[index]
        own = self.rate * Fraction(self.weights[flow]) / sum(map(Fraction, self.weights.values()))
        self.clock[flow] = self.stamp[index] = max(Fraction(arrival), self.clock[flow]) + size / own

    def key(self, index: int, now: Fraction) -> Any:
        return self.stamp[index]


class DRR(Discipline):
    """Shreedhar, Varghese, figure 4, visit by visit. A flow is in the active list while a packet of it waits."""

    quantum = 1

    def setup(self) -> None:
        self.active: list[str] = []
        self.deficit: dict[str, Fraction] = {}
        self.queue: dict[str, list[int]] = {}
        self.visiting = False  # has the head of the list had its quantum?

    def arrived(self, index: int) -> None:
        flow = self.packets[index][1]
        if not self.queue.get(flow):
            self.active.append(flow)
            self.deficit[flow] = Fraction(0)
        self.queue.setdefault(flow, []).append(index)

    def choose(self, waiting: list[int], now: Fraction) -> int:
        while True:
            flow = self.active[0]
            if not self.visiting:
                self.deficit[flow] += self.quantum * Fraction(self.weights[flow])
                self.visiting = True
            head = self.queue[flow][0]
            if self.packets[head][2] <= self.deficit[flow]:
                return head
            self.active.append(self.active.pop(0))
            self.visiting = False

    def began(self, index: int) -> None:
        flow = self.active[0]
        self.queue[flow].pop(0)
        self.deficit[flow] -= self.packets[index][2]
        if not self.queue[flow]:
            self.active.pop(0)
            self.visiting = False
