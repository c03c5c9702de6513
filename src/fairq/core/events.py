"""What can happen to the scheduler of a pool. One definition is the event, the ledger line and the API.

Events of a pool are numbered without gaps and their time (monotonic ns) never goes back. The decisions of a scheduler
are a function of its starting state and its events; nothing else is read.
"""

from fractions import Fraction

from msgspec import Struct

from fairq.core.cost import CostModel, Usage
from fairq.core.job import Flow, Request
from fairq.core.lifecycle import Outcome


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="is", gc=False):
    seq: int
    time: int


class Admitted(Event, frozen=True, kw_only=True, tag=True):
    """A request passed every limit and waits."""

    request: Request


class Cancelled(Event, frozen=True, kw_only=True, tag=True):
    """The client left."""

    id: str


class Evicted(Event, frozen=True, kw_only=True, tag=True):
    """The queues are full, and this waiting request gave its place to a tenant that holds fewer."""

    id: str


class SlotFreed(Event, frozen=True, kw_only=True, tag=True):
    """The upstream is done with a request whose response is still being delivered."""

    id: str


class AttemptFailed(Event, frozen=True, kw_only=True, tag=True):
    """An upstream failed before the first byte of a response; another one may try."""

    id: str
    outcome: Outcome


class Finished(Event, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    """A dispatched request is over, one way or another.

    status       what the client saw, 0 if nothing
    first_byte   time of the first body byte from the upstream, 0 if none
    last_byte    time of the last one
    finish       finish reason of the first choice (stop, length, tool_calls, content_filter, other), "" if unknown
    """

    id: str
    outcome: Outcome
    usage: Usage = Usage()
    status: int = 0
    first_byte: int = 0
    last_byte: int = 0
    finish: str = ""


class Tick(Event, frozen=True, kw_only=True, tag=True):
    """A deadline of `Scheduler.next_deadline` has passed."""


class UpstreamChanged(Event, frozen=True, kw_only=True, tag=True):
    """An upstream is new, healthy or not, draining or not, or has other slots."""

    upstream: str
    slots: int
    healthy: bool
    draining: bool = False


class UpstreamRemoved(Event, frozen=True, kw_only=True, tag=True):
    """No more requests go there; running ones end as they do."""

    upstream: str


class Draining(Event, frozen=True, kw_only=True, tag=True):
    """The gateway shuts down: what waits is refused, what runs may end."""


class Paused(Event, frozen=True, kw_only=True, tag=True):
    tenant: str


class Resumed(Event, frozen=True, kw_only=True, tag=True):
    tenant: str


class Reconfigured(Event, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    """Weights and caps from now on. `flows` is the whole set of configured tenants; others get `default_flow`."""

    flows: list[Flow]
    default_flow: Flow
    wait_for_upstream: int
    cost: CostModel
    by: str = "file"


class CalibrationChanged(Event, frozen=True, kw_only=True, tag=True):
    """Measured rates replace alpha and beta, for future requests."""

    alpha: Fraction
    beta: Fraction


class Refused(Event, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    """A request that never got as far as a queue. Recorded, not replayed."""

    id: str
    outcome: Outcome
    tenant: str = ""
    status: int = 0


class RecordingGap(Event, frozen=True, kw_only=True, tag=True):
    """The ledger could not be written for a while: `lost` lines are missing before this one."""

    lost: int


AnyEvent = (
    Admitted
    | Cancelled
    | Evicted
    | SlotFreed
    | AttemptFailed
    | Finished
    | Tick
    | UpstreamChanged
    | UpstreamRemoved
    | Draining
    | Paused
    | Resumed
    | Reconfigured
    | CalibrationChanged
    | Refused
    | RecordingGap
)
