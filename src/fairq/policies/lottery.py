"""Lottery scheduling (Waldspurger, Weihl, OSDI 1994): each quantum goes to the holder of a ticket drawn at random.

    select     r uniform in [0, all tickets); walk the clients in order of id; the first cumulative sum > r wins
    tickets    w_i, and those of every client that is blocked on it (`transfer`), through chains
               times quantum / used for one that slept before its quantum ended, until its next win (`compensation`)

Unit of fairness: normalized service, in expectation. After n draws a client with share p has won np of them on
average, with variance np(1 - p); its waiting time is geometric. So shares are right in the long run and vary in the
short one, by about 1 / sqrt(n). No client starves (with probability 1). O(clients) for each draw.
"""

from bisect import bisect_right
from collections.abc import Mapping
from fractions import Fraction
from itertools import accumulate
from math import lcm
from typing import Any

from fairq.core.clients import ClientPolicy
from fairq.core.job import Job
from fairq.core.number import Number
from fairq.core.policy import NOTHING_WAITS, Cause, Decision, Need, Param, Pick, Stop, Time, Unit, View, Why


class Lottery(ClientPolicy):
    name = "lottery"
    unit = Unit.NORMALIZED
    needs = frozenset({Need.RANDOM})
    per_flow = ("lent", "inflated")
    memory = ("draws", "used")
    params = (
        Param(name="quantum", default=1, low=1, text="param.lottery.quantum"),
        Param(name="transfer", default=True, text="param.lottery.transfer"),
        Param(name="compensation", default=True, text="param.lottery.compensation"),
    )
    quantum: int
    transfer: bool
    compensation: bool

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.draws = 0
        self.lent: dict[str, str] = {}  # blocked client -> the one that it waits for
        self.used: dict[str, int] = {}  # of the quantum that a client has won
        self.inflated: dict[str, Fraction] = {}

    # The rule
    def select(self, now: Time, view: View) -> Decision:
        if not self.ranking:
            return NOTHING_WAITS
        assert self.layer.random is not None
        clients = sorted(self.ranking)
        tickets = [self.tickets(flow) for flow in clients]
        scale = lcm(*{count.denominator for count in tickets})  # whole tickets
        whole = [int(count * scale) for count in tickets]
        drawn = self.layer.random(self.draws, sum(whole))
        winner = clients[bisect_right(list(accumulate(whole)), drawn)]
        return Pick(self.head(winner), Why("drawn", {"ticket": drawn, "of": sum(whole)}))

    def tickets(self, flow: str) -> Number:
        """Its own and those lent to it, directly or through others."""
        if not self.lent:
            return self.worth(flow)
        holders = [flow]
        for holder in holders:
            holders += [lender for lender, to in self.lent.items() if to == holder and lender not in holders]
        return sum(self.worth(holder) for holder in holders)

    def worth(self, flow: str) -> Number:
        return self.weight(flow) * self.inflated.get(flow, 1)

    def slice(self, job: Job) -> int:
        return self.quantum

    # What it keeps
    def commit(self, decision: Decision, now: Time) -> None:
        super().commit(decision, now)
        if isinstance(decision, Pick):
            self.draws += 1
            self.used[decision.job.flow] = 0
            self.inflated.pop(decision.job.flow, None)

    def charged(self, flow: str, amount: int) -> None:
        if flow in self.used:
            self.used[flow] += amount

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        used = self.used.pop(job.flow, 0)
        if reason is Stop.BLOCKED:
            if self.compensation and 0 < used < self.quantum:
                self.inflated[job.flow] = Fraction(self.quantum, used)
            if self.transfer and on:
                self.lent[job.flow] = on
        super().stop(job, now, reason, on)

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        self.lent.pop(job.flow, None)
        super().arrive(job, now, cause)

    # What shells read
    def rank(self, flow: str) -> int:
        return 0  # only chance decides

    def show(self) -> Mapping[str, Any]:
        return {"tickets": {flow: str(self.tickets(flow)) for flow in sorted(self.ranking)}}
