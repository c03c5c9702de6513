"""Whether an upstream is in rotation: what probes and requests say about it."""

from collections.abc import Callable
from typing import Final

from fairq.gateway.config_sections import Health as HealthConfig

OF_THE_REQUEST: Final = frozenset({501, 505})  # its method, its version of HTTP: the server itself may be well


class Health:
    """Out of rotation after `failures` in a row, of requests and probes together, the last of them a probe; or of
    requests alone with no answer between them. Back at a good probe.

    An answer is a whole response below 500, or with a status of OF_THE_REQUEST. Any other from 500 on is a failure, as
    is none: an engine's 500 and a proxy's 502 are what a broken server says to everything.

    A failing request asks for a probe at once. Requests alone take an upstream out although its probes are good: one
    that fails everything at once always has a free slot, and would draw every request to itself. But then `may_leave`
    has a say: a request may fail by its own fault, and the last upstream of a pool must not go for that. Back again
    after that, the first failing request is enough.

    changed  called with the reason, one line, when it enters or leaves the rotation
    """

    def __init__(
        self,
        config: HealthConfig,
        changed: Callable[[str], None],
        probe_now: Callable[[], None],
        may_leave: Callable[[], bool],
    ) -> None:
        self.config, self.well = config, True
        self._changed, self._probe_now, self._may_leave = changed, probe_now, may_leave
        self._requests = self._probes = 0  # failures in a row
        self._is_over = False

    def succeed(self, last: "Health") -> None:
        """Go on from what another has learned of the same server."""
        self.well, self._requests, self._probes = last.well, last._requests, last._probes

    def retire(self) -> None:
        """Nobody is told of changes any more."""
        self._is_over = True

    def failed(self, detail: str) -> None:
        """A request got no usable answer."""
        self._requests += 1
        if not self.well:
            return
        if self._requests >= self.config.failures and self._may_leave():
            count, self._requests = self._requests, self.config.failures - 1
            self._become(False, f"{detail} (requests that failed in a row: {count})")
        else:
            self._probe_now()

    def answered(self, status: int) -> None:
        """A request got a whole response."""
        if status < 500 or status in OF_THE_REQUEST:
            self._requests = 0
        else:
            self.failed(f"answered {status}")

    def probed(self, status: int, detail: str) -> None:
        """`status` 0: no answer in time. Any status below 500 is good: servers without the probed path live too."""
        if 0 < status < 500:
            self._probes = 0
            self._become(True, f"answered a probe with {status}")
        else:
            self._probes += 1
            count = self._probes + self._requests
            if count >= self.config.failures:
                self._become(False, f"probe: {detail or f'answered {status}'} (failures in a row: {count})")

    def _become(self, well: bool, why: str) -> None:
        if self.well != well and not self._is_over:
            self.well = well
            self._changed(why)
