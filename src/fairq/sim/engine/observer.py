"""Who is told what happens in an engine, so that it can be measured while it runs."""

from __future__ import annotations

from fairq.sim.engine.call import Call


class Observer:
    """`look` is called at every event, before and after admissions; the rest when it happens.

    arrives    a request comes; the policy does not know of it yet
    arrived    now it does
    abandoned  one that waited was cancelled
    admitted   it enters the batch; the policy has chosen it and not charged it yet
    started    it gets a token with every tick of the clock from now on, and has been given `given` at once
    stopped    it has left the batch
    """

    def arrives(self, call: Call) -> None:
        return

    def arrived(self, call: Call) -> None:
        return

    def abandoned(self, call: Call) -> None:
        return

    def admitted(self, call: Call) -> None:
        return

    def started(self, call: Call, given: int) -> None:
        return

    def stopped(self, call: Call) -> None:
        return

    def look(self) -> None:
        return
