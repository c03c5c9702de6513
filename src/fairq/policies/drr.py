"""Deficit round robin (Shreedhar, Varghese, SIGCOMM 1995; ToN 1996, figure 4), weighted.

    ring    the backlogged flows, in turns; a flow that becomes backlogged goes to the end with D = 0
    visit   D += Q_i, once;  while the head's cost <= D: dispatch it, D -= cost;  then the next flow's turn
    leave   a flow without waiting jobs leaves the ring and its D is 0: idle time banks nothing

Q_i = quantum * w_i. No tags and no argmin. A visit that dispatches nothing is no decision: the walk goes on to the
first head that fits. Where none fits within a round (quanta below the sizes), all rounds in which nobody can go pass
at once.

Unit of fairness: normalized service. With Max the largest cost: 0 <= D < Max between visits; after m visits a flow that
stayed backlogged has sent m Q_i to within Max; over every interval in which both are backlogged |W_i/f_i - W_j/f_j| <=
Q + 2 Max, with Q the least quantum and f_i = Q_i / Q. O(1) for each job where every quantum is at least Max, else
O(flows). Costs must be known beforehand, and so must Max, to choose a quantum.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any

from fairq.core.job import Flow, Job
from fairq.core.memory import pack, unpack
from fairq.core.number import Number, exact, to_json
from fairq.core.policy import NOTHING_WAITS, ROOMY, Decision, Need, Param, Pick, Time, Unit, View, Why
from fairq.core.queues import FlowPolicy
from fairq.core.ranking import Ranking


class Ring(Ranking[str, Number]):
    """The active list; `key`: the deficit counters D. `turns`: whose turn it is, and all others in order."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: deque[str] = deque()

    def put(self, flow: str, deficit: Number) -> None:
        if flow not in self.key:
            self.turns.append(flow)
        self.key[flow] = deficit

    def drop(self, flow: str) -> None:
        if self.key.pop(flow, None) is not None:
            self.turns.remove(flow)  # nearly always the first one


class DRR(FlowPolicy):
    name = "drr"
    unit = Unit.NORMALIZED
    needs = frozenset({Need.SIZE})
    per_flow = ("quanta",)
    memory = ("visited",)
    params = (Param(name="quantum", default=1500, low=1, text="param.drr.quantum"),)
    quantum: int

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.ring = self.ranking = Ring()
        self.quanta: dict[str, Number] = {}
        self.visited = ""  # the first in turn, once it has had its quantum

    def flow_changed(self, flow: Flow, now: Time) -> None:
        super().flow_changed(flow, now)
        above, below = self.weights[flow.id]
        self.quanta[flow.id] = exact(self.quantum, below, above)

    def joined(self, flow: str, now: Time) -> None:
        if flow == self.visited:
            self.visited = ""

    def rank(self, flow: str) -> Number:
        return self.ring.key.get(flow, 0)

    # The rule
    def take(self, now: Time, view: View) -> Job | None:
        deficits, turns = self.ring.key, self.ring.turns
        while turns:
            for _ in range(len(turns)):
                flow = turns[0]
                deficit = deficits[flow]
                if flow != self.visited:
                    self.visited = flow
                    deficit += self.quanta.get(flow, self.quantum)
                cost = self.cost_of(self.queues[flow][0])
                if cost <= deficit:
                    deficits[flow] = deficit - cost
                    return self.leave(flow)
                deficits[flow] = deficit
                turns.rotate(-1)
                self.visited = ""
            rounds = min(map(self.rounds, turns))
            for flow in turns:
                deficits[flow] += rounds * self.quanta.get(flow, self.quantum)
        return None

    def rounds(self, flow: str) -> int:
        """How many more rounds pass it by; 0: its head goes in this one."""
        quantum = self.quanta.get(flow, self.quantum)
        deficit = self.ring.key[flow] + (0 if flow == self.visited else quantum)
        return max(0, -int((deficit - self.cost_of(self.head(flow))) // quantum))

    def select(self, now: Time, view: View) -> Decision:
        """What `take` would come to, and how many visits dispatch nothing before."""
        turns = self.ring.turns
        if not turns:
            return NOTHING_WAITS
        visits = next((place for place, flow in enumerate(turns) if not self.rounds(flow)), None)
        if visits is None:
            visits = min(place + len(turns) * self.rounds(flow) for place, flow in enumerate(turns))
        head = self.head(turns[visits % len(turns)])
        return Pick(head, Why("fits-deficit", {"visits": visits, "cost": self.cost_of(head)}))

    def commit(self, decision: Decision, now: Time) -> None:
        if isinstance(decision, Pick):
            self.take(now, ROOMY)

    def charge(self, job: Job, amount: int, now: Time) -> None:
        """The cost has been taken from the deficit."""

    # What shells read
    def show(self) -> Mapping[str, Any]:
        deficits = {flow: to_json(self.ring.key[flow]) for flow in sorted(self.ring)}
        return {"ring": list(self.ring.turns), "deficits": deficits}

    def state(self) -> dict[str, Any]:
        return super().state() | {"ring": [[flow, pack(self.ring.key[flow])] for flow in self.ring.turns]}

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        for flow, deficit in state["ring"]:
            self.ring.put(flow, unpack(deficit))
        super().restore(state, jobs)
