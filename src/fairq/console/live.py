"""The live state of all pools, and of the connection that feeds it."""

import asyncio
import time
from collections.abc import Callable

import msgspec

from fairq.console.events import Ring
from fairq.console.heaviest import Heaviest
from fairq.console.pool import LivePool
from fairq.core.errors import FairqError
from fairq.ledger.segment import Head, decode

LABELS = 200
DEFECTS = (msgspec.MsgspecError, FairqError, LookupError, TypeError, ValueError, ArithmeticError)


class Live:
    """
    pools       by name, as of the last connection
    since       wall time (s) of the last change of `connected`
    lag         ns between the last line and its folding
    unrecorded  what the disk says, by pool whose ledger it refuses at the moment
    engines     waiting requests that engines report themselves, by (pool, upstream)
    """

    def __init__(self, labels: int = LABELS) -> None:
        self.pools: dict[str, LivePool] = {}
        self.labels = Heaviest(labels, self._unlabel)
        self.ring = Ring()
        self.connected, self.complaint = False, "not connected yet"
        self.since = time.time()
        self.connections = self.unreadable = self.lines = self.lag = 0
        self.engines: dict[tuple[str, str], float] = {}
        self.unrecorded: dict[str, str] = {}
        self._seen: set[str] = set()
        self._changed = asyncio.Event()

    # The connection
    def connect(self) -> None:
        """It stands, and heads come first."""
        self.connected, self.since, self.complaint = True, time.time(), ""
        self.connections += 1
        self._seen, self.unrecorded = set(), {}
        self._wake()

    def disconnect(self, why: str) -> None:
        if self.connected:
            self.since = time.time()
        self.connected, self.complaint = False, why
        self._wake()

    def complete(self) -> None:
        """Every head of this connection was here: a pool without one is gone."""
        for name in self.pools.keys() - self._seen:
            del self.pools[name]
        self._wake()

    # The stream
    def take(self, name: str, raw: bytes) -> LivePool | None:
        """One ledger line of a pool, without its newline. The pool, if a connection to it begins with this line.

        Never raises: what cannot be read is counted.
        """
        self.lines += 1
        pool = self.pools.get(name)
        try:
            line = decode(raw)
            if isinstance(line, Head):
                self._seen.add(name)
                if pool is None:
                    pool = self.pools[name] = LivePool(name, self.labels, self.ring)
                pool.announce(line)
                return pool
            if pool is not None:
                pool.take(line, raw)
        except DEFECTS as error:
            self.complain(f"a line of {name} cannot be folded: {type(error).__name__}: {error}")
        return None

    def complain(self, text: str) -> None:
        self.unreadable += 1
        self.complaint = text

    def turn(self) -> None:
        """A batch of lines is folded."""
        last = max((pool.world.now for pool in self.pools.values()), default=0)
        self.lag = max(time.monotonic_ns() - last, 0) if last else 0
        self._wake()

    async def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until the fold has got there. False if it did not in time."""
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _unlabel(self, tenant: str) -> None:
        for pool in self.pools.values():
            pool.unlabel(tenant)
