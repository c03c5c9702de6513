"""Meters: a tag for each flow and one virtual time, kept small and few (MeterPolicy)."""

from collections.abc import Mapping
from typing import Any

from fairq.core.number import Number
from fairq.core.policy import Layer
from fairq.core.queues import ONE, FlowPolicy

REBASE_AT = 1 << 62  # tags stay machine integers
KEEP = 1024  # meters of flows at rest that are kept before a sweep


class MeterPolicy(FlowPolicy):
    """Who goes first, and how meters move, is the subclass's rule; what is here changes no decision.

    Only M - V matters, so all tags may be shifted at once (`rebase`), and who rests at or below the level at which it
    would join again is as good as new and need not be remembered (`sweep`). Both happen only where the layer allows it,
    never where tags are shown beside the article's.

    meters        M_i, the start tag of the flow's next job
    virtual_time  V
    highest       max M
    origin        the meter of a flow that nothing is remembered of
    right         how far below V a flow may join
    """

    memory = ("meters", "virtual_time", "highest", "origin", "sweep_at")

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.meters: dict[str, Number] = {}
        self.virtual_time: Number = 0
        self.highest: Number = 0
        self.origin: Number = 0
        self.right: Number = 0
        self.sweep_at = KEEP

    def bind(self, layer: Layer) -> None:
        super().bind(layer)
        self.tag = layer.tag

    def remember(self, flow: str) -> Number:
        """The meter of a flow that nothing was remembered of."""
        if len(self.meters) >= self.sweep_at:
            self.sweep()
        self.meters[flow] = self.origin
        return self.origin

    def advance(self, meter: Number) -> None:
        """V goes on to `meter`."""
        self.virtual_time = meter
        if meter > REBASE_AT:
            self.rebase()

    def rebase(self) -> None:
        if not self.layer.rebase:
            return
        by, self.virtual_time = self.virtual_time, 0
        self.highest -= by
        self.origin -= by
        self.meters = {flow: meter - by for flow, meter in self.meters.items()}
        self.sweep()
        for flow in self.ranking:
            self.ranking.put(flow, self.meters[flow])

    def sweep(self) -> None:
        if self.layer.rebase:
            joins_at = self.virtual_time - self.right
            self.meters = {f: m for f, m in self.meters.items() if m > joins_at or self.queues.get(f)}
        self.sweep_at = 2 * len(self.meters) + KEEP  # so that a sweep is paid for by the joins before it

    # What shells read
    def lead(self, flow: str) -> int:
        ahead = self.meters.get(flow, self.origin) - self.virtual_time
        unit = self.layer.normalize(1 << 20, *self.weights.get(flow, ONE))
        return int((ahead << 20) // unit) if isinstance(ahead, int) else int(ahead * (1 << 20) // unit)

    def show(self) -> Mapping[str, Any]:
        return {
            "virtual_time": self.tag(self.virtual_time),
            "meters": {flow: self.tag(meter) for flow, meter in sorted(self.meters.items())},
        }
