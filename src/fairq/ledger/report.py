"""What an audit found."""

from msgspec import Struct

from fairq.ledger.checks import Check
from fairq.ledger.pairs import Pair
from fairq.ledger.tags import units


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
