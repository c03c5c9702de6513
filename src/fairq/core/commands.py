"""What the scheduler wants done, and what it decided. Each is a ledger line of its own; `seq` is the event's."""

from msgspec import Struct

from fairq.core.cost import Usage
from fairq.core.lifecycle import Outcome
from fairq.core.policy import Why


class Command(Struct, frozen=True, omit_defaults=True, tag_field="is", gc=False):
    seq: int
    time: int
    id: str


class Dispatch(Command, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    """Send the request to the upstream. The decision is irrevocable.

    estimate, charge   cost units; a retry (attempt > 1) charges nothing more
    contended          was another tenant backlogged? (settlement)
    why                the policy's reason; for SFQ the meter and the virtual time
    """

    tenant: str
    upstream: str
    estimate: int
    charge: int
    input_tokens: int
    output_tokens: int
    why: Why
    contended: bool = False
    attempt: int = 1


class Reject(Command, frozen=True, kw_only=True, tag=True):
    """Answer a waiting request without an upstream."""

    outcome: Outcome


class Abort(Command, frozen=True, kw_only=True, tag=True):
    """Close the upstream connection of a running request; `Finished` follows."""


class Ended(Command, frozen=True, omit_defaults=True, tag=True):
    """Everything about one request, in one record.

    wait, ttft, total   ns from arrival to dispatch, to the first body byte, to the end
    tpot                ns per output token after the first; 0 with fewer than two
    estimate, charge, actual   cost units
    """

    tenant: str
    outcome: Outcome
    upstream: str = ""
    model: str = ""
    wait: int = 0
    ttft: int = 0
    tpot: int = 0
    total: int = 0
    estimate: int = 0
    charge: int = 0
    actual: int = 0
    meter: int | str = 0
    usage: Usage = Usage()
    finish: str = ""
    status: int = 0
    attempts: int = 0


AnyCommand = Dispatch | Reject | Abort | Ended
