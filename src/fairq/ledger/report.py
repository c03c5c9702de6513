"""What an audit found: one entry per check, with its worst value and where that was."""

from msgspec import Struct

from fairq.ledger.pairs import Pair
from fairq.ledger.tags import units

CHECKS = {
    "sequence": "events are numbered without a gap, time never goes back, commands stand behind their event",
    "one outcome each": "every admitted request ends exactly once, for the reason that was recorded",
    "record": "the record at a request's end agrees with the lines before it",
    "slots": "nothing goes to an upstream without a free slot, or from a paused or capped tenant",
    "work conservation": "no slot is free while a request waits that may be dispatched",
    "fifo": "each tenant's requests are dispatched in their order of arrival",
    "charges": "each charge is at least 1, is what the settlement says, and comes once",
    "usage": "actual costs follow from the reported usage, clipped to what the model can hold",
    "least meter first": "the tenant with the least (meter, id) goes first, and the recorded tags are its own",
    "virtual time": "virtual time never goes back inside a busy period",
    "band": "V <= M <= V + q for every backlogged tenant after every decision",
    "pairs": "|Wi/wi - Wj/wj| <= 2q of charged service while both are backlogged",
    "heads": "a segment begins with the state in which the last one ended",
}
BOUNDS = ("band", "pairs")
FAIR = frozenset({"least meter first", "virtual time", *BOUNDS})


class Check(Struct):
    """
    promised  does the recorded policy promise it? Otherwise it is measured, and never fails
    held      how often it was checked, and held
    worst     the value nearest to its limit, or farthest beyond, in cost units per weight; None if nothing was measured
    seq       the event of `worst`, or of the first violation
    """

    name: str
    text: str
    promised: bool = True
    held: int = 0
    violations: int = 0
    worst: float | None = None
    limit: float | None = None
    margin: float | None = None
    seq: int | None = None
    who: str = ""
    first: str = ""

    @property
    def ok(self) -> bool:
        return not (self.promised and self.violations)


class Measure:
    """A check while the audit runs."""

    __slots__ = ("first", "held", "limit", "name", "promised", "seq", "violations", "who", "worst")

    def __init__(self, name: str) -> None:
        self.name, self.promised = name, True
        self.held = self.violations = self.seq = 0
        self.worst, self.limit = -1, 1  # tag units; no value yet
        self.who = self.first = ""

    def fail(self, seq: int, text: str) -> None:
        self.violations += 1
        if not self.first:
            self.first, self.seq = text, seq

    def within(self, value: int, limit: int, seq: int, who: tuple[str, ...]) -> None:
        """`value` must not exceed `limit`. The largest ratio of the two is kept."""
        if value * self.limit > self.worst * limit or self.worst < 0:
            self.worst, self.limit, self.who = value, limit, " and ".join(who)
            if not self.violations:
                self.seq = seq
        if value > limit:
            self.fail(seq, f"{' and '.join(who)}: {units(value):g} is above {units(limit):g}")
        else:
            self.held += 1

    def report(self) -> Check:
        worst, limit = (units(self.worst), units(self.limit)) if self.worst >= 0 else (None, None)
        return Check(
            name=self.name,
            text=CHECKS[self.name],
            promised=self.promised,
            held=self.held,
            violations=self.violations,
            worst=worst,
            limit=limit,
            margin=units(self.limit - self.worst) if self.worst >= 0 else None,
            seq=self.seq or None,
            who=self.who,
            first=self.first,
        )


class PairReport(Struct):
    """Two tenants while both were backlogged. Service is normalized, in cost units; `seconds` of such time."""

    tenants: tuple[str, str]
    seconds: float
    charged: tuple[float, float]
    actual: tuple[float, float]
    gap: float


def pair_report(pair: Pair) -> PairReport:
    one, other = (units(amount) for amount in pair.charged)
    mine, theirs = (units(amount) for amount in pair.actual)
    return PairReport(pair.tenants, pair.duration / 1e9, (one, other), (mine, theirs), units(pair.gap))


class Report(Struct):
    """
    requests   admitted, by outcome, and what became of the rest
    idle       decision boundaries with a free slot and waiting requests, by the reason that nothing was dispatched
    """

    pool: str
    policy: str
    settlement: str
    events: int
    decisions: int
    segments: int
    restarts: int
    gaps: int
    lost: int
    admitted: int
    refused: int
    living: int
    cut_off: int
    outcomes: dict[str, int]
    idle: dict[str, int]
    largest_carry: int
    dropped_errors: int
    checks: list[Check]
    pairs: list[PairReport]
    watched: list[str]
    unwatched_decisions: int
    notes: list[str]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)
