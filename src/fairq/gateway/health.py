"""Whether an upstream is in rotation: what probes and requests say about it."""

from collections.abc import Callable

from fairq.gateway.config_sections import Health as HealthConfig


class Health:
    """Out of rotation after `failures` in a row, of requests and probes together, the last of them a probe; or of
    requests alone with no answer between them. Back at a good probe.

    A failing request asks for a probe at once. Requests alone take an upstream out although its probes are good: one
    that fails everything at once always has a free slot, and would draw every request to itself. But then `may_leave`
    has a say: a request may fail by its own fault, and the last upstream of a pool must not go for that. Back again
    after that, the first failing request is enough.
    """

    def __init__(
        self,
        config: HealthConfig,
        changed: Callable[[], None],
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

    def failed(self) -> None:
        """A request got no usable answer."""
        self._requests += 1
        if not self.well:
            return
        if self._requests >= self.config.failures and self._may_leave():
            self._requests = self.config.failures - 1
            self._become(False)
        else:
            self._probe_now()

    def answered(self, status: int) -> None:
        """A request was answered."""
        if status < 500:
            self._requests = 0

    def probed(self, status: int) -> None:
        """`status` 0: no answer in time. Any status below 500 is good: servers without the probed path live too."""
        if 0 < status < 500:
            self._probes = 0
            self._become(True)
        else:
            self._probes += 1
            if self._probes + self._requests >= self.config.failures:
                self._become(False)

    def _become(self, well: bool) -> None:
        if self.well != well and not self._is_over:
            self.well = well
            self._changed()
