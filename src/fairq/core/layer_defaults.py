"""What a layer is unless it says otherwise: every job fits, costs its size, and nothing counts service by itself."""

from collections.abc import Sequence

from fairq.core.errors import ConfigError
from fairq.core.job import Job


class Roomy:
    """The view of a layer whose slots are all alike: every job fits, nothing is cached."""

    running: Sequence[Job] = ()

    def fits(self, job: Job) -> bool:
        return True

    def cached_prefix(self, job: Job) -> int:
        return 0


ROOMY = Roomy()


def size_of(job: Job) -> int:
    """The default `Layer.cost`: what the policy is told of the job's size."""
    told = job.size if job.estimate is None else job.estimate
    if told is None:
        raise ConfigError(f"job {job.id}.size", None, "this policy needs the size of every job")
    return told


def no_service() -> int:
    """The service clock of a layer that has none."""
    return 0
