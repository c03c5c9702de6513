"""Who is who in a pool: its tenants with their caps and pauses."""

from typing import Final

from msgspec.structs import replace

from fairq.core.job import Flow, Request
from fairq.core.policy import Policy, Stop, Time
from fairq.core.settlement import Settlement
from fairq.core.setup import Setup

FINISHED: Final = Stop.FINISHED


class Tenant:
    __slots__ = ("configured", "flow", "inflight", "waiting")

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.configured = False
        self.waiting = self.inflight = 0

    @property
    def open(self) -> bool:
        flow = self.flow
        return not flow.paused and (flow.max_inflight is None or self.inflight < flow.max_inflight)


class Tenants:
    """Counts per tenant, and the policy's view of who may be dispatched from.

    A tenant is backlogged when it is open and something of it waits. Tenants that are not configured are forgotten when
    nothing of theirs is left, so that made-up ids cost nothing.
    """

    def __init__(self, setup: Setup, policy: Policy, settlement: Settlement) -> None:
        self.policy, self.settlement = policy, settlement
        self.all: dict[str, Tenant] = {}
        self.waiting = 0
        self.reconfigure(setup, 0)

    def reconfigure(self, setup: Setup, now: Time) -> None:
        """Weights and caps change at once, also of jobs that wait. A pause stays until it is lifted. O(tenants)."""
        self.default = setup.default_flow
        flows = {flow.id: flow for flow in setup.flows}
        for name in [*self.all, *(name for name in flows if name not in self.all)]:
            tenant = self.all.get(name)
            if tenant is None:
                tenant = self._enter(flows[name], now)
            flow = flows.get(name) or replace(self.default, id=name)
            tenant.configured = name in flows
            self._change(tenant, replace(flow, paused=tenant.flow.paused or flow.paused), now)
            self._forget(tenant)

    def pause(self, name: str, paused: bool, now: Time) -> None:
        tenant = self.all.get(name) or self._enter(replace(self.default, id=name), now)
        self._change(tenant, replace(tenant.flow, paused=paused), now)
        self._forget(tenant)

    def arrive(self, request: Request, now: Time) -> None:
        name = request.flow
        tenant = self.all.get(name) or self._enter(replace(self.default, id=name), now)
        tenant.waiting += 1
        self.waiting += 1
        self.policy.arrive(request, now)
        if tenant.waiting == 1 and tenant.open:
            self.settlement.joined(name, self.policy.lead)

    def withdraw(self, request: Request, now: Time) -> None:
        """A waiting job leaves unserved."""
        self.policy.cancel(request, now)
        tenant = self.all[request.flow]
        tenant.waiting -= 1
        self.waiting -= 1
        self._forget(tenant)

    def dispatched(self, name: str, now: Time) -> None:
        """A job of this tenant was picked."""
        tenant = self.all[name]
        tenant.waiting -= 1
        self.waiting -= 1
        tenant.inflight += 1
        if tenant.inflight == tenant.flow.max_inflight:
            self.policy.flow_open(name, False, now)

    def left(self, request: Request, now: Time) -> None:
        """A dispatched job runs no more and will not be tried again."""
        self.policy.stop(request, now, FINISHED)
        tenant = self.all[request.flow]
        tenant.inflight -= 1
        cap = tenant.flow.max_inflight
        if cap is not None and tenant.inflight == cap - 1 and tenant.open:
            self._open(tenant, now)
        if not tenant.waiting:
            self._forget(tenant)

    def _enter(self, flow: Flow, now: Time) -> Tenant:
        tenant = self.all[flow.id] = Tenant(flow)
        self.policy.flow_changed(flow, now)
        if not tenant.open:
            self.policy.flow_open(flow.id, False, now)
        return tenant

    def _change(self, tenant: Tenant, flow: Flow, now: Time) -> None:
        was_open = tenant.open
        tenant.flow = flow
        self.policy.flow_changed(flow, now)
        if tenant.open and not was_open:
            self._open(tenant, now)
        elif was_open and not tenant.open:
            self.policy.flow_open(flow.id, False, now)

    def _open(self, tenant: Tenant, now: Time) -> None:
        name = tenant.flow.id
        self.policy.flow_open(name, True, now)
        if tenant.waiting:
            self.settlement.joined(name, self.policy.lead)

    def _forget(self, tenant: Tenant) -> None:
        if not (tenant.waiting or tenant.inflight or tenant.configured or tenant.flow.paused):
            del self.all[tenant.flow.id]
            self.policy.forget(tenant.flow.id)
