"""Who is who in a pool: its setup, its tenants with their caps and pauses, and the entry of each living job."""

from fractions import Fraction

from msgspec import Struct, field
from msgspec.structs import replace

from fairq.core.cost import CostModel, Estimate, Settlement
from fairq.core.job import Flow, Request
from fairq.core.lifecycle import Outcome, State
from fairq.core.policy import Policy, Time, Why


class Setup(Struct, frozen=True, kw_only=True):
    """What a pool's scheduler is built from. It stands in the head of every ledger segment.

    policy             NAME or NAME:key=value,key=value
    wait_for_upstream  ns a request may wait while no upstream is usable
    """

    pool: str = "default"
    policy: str = "sfq"
    settlement: str = "fixed"
    placement: str = "least-loaded"
    cost: CostModel = CostModel()
    flows: list[Flow] = []
    default_flow: Flow = Flow(id="")
    wait_for_upstream: int = 0


class Entry(Struct, kw_only=True):
    """A living job and what was decided about it."""

    request: Request
    state: State = State.WAITING
    upstream: str = ""
    attempts: int = 0
    dispatched: Time = 0
    estimate: Estimate = Estimate(0, 0, 0)
    charge: int = 0
    contended: bool = False
    epoch: int = 0
    why: Why = Why("")
    failed: Outcome = Outcome.FAILED_CONNECT
    story: list[str] = field(default_factory=lambda: ["Admitted"])


class Tenant(Struct):
    flow: Flow
    configured: bool = False
    waiting: int = 0
    inflight: int = 0

    @property
    def open(self) -> bool:
        cap = self.flow.max_inflight
        return not self.flow.paused and (cap is None or self.inflight < cap)


class Tenants:
    """Counts per tenant, and the policy's view of who may be dispatched from.

    Tenants that are not configured are forgotten when nothing of theirs is left, so that made-up ids cost nothing.
    """

    def __init__(self, setup: Setup, policy: Policy, settlement: Settlement) -> None:
        self.policy, self.settlement = policy, settlement
        self.all: dict[str, Tenant] = {}
        self.reconfigure(setup, 0)

    def reconfigure(self, setup: Setup, now: Time) -> None:
        self.default = setup.default_flow
        flows = {flow.id: flow for flow in setup.flows}
        for name in [*self.all, *flows]:
            tenant = self.all.get(name)
            if tenant is None:
                tenant = self.all[name] = Tenant(flows[name])
            flow = flows.get(name) or replace(self.default, id=name)
            tenant.configured = name in flows
            self._change(tenant, replace(flow, paused=tenant.flow.paused or flow.paused), now)
        for name in list(self.all):
            self._forget(name)

    def pause(self, name: str, paused: bool, now: Time) -> None:
        tenant = self._tenant(name, now)
        self._change(tenant, replace(tenant.flow, paused=paused), now)
        self._forget(name)

    def arrive(self, entry: Entry, now: Time) -> None:
        request = entry.request
        tenant = self._tenant(request.flow, now)
        tenant.waiting += 1
        was = self.policy.is_backlogged(request.flow)
        self.policy.arrive(request, now)
        if not was and tenant.open:
            self.settlement.joined(request.flow, self.policy.lead)

    def withdraw(self, entry: Entry, now: Time) -> None:
        """A waiting job leaves unserved."""
        request = entry.request
        self.policy.cancel(request, now)
        self.all[request.flow].waiting -= 1
        self._forget(request.flow)

    def dispatched(self, entry: Entry, now: Time) -> None:
        tenant = self.all[entry.request.flow]
        tenant.waiting -= 1
        tenant.inflight += 1
        if tenant.inflight == tenant.flow.max_inflight:
            self.policy.flow_open(tenant.flow.id, False, now)

    def left(self, entry: Entry, now: Time) -> None:
        """A dispatched job holds no slot any more."""
        tenant = self.all[entry.request.flow]
        was_open = tenant.open
        tenant.inflight -= 1
        if tenant.open and not was_open:
            self._open(tenant, now)
        self._forget(tenant.flow.id)

    def _tenant(self, name: str, now: Time) -> Tenant:
        tenant = self.all.get(name)
        if tenant is None:
            tenant = self.all[name] = Tenant(replace(self.default, id=name))
            self.policy.flow_changed(tenant.flow, now)
            if not tenant.open:
                self.policy.flow_open(name, False, now)
        return tenant

    def _change(self, tenant: Tenant, flow: Flow, now: Time) -> None:
        tenant.flow = flow
        self.policy.flow_changed(flow, now)
        if tenant.open:
            self._open(tenant, now)
        else:
            self.policy.flow_open(flow.id, False, now)

    def _open(self, tenant: Tenant, now: Time) -> None:
        name = tenant.flow.id
        was = self.policy.is_backlogged(name)
        self.policy.flow_open(name, True, now)
        if not was and self.policy.is_backlogged(name):
            self.settlement.joined(name, self.policy.lead)

    def _forget(self, name: str) -> None:
        tenant = self.all[name]
        if not (tenant.configured or tenant.waiting or tenant.inflight or tenant.flow.paused):
            del self.all[name]
            self.policy.forget(name)

    def weight(self, name: str) -> Fraction:
        tenant = self.all.get(name)
        return (tenant.flow if tenant else self.default).weight
