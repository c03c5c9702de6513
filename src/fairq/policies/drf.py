"""Dominant resource fairness (Ghodsi et al., NSDI 2011), weighted, by progressive filling.

    s_i     = max over resources r of (what the running tasks of i hold of r) / (all there is of r)
    select  the user of least (s_i / w_i, id); if its next task does not fit,
              misfit=stop   nobody goes (the paper: the cluster is full)
              misfit=skip   the next user in this order whose task fits

`by` names a single resource to count instead of the dominant one: per-resource fairness, for comparison.

Unit of fairness: dominant share / weight. With tasks that can be divided at will: nobody gets less than from a cluster
of its own of size w_i / (sum of w) (sharing incentive), nobody would rather have another's share (envy-freeness), no
share can grow but at another's cost (Pareto efficiency), and lying about one's demand gains nothing (strategy-
proofness). With whole tasks: each to within about one task, and Pareto only with `skip`, which in turn lets small tasks
overtake a large one for ever. Only running tasks count: no memory, so no claim for times past. O(log users) for each
decision, with `skip` O(users log users).
"""

from collections.abc import Mapping
from typing import Any

from fairq.core.errors import UnknownName
from fairq.core.job import Flow, Job, Task
from fairq.core.number import Number, quotient, to_json
from fairq.core.policy import NOTHING_WAITS, Decision, Layer, Need, Param, Pick, Stop, Time, Unit, View, Wait, Why
from fairq.core.queues import ONE, FlowPolicy


class DRF(FlowPolicy):
    name = "drf"
    unit = Unit.DOMINANT_SHARE
    needs = frozenset({Need.CAPACITY})
    memory = ("held",)
    params = (
        Param(name="misfit", default="stop", choices=("stop", "skip"), text="param.drf.misfit"),
        Param(name="by", default="dominant", text="param.drf.by"),
    )
    misfit: str
    by: str

    def bind(self, layer: Layer) -> None:
        super().bind(layer)
        if self.by != "dominant" and self.by not in layer.capacity:
            raise UnknownName("drf.by", self.by, ["dominant", *layer.capacity])
        self.held: dict[str, dict[str, int]] = {}  # user -> resource -> what its running tasks hold

    def share(self, user: str) -> tuple[Number, str]:
        """The share that counts, and of which resource it is; of several, the first by name."""
        held, capacity = self.held.get(user, {}), self.layer.capacity
        if self.by != "dominant":
            return quotient(held.get(self.by, 0), capacity[self.by]), self.by
        shares = {resource: quotient(amount, capacity[resource]) for resource, amount in sorted(held.items())}
        resource = max(shares, key=shares.__getitem__, default="")
        return shares.get(resource, 0), resource

    def rank(self, flow: str) -> Number:
        above, below = self.weights.get(flow, ONE)
        return quotient(self.share(flow)[0] * below, above)

    def select(self, now: Time, view: View) -> Decision:
        first = self.ranking.first()
        if first is None:
            return NOTHING_WAITS
        job = self.head(first[1])
        if not view.fits(job) and self.misfit == "skip":
            order = sorted((rank, user) for user, rank in self.ranking.key.items())
            first = next((entry for entry in order if view.fits(self.head(entry[1]))), first)
            job = self.head(first[1])
        if not view.fits(job):
            return Wait(Why("does-not-fit", {"user": first[1]}))
        return Pick(job, self.why(first[1], first[0]))

    def why(self, flow: str, rank: Number) -> Why:
        share, resource = self.share(flow)
        return Why("least-share", {"share": to_json(share), "resource": resource})

    def commit(self, decision: Decision, now: Time) -> None:
        if isinstance(decision, Pick):
            self.hold(decision.job, 1)
        super().commit(decision, now)

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        self.hold(job, -1)
        self.reorder(job.flow)

    def hold(self, job: Job, sign: int) -> None:
        """`job` takes what it demands (1), or gives it back (-1)."""
        held = self.held.setdefault(job.flow, {})
        for resource, amount in job.demand.items() if isinstance(job, Task) else ():
            held[resource] = held.get(resource, 0) + sign * amount
        if not any(held.values()):
            del self.held[job.flow]

    def reorder(self, user: str) -> None:
        if user in self.ranking:
            self.ranking.put(user, self.rank(user))

    def flow_changed(self, flow: Flow, now: Time) -> None:
        super().flow_changed(flow, now)
        self.reorder(flow.id)

    def show(self) -> Mapping[str, Any]:
        users = sorted(self.held.keys() | self.ranking.key.keys())
        return {"shares": {user: to_json(self.share(user)[0]) for user in users}}
