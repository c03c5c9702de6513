"""How a tenant stands, in one word that an operator can act on, and its fair share of what was given.

The fair share is the weighted max-min share: what a tenant's weight gives it, where nobody is given more than it asked
for, and what that leaves goes to those that wanted more. How much each asked for is told by how it waited:

    had work waiting nearly always      more than there is
    its requests wait longer than run   as much more as it would get without waiting, but no more than its weight's part
                                        of what went while it had work waiting: clients that ask again when they are
                                        answered are all in flight for a while, and then all in the queue
    else                                what it got
"""

from collections.abc import Mapping
from enum import StrEnum
from fractions import Fraction

from fairq.console.recent import Window
from fairq.measure.fairness import jain, max_min_fair

NEARLY_ALWAYS = 0.9  # part of the time
SHORTEST = 4.0  # seconds: less says nothing
SHORT_OF = 0.8  # of the fair share
GRAIN = 1_000_000  # of a ratio as a whole number: sums of unlike fractions have no end


class Standing(StrEnum):
    """
    paused, capped  it waits because of a limit of its own
    starved         it wanted more, and got less than its fair share by more than a fair order allows
    flooding        most of the queue is its own, more than all slots hold
    above           it got more than its fair share, which somebody else is short of
    fair            it wants more, and gets its fair share
    served          it gets all that it asks for
    new             it has work waiting, and nothing of it has been dispatched in the last minute
    """

    PAUSED = "paused"
    CAPPED = "capped"
    STARVED = "starved"
    FLOODING = "flooding"
    ABOVE = "above"
    FAIR = "fair"
    SERVED = "served"
    NEW = "new"
    IDLE = "idle"


class Seen:
    """A window, and what each tenant was due in it: cost units. `weights`: of those that are compared. O(n log n)"""

    def __init__(self, window: Window, weights: Mapping[str, Fraction]) -> None:
        self.window = window
        self.total = sum(window.charged[name] for name in weights)
        wants = {name: self._wants(name) for name in weights}
        self.due = {name: float(due) for name, due in max_min_fair(self.total, wants, weights).items()}

    def wanting(self, name: str) -> bool:
        """Did it want more than it got?"""
        window = self.window
        return window.backlogged.get(name, 0.0) >= NEARLY_ALWAYS or window.waited[name] > window.ran[name] > 0

    def _wants(self, name: str) -> int | None:
        """Cost units; None: more than there is."""
        window = self.window
        got, waited, ran = window.charged[name], window.waited[name], window.ran[name]
        if window.backlogged.get(name, 0.0) >= NEARLY_ALWAYS:
            return None
        if not waited > ran > 0:
            return got
        return max(got, min(got * (waited + ran) // ran, int(window.entitled.get(name, 0.0))))

    def ratio(self, name: str) -> float | None:
        """What it got / what it was due; None if that is nothing."""
        due = self.due.get(name)
        return self.window.charged[name] / due if due else None

    def share(self, name: str) -> float | None:
        """Of everything, due to it."""
        return self.due[name] / self.total if self.total and name in self.due else None

    def short(self, name: str, bound: float) -> bool:
        """Is it starved? `bound`: cost units by which a fair order may leave it behind."""
        due, got = self.due.get(name, 0.0), self.window.charged[name]
        told = self.window.seconds >= SHORTEST and self.wanting(name)
        return told and got < SHORT_OF * due and due - got > bound

    def index(self) -> float | None:
        """Jain's index of what each got / what it was due: 1 is max-min fair. None where nothing was due."""
        ratios = [self.ratio(name) for name in self.due]
        index = jain(int(GRAIN * ratio) for ratio in ratios if ratio is not None)
        return None if index is None else float(index)
