"""What the JSON API says: its types, from which the OpenAPI document is made.

Cost and service are in cost units; normalized ones are divided by the weight of their time. Times in seconds.
"""

from msgspec import Struct

from fairq.console.standing import Standing
from fairq.core import commands as cmd
from fairq.core import events as ev
from fairq.ledger.checks import Check
from fairq.ledger.explanation import Explanation
from fairq.ledger.report import PairReport


class Tokens(Struct):
    """`cached` is part of `prompt`."""

    prompt: int
    cached: int
    completion: int


class TenantView(Struct, kw_only=True):
    """One tenant in one pool; `other` stands for all that are not counted on their own.

    meter        start tag of its next job, lead: how far it is ahead of virtual time; null while it is not backlogged
    standing     in one word: see `Standing`
    share        of the cost charged in the last minute; null when there was none
    entitled     weight / sum of the weights of all that were served in the last minute or wait now
    fair         its weighted max-min share of the last minute: nobody is due more than it asked for, and what that
                 leaves goes to those that wanted more; null for whom nothing is counted
    wanting      part of the last minute, 0 to 1, in which it had work waiting that might have gone
    oldest       seconds that its first waiting request has waited; null when none waits
    oldest_id    that request
    """

    id: str
    pool: str
    weight: str | None
    max_inflight: int | None
    configured: bool
    paused: bool
    waiting: int
    inflight: int
    backlogged: bool
    charged: int
    actual: int
    normalized: float
    meter: float | None
    lead: float | None
    standing: Standing
    share: float | None
    entitled: float | None
    fair: float | None
    wanting: float
    oldest: float | None
    oldest_id: str
    tokens: Tokens
    outcomes: dict[str, int]


class UpstreamView(Struct, kw_only=True):
    """`queue`: waiting requests inside the engine, by its own metrics; null when it tells none."""

    pool: str
    name: str
    slots: int
    inflight: int
    healthy: bool
    draining: bool
    queue: float | None


class Bounds(Struct, kw_only=True):
    """The live audit. `worst_margin`: least distance to the bound V <= M <= V + q so far; null before any decision.

    held    no promise was broken in `decisions` decisions
    """

    held: bool
    decisions: int
    violations: int
    worst_margin: float | None
    checks: list[Check]
    pairs: list[PairReport]


class TogetherView(Struct, kw_only=True):
    """Normalized service of these tenants over the time in which exactly they were backlogged."""

    tenants: list[str]
    seconds: float
    charged: dict[str, float]
    actual: dict[str, float]
    jain_charged: float | None
    jain_actual: float | None


class Fairness(Struct, kw_only=True):
    """
    jain_minute                Jain's index of what each tenant got / its max-min share of the last minute: 1 is fair
    jain_charged, jain_actual  of service over jointly backlogged intervals: mean over `sets`, each weighted by its
                               service; of the heaviest tenants only. Where tenants meet for shorter than it takes to
                               serve one request of each, it is low by nature
    """

    jain_minute: float | None
    jain_charged: float | None
    jain_actual: float | None
    sets: list[TogetherView]


class Record(Struct, kw_only=True):
    """The stream this state comes from. `missed`: events that never came here; `lost`: lines the disk refused."""

    events: int
    decisions: int
    bytes: int
    missed: int
    lost: int
    gaps: int


class Minute(Struct):
    """The last minute, or less where recording began later; tokens per second of requests that ended in it."""

    seconds: float
    charged: int
    prompt: float
    completion: float


class PoolView(Struct, kw_only=True):
    """
    since   from when on totals count
    reach   no backlogged meter may now be farther ahead of virtual time: q, and the credit if the policy gives any
    """

    name: str
    since: float
    policy: str
    settlement: str
    virtual_time: float
    reach: float
    minute: Minute
    waiting: int
    inflight: int
    slots: int
    free: int
    admitted: int
    refused: int
    retries: int
    outcomes: dict[str, int]
    last_event: float
    bounds: Bounds
    fairness: Fairness
    record: Record
    tenants: list[TenantView]
    more_tenants: int
    upstreams: list[UpstreamView]


class State(Struct, kw_only=True):
    """
    since      when `connected` last changed
    complaint  why it is not connected; else what could not be folded, and what a disk says that refuses the ledger
    lag        between the last line and its folding
    """

    fairq: str
    time: float
    connected: bool
    since: float
    complaint: str
    lag: float
    unreadable: int
    pools: list[PoolView]


class Tenants(Struct):
    tenants: list[TenantView]


class Upstreams(Struct):
    upstreams: list[UpstreamView]


class Explained(Struct):
    """Why a request waited: in words, and the numbers behind them (times in ns)."""

    words: list[str]
    explanation: Explanation


class Reloaded(Struct):
    """What a reload changed, in words; empty when the file says what is so already."""

    changed: list[str]


class Shortened(Struct, tag_field="is", tag=True):
    """Stands for a line that is too long to be sent: a change of thousands of tenants."""

    seq: int
    time: int
    of: str
    bytes: int


class Share(Struct, omit_defaults=True):
    """What a tenant is configured to get."""

    id: str
    weight: str = "1"
    max_inflight: int | None = None
    paused: bool = False


class Reconfigured(Struct, kw_only=True, omit_defaults=True, tag_field="is", tag=True):
    """Weights and caps from now on: by the configuration's `file`, or by an `admin`."""

    seq: int
    time: int
    flows: list[Share]
    default_flow: Share
    by: str = "file"


Line = (
    cmd.Dispatch
    | cmd.Ended
    | ev.Refused
    | ev.Paused
    | ev.Resumed
    | Reconfigured
    | ev.UpstreamChanged
    | ev.UpstreamRemoved
    | ev.Draining
    | ev.RecordingGap
    | Shortened
)


class Happened(Struct):
    """Data of a server-sent event `dispatch`, `ended`, `refused` or `change`: a ledger line, with its own clock (ns,
    monotonic), and when that was by the wall clock (s)."""

    pool: str
    wall: float
    line: Line


class Missed(Struct):
    """Data of a server-sent event `missed`: how many that the reader asked for are not kept any more."""

    missed: int


class Problem(Struct):
    """`code` is stable, `message` is for people."""

    code: str
    message: str


class Failure(Struct):
    error: Problem


class Health(Struct):
    """The console lives. `connected`: does the data plane?"""

    status: str
    connected: bool
