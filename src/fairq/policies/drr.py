"""Deficit round robin (Shreedhar, Varghese, SIGCOMM 1995; ToN 1996, figure 4), weighted.

    ring    the backlogged flows, in turns; a flow that becomes backlogged goes to the end with D = 0
    visit   D += Q_i, once;  while the head's cost <= D: dispatch it, D -= cost;  then the next flow's turn
    leave   a flow without waiting jobs leaves the ring and its D is 0: idle time banks nothing

Q_i = quantum * w_i. No tags and no argmin. A visit that dispatches nothing is no decision: `select` walks on to the
first head that fits. Where none fits within a round (quanta below the sizes), it goes as many rounds ahead as the
nearest one needs, at once.

Unit of fairness: normalized service. With Max the largest cost: 0 <= D < Max between visits; after m visits a flow that
stayed backlogged has sent m Q_i to within Max; over every interval in which both are backlogged |W_i/f_i - W_j/f_j| <=
Q + 2 Max, with Q the least quantum and f_i = Q_i / Q. O(1) for each job where every quantum is at least Max, else
O(flows). Costs must be known beforehand, and so must Max, to choose a quantum.
"""

from collections import OrderedDict
from collections.abc import Mapping
from itertools import islice
from typing import Any

from fairq.core.job import Flow, Job
from fairq.core.number import Number, exact, of_json, to_json
from fairq.core.policy import NOTHING_WAITS, Decision, Layer, Need, Param, Pick, Policy, Time, Unit, View, Why
from fairq.core.queues import FlowPolicy


class Ring(OrderedDict[str, Number]):
    """The active list: flow -> its deficit counter D, in order of turns."""

    def put(self, flow: str, deficit: Number) -> None:
        self[flow] = deficit

    def drop(self, flow: str) -> None:
        self.pop(flow, None)


class DRR(FlowPolicy):
    name = "drr"
    unit = Unit.NORMALIZED
    needs = frozenset({Need.SIZE})
    params = (Param(name="quantum", default=1500, low=1, text="param.drr.quantum"),)
    quantum: int

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.ring = self.ranking = Ring()  # type: ignore[assignment]
        self.quanta: dict[str, Number] = {}
        self.visited = ""  # whose turn it is and who has had its quantum for it

    def bind(self, layer: Layer) -> None:
        super().bind(layer)
        self.cost = layer.cost

    def flow_changed(self, flow: Flow, now: Time) -> None:
        super().flow_changed(flow, now)
        above, below = self.weights[flow.id]
        self.quanta[flow.id] = exact(self.quantum, below, above)

    def forget(self, flow: str) -> None:
        super().forget(flow)
        self.quanta.pop(flow, None)

    def joined(self, flow: str, now: Time) -> None:
        if flow == self.visited:
            self.visited = ""

    def rank(self, flow: str) -> Number:
        return self.ring.get(flow, 0)

    def next_fit(self) -> tuple[int, Job]:
        """How many visits from the head of the ring on dispatch nothing, and what the one after them dispatches."""
        cost, quanta = self.cost, self.quanta
        short: list[tuple[int, Job]] = []
        for visits, (flow, deficit) in enumerate(self.ring.items()):
            quantum = quanta.get(flow, self.quantum)
            if flow != self.visited:
                deficit += quantum
            head = self.head(flow)
            lacks = cost(head) - deficit
            if lacks <= 0:
                return visits, head
            rounds = -(-lacks // quantum)
            short.append((visits + rounds * len(self.ring), head))
        return min(short, key=lambda item: item[0])

    def select(self, now: Time, view: View) -> Decision:
        if not self.ring:
            return NOTHING_WAITS
        visits, head = self.next_fit()
        return Pick(head, Why("fits-deficit", {"visits": visits, "cost": self.cost(head)}), visits)

    def commit(self, decision: Decision, now: Time) -> None:
        if isinstance(decision, Pick):
            flow = decision.job.flow
            self.visit(decision.plan, flow)
            self.ring[flow] -= self.cost(decision.job)
        super().commit(decision, now)

    def visit(self, passed: int, flow: str) -> None:
        """The turns of `passed` visits go by, and that of `flow` begins or goes on."""
        ring, size = self.ring, len(self.ring)
        if passed or flow != self.visited:
            turns = list(islice(ring, passed + 1))
            for place, one in enumerate(turns):
                granted = (passed - place) // size + (one != self.visited)
                ring[one] += granted * self.quanta.get(one, self.quantum)
            for one in turns[: passed % size]:
                ring.move_to_end(one)
            self.visited = flow

    def take(self, now: Time, view: View) -> Job | None:
        """As the paper writes it. After a round in which nothing fits, `select` sees how many more it takes."""
        if not self.short_take:
            return super().take(now, view)
        ring = self.ring
        for _ in range(len(ring)):
            flow = next(iter(ring))
            deficit = ring[flow]
            if flow != self.visited:
                self.visited = flow
                deficit += self.quanta.get(flow, self.quantum)
            queue = self.queues[flow]
            cost = self.cost(queue[0])
            if cost <= deficit:
                ring[flow] = deficit - cost
                return self.leave(flow)
            ring[flow] = deficit
            ring.move_to_end(flow)
            self.visited = ""
        return Policy.take(self, now, view) if ring else None

    def charge(self, job: Job, amount: int, now: Time) -> None:
        """The cost has been taken from the deficit."""

    def show(self) -> Mapping[str, Any]:
        return {"ring": list(self.ring), "deficits": {flow: to_json(self.ring[flow]) for flow in sorted(self.ring)}}

    def state(self) -> dict[str, Any]:
        ring = [[flow, to_json(deficit)] for flow, deficit in self.ring.items()]
        return super().state() | {"ring": ring, "visited": self.visited}

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        self.visited = state["visited"]
        for flow, deficit in state["ring"]:
            self.ring.put(flow, of_json(deficit))
        super().restore(state, jobs)
        self.quanta = {flow: exact(self.quantum, below, above) for flow, (above, below) in self.weights.items()}
