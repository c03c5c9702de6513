"""A pool driven by hand: it numbers and times events, keeps books of its own, and checks what must hold after each."""

from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tests.oracle import JointService

from fairq import placements, policies
from fairq.core import events as ev
from fairq.core import snapshot
from fairq.core.commands import Abort, AnyCommand, Dispatch, Ended, Reject
from fairq.core.cost import CostModel, Source, Usage
from fairq.core.job import Flow, Request
from fairq.core.lifecycle import Outcome
from fairq.core.number import TAG_BITS, fixed
from fairq.core.policy import Policy
from fairq.core.scheduler import Scheduler
from fairq.core.setup import Setup
from fairq.policies.sfq import SFQ

TOKENS = CostModel(alpha=Fraction(0), beta=Fraction(1), default_output=100)  # a request costs its output tokens
SECOND = 1_000_000_000


def scheduler(setup: Setup, policy: Policy | None = None) -> Scheduler:
    return Scheduler(setup, policy or policies.make(setup.policy), placements.make(setup.placement))


class Pool:
    """
    waiting, running  by id, in order, as the commands said
    served, charged   actual output tokens, and cost units, by tenant
    fair              whether the pairwise bound is asserted at each dispatch; None: if the policy is SFQ
    """

    def __init__(
        self,
        slots: int | Mapping[str, int] = 1,
        setup: Setup | None = None,
        validate: bool = True,
        policy: Policy | str = "sfq",
        fair: bool | None = None,
        **terms: Any,
    ) -> None:
        spec, made = (policy, None) if isinstance(policy, str) else (policy.name, policy)
        self.setup = setup or Setup(**{"cost": TOKENS, "policy": spec, **terms})
        self.scheduler = scheduler(self.setup, made)
        self.validate = validate
        self.now = 0
        self.waiting: OrderedDict[str, Request] = OrderedDict()
        self.queues: dict[str, OrderedDict[str, Request]] = defaultdict(OrderedDict)
        self.inflight: dict[str, int] = defaultdict(int)
        self.running: dict[str, Dispatch] = {}
        self.retrying: dict[str, Dispatch] = {}
        self.ended: dict[str, Ended] = {}
        self.orders: list[Dispatch] = []  # first attempts
        self.charged: dict[str, int] = defaultdict(int)
        self.served: dict[str, int] = defaultdict(int)
        self.events: list[ev.AnyEvent] = []
        self.joint = JointService()
        self.largest = 0  # normalized charge of this busy period, on the grid of tags
        self.fair = isinstance(self.scheduler.policy, SFQ) if fair is None else fair
        self.credit = getattr(self.scheduler.policy, "credit", 0) << TAG_BITS
        self.flows = {flow.id: flow for flow in self.setup.flows}
        self.paused: set[str] = {flow.id for flow in self.setup.flows if flow.paused}
        self.count = 0
        for name, size in ({"u1": slots} if isinstance(slots, int) else slots).items():
            self.upstream(name, size)

    # Events
    def send(self, kind: type[ev.Event], **fields: Any) -> list[AnyCommand]:
        event: Any = kind(seq=self.scheduler.seq + 1, time=self.now, **fields)
        commands = self.scheduler.handle(event)
        self.events.append(event)
        self._note(event, commands)
        if self.validate:
            snapshot.validate(self.scheduler)
        self.check_band()
        return commands

    def admit(self, tenant: str, id_: str = "", wait: int = 0, **fields: Any) -> str:
        """-> the id of the new request; `wait` ns until it expires."""
        self.count += 1
        id_ = id_ or f"{tenant}{self.count}"
        expires = self.now + wait if wait else 0
        request = Request(id=id_, flow=tenant, seq=self.count, arrival=self.now, expires=expires, **fields)
        self.send(ev.Admitted, request=request)
        return id_

    def finish(
        self, id_: str, output: int = 100, outcome: Outcome = Outcome.COMPLETED, source: Source = Source.UPSTREAM
    ) -> list[AnyCommand]:
        return self.send(ev.Finished, id=id_, outcome=outcome, usage=Usage(1, output, 0, source), status=200)

    def upstream(self, name: str, slots: int, healthy: bool = True, draining: bool = False) -> list[AnyCommand]:
        return self.send(ev.UpstreamChanged, upstream=name, slots=slots, healthy=healthy, draining=draining)

    def reconfigure(self, flows: list[Flow], default: Flow | None = None, cost: CostModel | None = None) -> None:
        self.send(
            ev.Reconfigured,
            flows=flows,
            default_flow=default or self.setup.default_flow,
            wait_for_upstream=self.setup.wait_for_upstream,
            cost=cost or self.scheduler.estimator.model,
        )

    def pass_time(self, nanoseconds: int) -> list[AnyCommand]:
        self.now += nanoseconds
        return self.send(ev.Tick)

    def finish_all(self, rounds: int) -> None:
        """Finish the oldest running request, so many times."""
        for _ in range(rounds):
            self.finish(next(iter(self.running)))

    # What happened
    def order(self) -> str:
        return "".join(dispatch.tenant for dispatch in self.orders)

    def outcome(self, id_: str) -> Outcome:
        return self.ended[id_].outcome

    def flow(self, tenant: str) -> Flow:
        return self.flows.get(tenant, self.scheduler.setup.default_flow)

    # Books of its own
    def _backlogged(self, tenant: str) -> bool:
        cap = self.flow(tenant).max_inflight
        open_ = tenant not in self.paused and (cap is None or self.inflight[tenant] < cap)
        return open_ and bool(self.queues[tenant])

    def _judge(self, tenant: str) -> None:
        backlogged = self._backlogged(tenant)
        if backlogged and tenant not in self.joint.backlogged:
            self.joint.joined(tenant)
        elif not backlogged and tenant in self.joint.backlogged:
            self.joint.left(tenant)
        if not self.queues[tenant] and not self.inflight[tenant]:
            del self.queues[tenant], self.inflight[tenant]
        if not self.waiting:
            self.largest = self.joint.widest = 0

    def _leaves_queue(self, id_: str) -> None:
        tenant = self.waiting.pop(id_).flow
        del self.queues[tenant][id_]

    def _note(self, event: Any, commands: list[AnyCommand]) -> None:
        match event:
            case ev.Admitted():
                request = event.request
                self.waiting[request.id] = self.queues[request.flow][request.id] = request
                self._judge(request.flow)
            case ev.Paused() | ev.Resumed():
                (self.paused.add if isinstance(event, ev.Paused) else self.paused.discard)(event.tenant)
                self._judge(event.tenant)
            case ev.SlotFreed():
                self._leaves_slot(self.running.pop(event.id).tenant)
            case ev.AttemptFailed():
                self.retrying[event.id] = self.running.pop(event.id)
            case ev.Finished() if event.id in self.running:
                self._leaves_slot(self.running.pop(event.id).tenant)
            case ev.Reconfigured():
                for tenant in self.joint.backlogged.copy():  # intervals are cut
                    self.joint.left(tenant)
                self.flows = {flow.id: flow for flow in event.flows}
                self.paused |= {flow.id for flow in event.flows if flow.paused}
                for tenant in list(self.queues):
                    self._judge(tenant)
        for command in commands:
            assert (command.seq, command.time) == (event.seq, event.time)
            match command:
                case Dispatch():
                    self._dispatched(command)
                case Ended():
                    self._ended(command)
                case Reject():
                    assert command.id in self.waiting or command.id in self.retrying
                case Abort():
                    assert command.id in self.running

    def _leaves_slot(self, tenant: str) -> None:
        self.inflight[tenant] -= 1
        self._judge(tenant)

    def _ended(self, command: Ended) -> None:
        assert command.id not in self.ended
        self.ended[command.id] = command
        if command.id in self.waiting:
            self._leaves_queue(command.id)
            self._judge(command.tenant)
        elif command.id in self.retrying:
            del self.retrying[command.id]
            self._leaves_slot(command.tenant)
        self.served[command.tenant] += command.usage.completion

    def _dispatched(self, command: Dispatch) -> None:
        id_, tenant = command.id, command.tenant
        self.running[id_] = command
        if command.attempt > 1:
            del self.retrying[id_]
            assert command.charge == 0
            return
        assert tenant in self.joint.backlogged
        assert id_ == next(iter(self.queues[tenant]))  # FIFO inside a tenant
        assert command.contended == bool(self.joint.backlogged - {tenant})
        self.orders.append(command)
        self.charged[tenant] += command.charge
        above, below = self.flow(tenant).weight.as_integer_ratio()
        normalized = fixed(command.charge, above, below)
        self.largest = max(self.largest, normalized)
        self.joint.served(tenant, normalized)
        if self.fair:
            assert self.joint.widest <= 2 * (self.largest + self.credit)
        self._leaves_queue(id_)
        self.inflight[tenant] += 1
        self._judge(tenant)

    def check_band(self) -> None:
        """V <= M_i <= V + q for every backlogged tenant."""
        policy = self.scheduler.policy
        if isinstance(policy, SFQ):
            for tenant in self.joint.backlogged:
                assert -self.credit <= policy.meters[tenant] - policy.virtual_time <= self.largest
