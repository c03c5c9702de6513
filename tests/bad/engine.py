"""Token counting with one mistake each."""

from fairq.core.job import Job
from fairq.core.policy import Stop, Time
from fairq.policies.vtc import VTC


class NeverLifts(VTC):
    """A client that was away is owed for all of it."""

    def joined(self, flow: str, now: Time) -> None:
        """The counter stays as it was."""


class ForgetsOutputs(VTC):
    """Prompts alone are charged: long answers are free."""

    def started(self, job: Job, now: Time, given: int = 0) -> None:
        """Nothing is charged."""

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        """Nothing to stop."""
