"""The checks of an audit: what each one means, how often it held, its worst value, its first violation."""

from collections.abc import Callable

from msgspec import Struct

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


class Checks(dict[str, Measure]):
    """All of them by name, while the audit runs. `seq`: the event that is being checked."""

    def __init__(self, seq: Callable[[], int]) -> None:
        super().__init__((name, Measure(name)) for name in CHECKS)
        self._seq = seq

    def held(self, check: str, holds: bool) -> bool:
        """Counts it when it does. The caller fails it otherwise, with a text that costs something to make."""
        self[check].held += holds
        return holds

    def fail(self, check: str, text: str) -> None:
        self[check].fail(self._seq(), text)

    def within(self, check: str, value: int, limit: int, who: tuple[str, ...]) -> None:
        self[check].within(value, limit, self._seq(), who)
