"""Earliest eligible virtual deadline first (Stoica, Abdel-Wahab, TR-95-22; Linux since 6.6).

    request  r_i ticks (the job's `slice`, else `request`): begins at ve_i = v_i, deadline vd_i = ve_i + r_i / w_i;
             when v_i has reached vd_i the next one begins
    select   argmin of (vd_i, id) over waiting clients that are eligible:
             form=linux  lag_i >= 0, tested without division: v_i * sum of w <= sum of w v
             form=1995   ve_i <= V: a request once eligible stays so until it is served
    slice    form=1995   `quantum` ticks; form=linux the rest of the request (`parity`), else `quantum`
    leave    linux: lag_i is kept, within two requests, until it joins again; 1995: it is forgotten, so that V of the
             others takes it up and nobody joins with a lag (of the report's ways the one without a memory)
    new      v_i = V; with `initial=half` (as Linux does it) its first deadline comes after half a request. Accounts
             of the rule count whole ones (LWN, "An EEVDF CPU scheduler for Linux", 2023), so that is the default

Here v_i is used / w_i, V the mean of all v_i weighted by w_i, lag_i = w_i (V - v_i). How they move when a client joins,
leaves or changes weight, and how exact they are: policies/lags.py.

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
from fairq.core.number import Number, quotient, to_json
from fairq.core.policy import Cause, Need, Param, Time, Unit, Why
from fairq.policies.lags import Client, Lags


class EEVDF(ClientPolicy):
    name = "eevdf"
    unit = Unit.NORMALIZED
    needs = frozenset({Need.PREEMPTION})
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

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.ranking = self.waiters = Eligible()
        self.linux = self.form == "linux"
        self.clients: dict[str, Client] = {}  # those that have come, and are not forgotten
        self.lags = Lags()

    # The rule
    def rank(self, flow: str) -> tuple[Number, Number]:
        client = self.clients[flow]
        return (client.v if self.linux else client.begun), client.due

    def next_flow(self, now: Time) -> str | None:
        """Those who are eligible may all be running, on other processors; then the nearest to it goes."""
        if not self.ranking:
            return None
        return self.waiters.earliest(self.lags.service, self.lags.weight) or self.waiters.nearest()

    def charged(self, flow: str, amount: int) -> None:
        client = self.clients[flow]
        self.lags.serve(client, amount)
        if client.v >= client.due:
            client.ask(client.asked)

    def slice(self, job: Job) -> int:
        client = self.clients[job.flow]
        rest = (client.due - client.v) * client.weight
        if type(rest) is not int:
            rest = ceil(rest)
        return rest if self.linux and self.parity else min(rest, self.quantum)

    def preempts(self, running: Job, now: Time) -> bool:
        if not self.linux or self.parity or not self.came:
            return False
        flow = self.waiters.earliest(self.lags.service, self.lags.weight)
        if flow is None or not self.comes(flow, now):
            return False
        return (self.clients[flow].due, flow) < (self.clients[running.flow].due, running.flow)

    # Who comes and goes
    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        if cause is not Cause.PREEMPTED:
            if job.flow not in self.clients:
                self.clients[job.flow] = Client()
            self.clients[job.flow].asked = job.slice or self.request
        super().arrive(job, now, cause)

    def entered(self, flow: str, cause: Cause) -> None:
        client = self.clients[flow]
        half = self.initial == "half" and client.owed is None
        self.lags.join(client, self.weight(flow))
        client.ask(quotient(client.asked, 2) if half else client.asked)

    def left(self, flow: str) -> None:
        client = self.clients[flow]
        self.lags.leave(client, quotient(2 * client.asked, client.weight) if self.linux else 0)

    def reweighted(self, flow: str, old: Number) -> None:
        if flow in self.clients:
            self.lags.reweigh(self.clients[flow], old, self.weight(flow), flow in self.here)

    def forget(self, flow: str) -> None:
        super().forget(flow)
        self.clients.pop(flow, None)

    # What shells read
    def why(self, flow: str, rank: tuple[Number, Number]) -> Why:
        client, mean = self.clients[flow], self.lags.virtual_time
        return Why(
            "earliest-eligible",
            {"deadline": to_json(client.due), "v": to_json(client.v), "virtual_time": to_json(mean)},
        )

    def show(self) -> Mapping[str, Any]:
        here = {flow: self.clients[flow] for flow in sorted(self.here)}
        return {
            "virtual_time": to_json(self.lags.virtual_time),
            "v": {flow: to_json(client.v) for flow, client in here.items()},
            "deadline": {flow: to_json(client.due) for flow, client in here.items()},
            "lag": {flow: to_json(self.lags.lag(client)) for flow, client in here.items()},
        }

    def state(self) -> dict[str, Any]:
        clients = {flow: client.state() for flow, client in sorted(self.clients.items())}
        return super().state() | {"clients": clients, "lags": self.lags.state()}

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        self.lags.restore(state["lags"])
        for flow, client in state["clients"].items():
            self.clients[flow] = Client()
            self.clients[flow].restore(client)
        super().restore(state, jobs)
