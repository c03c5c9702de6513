"""Least attained service (llm-d, program-aware fairness): a baseline, as its router ships it.

    select   argmax over clients with queued requests of
                 0.8 * (1 - a_i / max a) + 0.2 * (wait of i's first request / longest such wait), then the smaller id
    charge   a_i += w_p * input + w_q * output tokens       when a request has ended
    decay    a_i halves every `half_life` seconds

Unit of fairness: recent service. Guarantees: none. It learns what a request costs when it is over, so a client may fill
the batch before it counts; and its scores are floats. They move with time, so an engine asks again at every iteration.
"""

from collections.abc import Mapping
from typing import Any

from fairq.core.given import Given
from fairq.core.job import Generation, Job
from fairq.core.policy import NOTHING_WAITS, Decision, Layer, Need, Param, Pick, Stop, Time, Unit, View, Why
from fairq.core.queues import FlowPolicy

SECOND = 1_000_000_000
SERVICE, WAIT = 0.8, 0.2


class AttainedService(FlowPolicy):
    name = "attained-service"
    unit = Unit.SERVICE
    needs = frozenset({Need.TOKENS})
    params = (
        Param(name="half_life", default=60, low=1, text="param.attained_service.half_life"),
        Param(name="input", default=1, low=0, text="param.vtc.input"),
        Param(name="output", default=2, low=0, text="param.vtc.output"),
    )
    half_life: int
    input: int
    output: int

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.attained: dict[str, tuple[float, Time]] = {}  # service, and when it was that much

    def bind(self, layer: Layer) -> None:
        super().bind(layer)
        self.given = Given(layer.clock)

    def read(self, flow: str, now: Time) -> float:
        service, at = self.attained.get(flow, (0.0, now))
        return float(service * 0.5 ** ((now - at) / (self.half_life * SECOND)))

    def rank(self, flow: str) -> int:
        return 0  # the score is a matter of the moment

    def select(self, now: Time, view: View) -> Decision:
        if not self.ranking:
            return NOTHING_WAITS
        attained = {flow: self.read(flow, now) for flow in self.ranking}
        waits = {flow: max(now - self.head(flow).arrival, 0) for flow in self.ranking}
        most, longest = max(attained.values()) or 1.0, max(waits.values()) or 1
        scores = {flow: SERVICE * (1 - attained[flow] / most) + WAIT * (waits[flow] / longest) for flow in self.ranking}
        first = min(scores, key=lambda flow: (-scores[flow], flow))
        return Pick(self.head(first), Why("highest-score", {"attained": int(attained[first])}))

    def next_change(self, now: Time, view: View) -> Time | None:
        return now + 1 if len(self.ranking) > 1 else None

    # Service, which is charged when it is over
    def started(self, job: Job, now: Time, given: int = 0) -> None:
        self.given.start(job, given)

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        assert isinstance(job, Generation)
        if (tokens := self.given.stop(job, reason)) is not None:
            service = self.input * job.prompt + self.output * tokens
            self.attained[job.flow] = (self.read(job.flow, now) + service, now)

    # What shells read
    def show(self) -> Mapping[str, Any]:
        return {"attained": {flow: round(service) for flow, (service, _) in sorted(self.attained.items())}}

    def state(self) -> dict[str, Any]:
        attained = {flow: list(one) for flow, one in self.attained.items()}
        return super().state() | {"attained": attained, "given": self.given.state()}

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        self.given.restore(state["given"])
        self.attained = {flow: (service, at) for flow, (service, at) in state["attained"].items()}
        super().restore(state, jobs)
