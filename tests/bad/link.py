"""Packet schedulers with the mistakes that public simulators make."""

from fairq.core.job import Job
from fairq.core.number import Number
from fairq.core.policy import Time
from fairq.policies.drr import DRR, Ring
from fairq.policies.fluid import Fluid
from fairq.policies.wfq import WFQ


class PacketClock(Fluid):
    """V from the packets that wait or are being sent, not from the fluid: a flow counts until its last one is sent."""

    def advance(self, now: int) -> int:  # type: ignore[override]
        served = (now - self.at) * self.speed
        self.at = now
        if self.weight:
            self.virtual_time += served / self.weight  # type: ignore[operator]
        return 1


class PacketClockWFQ(WFQ):
    """WFQ with the virtual time of the packet system."""

    def bind(self, layer: object) -> None:
        super().bind(layer)  # type: ignore[arg-type]
        self.fluid = PacketClock(self.layer)

    def charge(self, job: Job, amount: int, now: Time) -> None:
        self.fluid.advance(now)
        super().charge(job, amount, now)
        if not self.queues[job.flow]:
            del self.fluid.ends[job.flow]
            self.fluid.heap = [entry for entry in self.fluid.heap if entry[1] != job.flow]
            self.fluid.weight -= self.fluid.weights.pop(job.flow)


class Hoard(Ring):
    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, Number] = {}

    def put(self, flow: str, deficit: Number) -> None:
        super().put(flow, self.kept.pop(flow, deficit))

    def drop(self, flow: str) -> None:
        if flow in self:
            self.kept[flow] = self.key[flow]
        super().drop(flow)


class HoardingDRR(DRR):
    """DRR whose deficits outlive the backlog: a flow that comes back spends what it did not use."""

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.ring = self.ranking = Hoard()
