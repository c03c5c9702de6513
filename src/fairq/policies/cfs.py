"""The completely fair scheduler (Linux 2.6.23 to 6.5, kernel/sched/fair.c): least virtual runtime first.

    vruntime_i  += used / w_i                                  w of nice 0 is 1, as in NICE_0_LOAD / weight
    select      argmin over waiting clients of vruntime_i; of equals whoever has been in the tree for longest
    slice       period * w_i / (sum of w here), at least one tick; as it is at the choice (Linux looks at every tick)
    period      latency for up to latency / granularity clients, granularity for each of them beyond
    min_vruntime = max(min_vruntime, min over the clients here of vruntime)               never goes back
    new         vruntime_i = max(vruntime_i, min_vruntime + a slice of its own)           with `debit`
    woken       vruntime_i = max(vruntime_i, min_vruntime - latency / 2)                  with `sleeper_credit`
    preempt     a client takes, when it comes, the place of one whose vruntime is more than `wakeup` ahead; one that is
                not so far behind waits for the end of the slice

It is the scheduler without its heuristics: `wakeup` is compared as it is, where Linux scales it by the newcomer's
weight, and a newcomer that does not take over leaves the present slice as it is, where Linux's tick would shorten it.

Ticks are read as milliseconds: Linux's defaults on one processor are 6 ms latency and 0.75 ms granularity.

Unit of fairness: normalized service. Guarantees: shares go to w_i / sum of w; clients that are always ready differ in
vruntime by at most one slice's worth plus the entrance fee; a sleeper gains at most latency / 2 of virtual time. How
soon a client runs again is not in its hands: it depends on how many there are.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from fairq.core.clients import ClientPolicy
from fairq.core.job import Job
from fairq.core.number import Number, quotient, to_json
from fairq.core.policy import Cause, Need, Param, Time, Unit, Why


class CFS(ClientPolicy):
    name = "cfs"
    unit = Unit.NORMALIZED
    needs = frozenset({Need.PREEMPTION})
    per_flow = ("vruntime", "turn")
    memory = ("min_vruntime", "turns")
    params = (
        Param(name="latency", default=6, low=1, text="param.cfs.latency"),
        Param(name="granularity", default=Fraction(3, 4), low=0, text="param.cfs.granularity"),
        Param(name="wakeup", default=Fraction(1), low=0, text="param.cfs.wakeup"),
        Param(name="sleeper_credit", default=True, text="param.cfs.sleeper-credit"),
        Param(name="debit", default=True, text="param.cfs.debit"),
    )
    latency: int
    granularity: Fraction
    wakeup: Fraction
    sleeper_credit: bool
    debit: bool

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.vruntime: dict[str, Number] = {}  # of all clients, here or not
        self.min_vruntime: Number = 0
        self.turn: dict[str, int] = {}  # when it was put into the tree last: an equal key goes to the right
        self.turns = 0

    # The rule
    def rank(self, flow: str) -> tuple[Number, int]:
        return self.vruntime[flow], self.turn[flow]

    def charged(self, flow: str, amount: int) -> None:
        self.vruntime[flow] += self.normalized(flow, amount)
        self.queue(flow)
        self.advance()

    def queue(self, flow: str) -> None:
        self.turns += 1
        self.turn[flow] = self.turns

    def advance(self) -> None:
        first = self.ranking.first()
        present = [self.vruntime[flow] for flow in self.running] + ([first[0][0]] if first else [])
        if present:
            self.min_vruntime = max(self.min_vruntime, min(present))

    def ideal(self, flow: str) -> Fraction:
        """The processor time that is its part of a period."""
        period = max(Fraction(self.latency), len(self.here) * self.granularity)
        return period * self.weight(flow) / self.total

    def slice(self, job: Job) -> int:
        return max(int(self.ideal(job.flow)), 1)

    def preempts(self, running: Job, now: Time) -> bool:
        ahead = self.vruntime[running.flow] - self.wakeup
        newcomers = [flow for flow in self.came if self.comes(flow, now) and flow in self.ranking]
        return any(self.vruntime[flow] < ahead for flow in newcomers)

    # Who comes
    def joined(self, flow: str, now: Time) -> None:
        super().joined(flow, now)
        self.queue(flow)

    def entered(self, flow: str, cause: Cause) -> None:
        floor: Number = self.min_vruntime
        if cause is Cause.WOKEN:
            if self.sleeper_credit:
                floor -= quotient(self.latency, 2)
        elif self.debit and len(self.here) > 1:
            floor += quotient(self.ideal(flow) / self.weight(flow), 1)
        self.vruntime[flow] = max(self.vruntime.get(flow, floor), floor)

    # What shells read
    def why(self, flow: str, rank: tuple[Number, int]) -> Why:
        return Why("least-vruntime", {"vruntime": to_json(rank[0]), "min_vruntime": to_json(self.min_vruntime)})

    def show(self) -> Mapping[str, Any]:
        vruntime = {flow: to_json(self.vruntime[flow]) for flow in sorted(self.here)}
        return {"vruntime": vruntime, "min_vruntime": to_json(self.min_vruntime)}
