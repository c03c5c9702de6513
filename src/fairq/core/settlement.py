"""Settlement: what becomes of the difference between a request's estimate and what it really used."""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, ClassVar, Final

CARRIES: Final = 65_536  # tenants whose carry is remembered; those unchanged for longest are forgotten


class Settlement:
    """`fixed`: what was charged at dispatch stays. The article's rule."""

    name: ClassVar[str] = "fixed"

    def __init__(self) -> None:
        self.epoch = 0  # idle resets so far, where they matter

    def charge(self, flow: str, estimate: int) -> int:
        """Now, for real: may use up a carry."""
        return estimate

    def preview(self, flow: str, estimate: int) -> int:
        """What `charge` would say, changing nothing."""
        return estimate

    def joined(self, flow: str, lead: Callable[[str], int]) -> None:
        """A flow became backlogged; `lead` says how far its meter is ahead of virtual time, in cost units."""

    def finished(self, flow: str, error: int, epoch: int, contended: bool) -> None:
        """A dispatched request is over, and `error` = actual - its estimate."""

    def idled(self) -> None:
        """All queues are empty."""

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None: ...


class Forward(Settlement):
    """`forward`: a finished request's error (actual - its own estimate) goes onto its tenant's next charges.

    Meters stay monotone, since no charge is below 1, and long-run actual service follows the weights even when
    estimates are wrong by a factor. What simulation showed to be necessary:

    * an error counts only if somebody else was backlogged when its request was dispatched;
    * at a join credit is clipped so that M + carry/w >= V: no banked idle time through the back door;
    * the idle reset zeroes every carry and starts an epoch; late errors of an older epoch are dropped;
    * a debt outlives a leave within its epoch.
    """

    name = "forward"

    def __init__(self) -> None:
        super().__init__()
        self.carry: dict[str, int] = {}

    def preview(self, flow: str, estimate: int) -> int:
        return max(1, estimate + self.carry.get(flow, 0))

    def charge(self, flow: str, estimate: int) -> int:
        due = estimate + self.carry.pop(flow, 0)
        if due < 1:
            self.carry[flow] = due - 1
            return 1
        return due

    def joined(self, flow: str, lead: Callable[[str], int]) -> None:
        if self.carry.get(flow, 0) < 0:
            carry = max(self.carry.pop(flow), -max(lead(flow), 0))
            if carry:
                self.carry[flow] = carry

    def finished(self, flow: str, error: int, epoch: int, contended: bool) -> None:
        if contended and error and epoch == self.epoch:
            carry = self.carry.pop(flow, 0) + error
            if carry:
                self.carry[flow] = carry  # now the youngest
                if len(self.carry) > CARRIES:
                    self.carry = dict(islice(self.carry.items(), CARRIES // 2, None))

    def idled(self) -> None:
        self.carry.clear()
        self.epoch += 1

    def state(self) -> dict[str, Any]:
        return {"carry": list(self.carry.items()), "epoch": self.epoch}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.carry, self.epoch = dict(state["carry"]), state["epoch"]


SETTLEMENTS: dict[str, type[Settlement]] = {kind.name: kind for kind in (Settlement, Forward)}
