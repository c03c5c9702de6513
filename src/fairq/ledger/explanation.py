"""The story of one request, as data: what made it wait and for how long, and who went instead.

Time in the queue is divided by what kept the request from running at each moment:

    no upstream, retry   none was usable, or none but the one that had just failed
    paused, capped       a limit of its tenant
    own queue            all slots were taken, and earlier requests of its own tenant were before it
    slots taken          all slots were taken, and it was its tenant's next; the steps tell who went first
"""

from enum import StrEnum

from msgspec import Struct

from fairq.core.commands import Dispatch
from fairq.core.cost import Usage
from fairq.core.policy import Why


class Cause(StrEnum):
    NO_UPSTREAM = "no upstream"
    PAUSED = "paused"
    CAPPED = "capped"
    OWN_QUEUE = "own queue"
    SLOTS = "slots taken"
    RETRY = "retry"


class Layer(StrEnum):
    """Which part of the gateway made a request wait."""

    UPSTREAMS = "upstreams"
    LIMITS = "limits"
    ORDER = "order"


LAYERS: dict[str, Layer] = {
    Cause.NO_UPSTREAM: Layer.UPSTREAMS,
    Cause.RETRY: Layer.UPSTREAMS,
    Cause.PAUSED: Layer.LIMITS,
    Cause.CAPPED: Layer.LIMITS,
    Cause.OWN_QUEUE: Layer.ORDER,
    Cause.SLOTS: Layer.ORDER,
}


class Step(Struct, frozen=True):
    """A decision while the request waited. `lead`: of the request's own tenant at that moment, normalized cost units
    ahead of the virtual time before the decision; None when it was not backlogged or the policy has no tags."""

    seq: int
    time: int
    id: str
    tenant: str
    charge: int
    why: Why
    lead: float | None


class Served(Struct):
    """What one tenant got while the request waited."""

    tenant: str
    requests: int = 0
    charge: int = 0
    first: int = 0
    last: int = 0


class Explanation(Struct):
    """Times in ns; `arrival` on the monotonic clock and `wall` on the wall clock.

    position     its place in its tenant's queue on arrival, from 1
    rivals       other tenants that were backlogged on arrival
    lead         how far its tenant was ahead of virtual time then, normalized cost units; None without tags
    waited       by cause; without `retry` it is the time from arrival to dispatch, or to the end if it never ran
    first_byte   from its last dispatch to the first byte; generation: from there to the last byte
    served       who was dispatched meanwhile, most charged first
    steps        the first and the last decisions of the wait; `left_out` more lie between them
    own          its own dispatches
    lives        how many requests of this id the ledger knows; the last one is explained
    truncated    it arrived before this ledger begins: earlier decisions are not known
    interrupted  why the recording ended while it lived (what opened the next segment); "" if it did not
    notes        what the reader passed over
    """

    id: str
    pool: str
    policy: str
    tenant: str
    model: str
    arrival: int
    wall: int
    position: int
    rivals: int
    lead: float | None
    waited: dict[str, int]
    served: list[Served]
    steps: list[Step]
    left_out: int = 0
    own: list[Dispatch] = []
    first_byte: int | None = None
    generation: int | None = None
    delivery: int | None = None
    outcome: str | None = None
    status: int = 0
    finish: str = ""
    estimate: int = 0
    charge: int = 0
    actual: int = 0
    usage: Usage = Usage()
    attempts: int = 0
    total: int | None = None
    lives: int = 1
    truncated: bool = False
    interrupted: str = ""
    notes: list[str] = []

    @property
    def layers(self) -> dict[str, int]:
        """The waiting time by the layer that caused it."""
        total: dict[str, int] = {}
        for cause, ns in self.waited.items():
            total[LAYERS[cause]] = total.get(LAYERS[cause], 0) + ns
        return total

    @property
    def layer(self) -> str | None:
        """The layer that made it wait longest; None if nothing did."""
        layers = self.layers
        return max(layers, key=lambda layer: layers[layer]) if any(layers.values()) else None
