"""The article's router in logical time: one dispatch per step, jobs charged their size, arrivals at given steps."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from fairq.core.job import Flow, Job
from fairq.core.policy import ROOMY, Layer, Need, Pick, Policy
from fairq.policies import make


@dataclass
class Tenant:
    id: str
    cost: int
    count: int
    join: int = 0
    weight: int | Fraction = 1


@dataclass
class Run:
    order: str = ""
    clock: list[object] = field(default_factory=list)  # V at each dispatch
    policy: Policy = field(default_factory=Policy)


def bound(spec: str, tenants: Sequence[Tenant] = ()) -> Policy:
    policy = make(spec)
    policy.bind(Layer(name="router", provides=frozenset({Need.SIZE})))
    for tenant in tenants:
        policy.flow_changed(Flow(id=tenant.id, weight=Fraction(tenant.weight)), 0)
    return policy


def run(spec: str, tenants: Sequence[Tenant]) -> Run:
    policy = bound(spec, tenants)
    result = Run(policy=policy)
    coming = sorted(tenants, key=lambda tenant: tenant.join)
    step = seq = 0
    while True:
        for tenant in [tenant for tenant in coming if tenant.join <= step]:
            coming.remove(tenant)
            for _ in range(tenant.count):
                seq += 1
                policy.arrive(Job(id=f"{tenant.id}{seq}", flow=tenant.id, seq=seq, size=tenant.cost), step)
        decision = policy.select(step, ROOMY)
        if not isinstance(decision, Pick):
            if not coming:
                return result
            step = coming[0].join
            continue
        policy.commit(decision, step)
        result.order += decision.job.flow
        result.clock.append(getattr(policy, "virtual_time", None))
        policy.charge(decision.job, decision.job.size or 0, step)
        policy.validate()
        step += 1
