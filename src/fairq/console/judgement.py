"""How the tenants of a live pool stand."""

from fairq.console.heaviest import OTHER
from fairq.console.pool import LivePool
from fairq.console.standing import Seen, Standing
from fairq.ledger.book import Tenant
from fairq.ledger.tags import units

MINUTE, MOMENT = 60, 10  # seconds
ABOVE = 1.2  # of the fair share
FLOOD = 0.7  # part of all waiting requests


class Judgement:
    """`now`: ns, on the clock of the pool's lines."""

    def __init__(self, pool: LivePool, now: int) -> None:
        world = pool.world
        self.minute, self._moment = (self._seen(pool, seconds, now) for seconds in (MINUTE, MOMENT))
        self._waiting = world.waiting
        self._slots = sum(upstream.slots for upstream in world.upstreams.values())
        bound = 2 * units(pool.tags.reach)  # by which a fair order may leave weight 1 behind
        self._starved = {
            name
            for seen in (self.minute, self._moment)
            for name in seen.due
            if seen.short(name, bound * float(pool.weight(name)))
        }

    @staticmethod
    def _seen(pool: LivePool, seconds: int, now: int) -> Seen:
        """Those that are counted on their own, and were served or wait."""
        window = pool.recent.window(seconds, now)
        return Seen(window, {name: pool.weight(name) for name in {*window.charged, *window.backlogged} - {OTHER}})

    def of(self, name: str, tenant: Tenant | None) -> Standing:
        queued = len(tenant.queue) if tenant else 0
        if tenant and tenant.paused:
            return Standing.PAUSED
        if tenant and queued and not tenant.open:
            return Standing.CAPPED
        if name in self._starved:
            return Standing.STARVED
        if queued > self._slots and queued > FLOOD * self._waiting:
            return Standing.FLOODING
        if self._starved and (self.minute.ratio(name) or 0.0) > ABOVE:
            return Standing.ABOVE
        if queued and self.minute.wanting(name):
            return Standing.FAIR
        if self.minute.window.charged[name]:
            return Standing.SERVED
        return Standing.NEW if queued else Standing.IDLE
