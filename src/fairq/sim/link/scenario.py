"""What a link simulation is given: flows, their packets, and how the link behaves. Sizes and times are integers."""

from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fairq.core.job import Job
from fairq.sim.link.packets import jobs_of
from fairq.sim.scenario import Name, Natural, Part, Positive, Ratio, Scenario, broken

MOST_PACKETS = 1_000_000


class Flow(Part):
    """weight  its share; buffer: how many of its packets may wait, more are dropped on arrival"""

    id: Name
    weight: Ratio = Fraction(1)
    buffer: Positive | None = None


class Packet(Part):
    """`count` packets of one flow, the first at `arrival`, the others `every` later each.

    size      what it takes of the link
    estimate  what the policy is told instead; what is charged is the size
    """

    flow: Name
    arrival: Natural
    size: Positive
    estimate: Positive | None = None
    count: Positive = 1
    every: Natural = 0


class Stall(Part):
    """From `at` on the link sends nothing for `for`; a packet under way goes on afterwards."""

    at: Natural
    for_: Positive = Field(alias="for")


class RandomStalls(Part):
    """Work for 1..2*every-1, stall for 1..2*for-1, both drawn anew each time from the seed."""

    every: Positive
    for_: Positive = Field(alias="for")


class LinkScenario(Scenario):
    """rate    size sent per unit of time
    flows   none: every flow that sends has weight 1
    buffer  how many packets may wait in all
    """

    layer: Literal["link"] = "link"
    rate: Ratio = Fraction(1)
    flows: Annotated[tuple[Flow, ...], Field(max_length=100_000)] = ()
    packets: Annotated[tuple[Packet, ...], Field(min_length=1, max_length=MOST_PACKETS)]
    buffer: Positive | None = None
    stalls: tuple[Stall, ...] = ()
    random_stalls: RandomStalls | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> "LinkScenario":
        known: set[str] = set()
        for index, flow in enumerate(self.flows):
            if flow.id in known:
                raise broken("given twice", "flows", index, "id")
            known.add(flow.id)
        for index, packet in enumerate(self.packets):
            if known and packet.flow not in known:
                raise broken("there is no such flow", "packets", index, "flow")
        if (packets := sum(packet.count for packet in self.packets)) > MOST_PACKETS:
            raise broken(f"{packets} in all, more than {MOST_PACKETS}", "packets")
        for index, (before, after) in enumerate(pairwise(self.stalls), 1):
            if after.at < before.at + before.for_:
                raise broken("must come after the stall before it has ended", "stalls", index, "at")
        if self.stalls and self.random_stalls:
            raise broken("cannot go with stalls", "random_stalls")
        return self

    def all_flows(self) -> tuple[Flow, ...]:
        if self.flows:
            return self.flows
        return tuple(Flow.model_construct(id=id_) for id_ in dict.fromkeys(packet.flow for packet in self.packets))

    @cached_property
    def jobs(self) -> list[Job]:
        """Every packet, in order of arrival; those of one instant as they are listed."""
        return jobs_of(self.packets)

    def run(self, policy: str, record: str | None = None) -> Any:
        from fairq.sim.link.run import LinkRun

        return LinkRun(self, policy, record)
