"""The life of a job, as a table, and the outcomes that can end it, as a closed enum.

Rules for editing: every transition a scheduler makes is in LIFECYCLE, and nowhere else; the table does not know what
the scheduler does on the way. A diagram, the lab's legend and the tests are made from it.

A job waits, runs (it has a slot at an upstream), and ends. Two states are less obvious. `retrying`: its upstream failed
before the first byte; it was charged, holds no slot, and goes before anything that waits. `delivering`: its upstream
is done and its slot is free, while the client still reads.
"""

from enum import StrEnum


class State(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    RETRYING = "retrying"
    DELIVERING = "delivering"
    ENDED = "ended"

    __hash__ = str.__hash__  # an enum's own is a Python call, too slow for the hot path


LIFECYCLE: dict[State, dict[str, State]] = {
    State.WAITING: {
        "Dispatch": State.RUNNING,
        "Reject": State.ENDED,
        "Cancelled": State.ENDED,
        "Evicted": State.ENDED,
    },
    State.RUNNING: {
        "SlotFreed": State.DELIVERING,
        "AttemptFailed": State.RETRYING,
        "Cancelled": State.RUNNING,  # only asks the shell to abort; the slot is free when the connection is closed
        "Finished": State.ENDED,
    },
    State.RETRYING: {
        "Dispatch": State.RUNNING,
        "Reject": State.ENDED,
        "Cancelled": State.ENDED,
    },
    State.DELIVERING: {
        "Cancelled": State.DELIVERING,
        "Finished": State.ENDED,
    },
    State.ENDED: {},
}


class Outcome(StrEnum):
    """Every request ends in exactly one. The first family never entered a queue, the second left it."""

    REFUSED_UNAUTHORIZED = "refused-unauthorized"
    REFUSED_FORBIDDEN = "refused-forbidden"
    REFUSED_INVALID = "refused-invalid"
    REFUSED_TOO_LARGE = "refused-too-large"
    REFUSED_UNKNOWN_MODEL = "refused-unknown-model"
    REFUSED_RATE_LIMIT = "refused-rate-limit"
    REFUSED_QUEUE_FULL = "refused-queue-full"
    REFUSED_NO_UPSTREAM = "refused-no-upstream"
    REFUSED_SHUTTING_DOWN = "refused-shutting-down"

    EXPIRED = "expired"
    CANCELLED_WAITING = "cancelled-waiting"
    CANCELLED_RUNNING = "cancelled-running"
    FAILED_CONNECT = "failed-connect"
    FAILED_TIMEOUT = "failed-timeout"
    FAILED_UPSTREAM = "failed-upstream"
    FAILED_MIDSTREAM = "failed-midstream"
    STALLED_CLIENT = "stalled-client"
    COMPLETED = "completed"

    __hash__ = str.__hash__

    @property
    def status(self) -> int:
        """The HTTP status when fairq itself answers; 499 stands for a client that is gone."""
        return STATUS[self]


STATUS: dict[Outcome, int] = {
    Outcome.REFUSED_UNAUTHORIZED: 401,
    Outcome.REFUSED_FORBIDDEN: 403,
    Outcome.REFUSED_INVALID: 400,
    Outcome.REFUSED_TOO_LARGE: 413,
    Outcome.REFUSED_UNKNOWN_MODEL: 404,
    Outcome.REFUSED_RATE_LIMIT: 429,
    Outcome.REFUSED_QUEUE_FULL: 429,
    Outcome.REFUSED_NO_UPSTREAM: 503,
    Outcome.REFUSED_SHUTTING_DOWN: 503,
    Outcome.EXPIRED: 429,
    Outcome.CANCELLED_WAITING: 499,
    Outcome.CANCELLED_RUNNING: 499,
    Outcome.FAILED_CONNECT: 502,
    Outcome.FAILED_TIMEOUT: 504,
    Outcome.FAILED_UPSTREAM: 502,
    Outcome.FAILED_MIDSTREAM: 200,
    Outcome.STALLED_CLIENT: 200,
    Outcome.COMPLETED: 200,
}
