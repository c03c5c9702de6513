"""Earliest eligible virtual deadline first (Stoica, Abdel-Wahab, TR-95-22; Linux since 6.6).

    v_i     += used / w_i                              a client's normalized service
    V        = sum of w_i v_i / sum of w_i             over the clients here; with one running, dV = dt / sum of w
    lag_i    = w_i (V - v_i)                           what it is owed; all lags add up to 0
    request  r_i ticks (the job's `slice`, else `request`): begins at ve_i = v_i, deadline vd_i = ve_i + r_i / w_i;
             when v_i has reached vd_i the next one begins
    select   argmin of (vd_i, id) over waiting clients that are eligible:
             form=linux  lag_i >= 0, tested without division: v_i * sum of w <= sum of w v
             form=1995   ve_i <= V: a request once eligible stays so until it is served
    slice    form=1995   `quantum` ticks; form=linux the rest of the request (`parity`), else `quantum`
    leave    lag_i is kept, linux: within two requests
    join     v_i such that the lag is that again once it has joined: v_i = V - (lag_i / w_i)(W + w_i) / W,
             W = the others' weight; 1995: v_i = V, a client that leaves takes its lag along for good
    new      v_i = V; with `initial=half` (as Linux does it) its first deadline comes after half a request. Accounts
             of the rule count whole ones (LWN, "An EEVDF CPU scheduler for Linux", 2023), so that is the default

v_i at a join is rounded down to a grid of 2**-20, else denominators would grow without end; everything else is exact,
so a lag is off by at most w_i * 2**-20 per join.

Unit of fairness: normalized service. Guarantees for clients that stay (TR-95-22, theorem 1): -r_max < lag_i <
max(r_max, quantum); with requests of at most a quantum, |lag_i| < quantum, which no algorithm betters. A short request
buys an early deadline, not a larger share.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any

from fairq.core.clients import ClientPolicy
from fairq.core.eligible import Eligible
from fairq.core.job import Job
from fairq.core.number import Number, on_grid, quotient, to_json
from fairq.core.policy import Cause, Need, Param, Time, Unit, Why


class EEVDF(ClientPolicy):
    name = "eevdf"
    unit = Unit.NORMALIZED
    needs = frozenset({Need.PREEMPTION})
    per_flow = ("asked", "owed")
    memory = ("v", "begun", "due", "service", "resting")
    params = (
        Param(name="form", default="linux", choices=("linux", "1995"), text="param.eevdf.form"),
        Param(name="request", default=3, low=1, text="param.eevdf.request"),
        Param(name="quantum", default=1, low=1, text="param.eevdf.quantum"),
        Param(name="parity", default=True, text="param.eevdf.parity"),
        Param(name="initial", default="full", choices=("full", "half"), text="param.eevdf.initial"),
    )
    form: str
    request: int
    quantum: int
    parity: bool
    initial: str
    ranking: Eligible

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.ranking = Eligible()
        self.linux = self.form == "linux"
        self.v: dict[str, Number] = {}  # of those here
        self.begun: dict[str, Number] = {}  # ve of the present request
        self.due: dict[str, Number] = {}  # vd of it
        self.asked: dict[str, int] = {}  # r, of all clients
        self.owed: dict[str, Number] = {}  # V - v of those that have left
        self.service: Number = 0  # sum of w v
        self.resting: Number = 0  # V when nobody is here

    # The rule
    @property
    def virtual_time(self) -> Number:
        return quotient(self.service, self.total) if self.total else self.resting

    def rank(self, flow: str) -> tuple[Number, Number]:
        return (self.v if self.linux else self.begun)[flow], self.due[flow]

    def next_flow(self, now: Time) -> str | None:
        """Those who are eligible may all be running, on other processors; then the nearest to it goes."""
        if not self.ranking:
            return None
        return self.ranking.earliest(self.service, self.total) or self.ranking.nearest()

    def charged(self, flow: str, amount: int) -> None:
        self.service += amount
        self.v[flow] = v = self.v[flow] + self.normalized(flow, amount)
        if v >= self.due[flow]:
            self.ask(flow, self.asked[flow])

    def ask(self, flow: str, ticks: Number) -> None:
        """A request begins."""
        self.begun[flow] = v = self.v[flow]
        self.due[flow] = v + quotient(ticks, self.shares.get(flow, 1))

    def slice(self, job: Job) -> int:
        flow = job.flow
        rest = self.due[flow] - self.v[flow]
        if (weight := self.shares.get(flow, 1)) != 1 or type(rest) is not int:
            rest = ceil(rest * weight)
        return rest if self.linux and self.parity else min(rest, self.quantum)

    def preempts(self, running: Job, now: Time) -> bool:
        if not self.linux or self.parity or not self.came:
            return False
        flow = self.ranking.earliest(self.service, self.total)
        return flow in self.came and (self.due[flow], flow) < (self.due[running.flow], running.flow)

    # Who comes and goes
    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        if cause is not Cause.PREEMPTED:
            self.asked[job.flow] = job.slice or self.request
        super().arrive(job, now, cause)

    def entered(self, flow: str, cause: Cause) -> None:
        weight = self.weight(flow)
        others = self.total - weight
        mean = quotient(self.service, others) if others else self.resting
        if others and (owed := self.owed.get(flow, 0)):
            mean -= quotient(owed * self.total, others)
        self.v[flow] = on_grid(mean)
        self.service += quotient(weight * self.v[flow], 1)
        first = self.initial == "half" and flow not in self.owed
        self.ask(flow, quotient(self.asked[flow], 2) if first else self.asked[flow])

    def left(self, flow: str) -> None:
        weight, v = self.weight(flow), self.v.pop(flow)
        total = self.total + weight
        limit = quotient(2 * self.asked[flow], weight) if self.linux else 0
        lead, most = self.service - v * total, limit * total  # V - v and its limit, times the weight of all
        self.owed[flow] = limit if lead >= most else -limit if lead <= -most else quotient(lead, total)
        if not self.total:
            self.resting = quotient(self.service, total)
        self.service = quotient(self.service - weight * v, 1)
        del self.begun[flow], self.due[flow]

    def reweighted(self, flow: str, old: Number) -> None:
        """The lag stays: distances from V shrink as the weight grows."""
        new = self.weight(flow)
        if flow in self.owed:
            self.owed[flow] = quotient(self.owed[flow] * old, new)
        if flow in self.here:
            mean = quotient(self.service, self.total - new + old)
            self.service -= quotient(old * self.v[flow], 1)
            for tags in (self.v, self.begun, self.due):
                tags[flow] = on_grid(mean - quotient((mean - tags[flow]) * old, new))
            self.service += quotient(new * self.v[flow], 1)

    # What shells read
    def why(self, flow: str, rank: tuple[Number, Number]) -> Why:
        v, deadline = to_json(self.v[flow]), to_json(self.due[flow])
        return Why("earliest-eligible", {"deadline": deadline, "v": v, "virtual_time": to_json(self.virtual_time)})

    def lag(self, flow: str) -> Number:
        """Of a client that is here, in service."""
        return quotient(self.weight(flow) * (self.virtual_time - self.v[flow]), 1)

    def show(self) -> Mapping[str, Any]:
        here = sorted(self.here)
        return {
            "virtual_time": to_json(self.virtual_time),
            "v": {flow: to_json(self.v[flow]) for flow in here},
            "deadline": {flow: to_json(self.due[flow]) for flow in here},
            "lag": {flow: to_json(self.lag(flow)) for flow in here},
        }
