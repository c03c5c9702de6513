"""Flows that come and go as clients of a processor (ClientPolicy), for proportional share."""

from collections.abc import Mapping
from typing import Any

from fairq.core.errors import check
from fairq.core.job import Flow, Job
from fairq.core.number import Number, quotient
from fairq.core.policy import Cause, Layer, Need, Stop, Time
from fairq.core.queues import FlowPolicy


class ClientPolicy(FlowPolicy):
    """A flow is *here* while it has work waiting or, where the layer preempts, running: it may come back at once.

    Proportional share needs to know the difference between a client that is running and one that has left. A subclass
    hooks `entered` (with its weight already in `total`), `left` (with its weight already out) and `reweighted`.
    """

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.here: dict[str, None] = {}
        self.total: Number = 0  # weight of all that are here
        self.shares: dict[str, Number] = {}  # weights, as ints where they are whole
        self.running: dict[str, int] = {}  # jobs of a flow that run and may come back
        self.comes_back = False
        self.came: dict[str, Time] = {}  # who has entered since the last choice, and when
        self.cause = Cause.NEW  # of the arrival that is being handled

    # What a subclass says
    def entered(self, flow: str, cause: Cause) -> None: ...
    def left(self, flow: str) -> None: ...
    def reweighted(self, flow: str, old: Number) -> None: ...

    # The contract
    def bind(self, layer: Layer) -> None:
        super().bind(layer)
        self.comes_back = Need.PREEMPTION in layer.provides

    def flow_changed(self, flow: Flow, now: Time) -> None:
        old = self.weight(flow.id)
        super().flow_changed(flow, now)
        self.shares[flow.id] = new = quotient(flow.weight, 1)
        if new == old:
            return
        if flow.id in self.here:
            self.total = quotient(self.total + new - old, 1)
        self.reweighted(flow.id, old)
        if flow.id in self.ranking:
            self.ranking.put(flow.id, self.rank(flow.id))

    def flow_open(self, flow: str, open_: bool, now: Time) -> None:
        self.cause = Cause.NEW
        super().flow_open(flow, open_, now)
        self.settle(flow)

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        self.cause = cause
        super().arrive(job, now, cause)
        if self.closed:
            self.settle(job.flow)

    def cancel(self, job: Job, now: Time) -> None:
        super().cancel(job, now)
        self.settle(job.flow)

    def joined(self, flow: str, now: Time) -> None:
        if flow not in self.here:
            self.here[flow] = None
            self.total = quotient(self.total + self.weight(flow), 1)
            self.entered(flow, self.cause)
            self.came[flow] = now

    def picked(self, flow: str) -> None:
        if self.came:
            self.came.clear()
        if self.comes_back:
            self.running[flow] = self.running.get(flow, 0) + 1

    def charge(self, job: Job, amount: int, now: Time) -> None:
        super().charge(job, amount, now)
        if not self.comes_back:
            self.settle(job.flow)

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        flow, running = job.flow, self.running
        if (others := running.get(flow, 0) - 1) > 0:
            running[flow] = others
        else:
            running.pop(flow, None)
        if reason is Stop.FINISHED or reason is Stop.BLOCKED:
            self.settle(flow)

    # What subclasses use
    def comes(self, flow: str, now: Time) -> bool:
        """Has it entered at this very moment? Then, and never again, it may take the place of one that runs."""
        return flow in self.came and bool(self.came[flow] == now)

    def weight(self, flow: str) -> Number:
        return self.shares.get(flow, 1)

    def forget(self, flow: str) -> None:
        super().forget(flow)
        self.shares.pop(flow, None)

    def settle(self, flow: str) -> None:
        """It leaves if nothing keeps it here."""
        if flow in self.here and flow not in self.ranking and flow not in self.running:
            del self.here[flow]
            self.came.pop(flow, None)
            self.total = quotient(self.total - self.weight(flow), 1)
            self.left(flow)

    # State
    def state(self) -> dict[str, Any]:
        here = {"here": list(self.here), "running": dict(self.running), "came": dict(self.came)}
        return super().state() | here

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        self.here, self.running = dict.fromkeys(state["here"]), dict(state["running"])
        self.came = dict(state["came"])
        self.shares = {flow: quotient(above, below) for flow, (above, below) in state["weights"].items()}
        self.total = quotient(sum(map(self.weight, self.here)), 1)
        super().restore(state, jobs)

    def validate(self) -> None:
        super().validate()
        kept = set(self.ranking) | set(self.running)
        check(kept <= set(self.here), f"here are {sorted(self.here)}, but {sorted(kept)} wait or run")
        check(self.total == sum(map(self.weight, self.here)), f"the weights here are not {self.total}")
