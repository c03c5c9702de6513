"""What clients get: what fairq says itself, in OpenAI's envelope, and the headers of what it passes back."""

from typing import Final

from fairq.core.lifecycle import Outcome
from fairq.gateway.http1.headers import Headers, field_lines, forwardable
from fairq.gateway.http1.heads import ResponseHead
from fairq.gateway.openai.errors import error_body

SENTENCES: dict[Outcome, str] = {
    Outcome.REFUSED_FORBIDDEN: "this tenant may not use this model",
    Outcome.REFUSED_UNKNOWN_MODEL: "no pool serves this model",
    Outcome.REFUSED_QUEUE_FULL: "the queue is full; try again later",
    Outcome.REFUSED_NO_UPSTREAM: "no healthy upstream serves this model at the moment",
    Outcome.REFUSED_SHUTTING_DOWN: "the gateway is shutting down; try again on another one or in a moment",
    Outcome.EXPIRED: "the request waited longer than its time to live",
    Outcome.FAILED_CONNECT: "the upstream could not be reached",
    Outcome.FAILED_TIMEOUT: "the upstream did not answer in time",
    Outcome.FAILED_UPSTREAM: "the upstream failed before it answered",
}

KINDS: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    429: "rate_limit_error",
}

STREAM: Final = [(b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")]
"""Headers of every event stream: proxies must not hold it back."""


REPLACED: Final = frozenset(  # of an upstream's response; it may be a fairq too
    {b"x-request-id", b"server", b"x-fairq-outcome", b"x-fairq-queue-ms", b"x-fairq-upstream"}
)
REPLACED_IN_STREAMS: Final = REPLACED | {name for name, _ in STREAM}


class Passed:
    """What a client gets of an upstream's head.

    streams  an event stream follows
    fields   field lines, without those of framing
    """

    __slots__ = ("fields", "streams")

    def __init__(self, headers: Headers) -> None:
        kinds = [value.lower() for name, value in headers if name == b"content-type"]
        self.streams = any(kind.startswith(b"text/event-stream") for kind in kinds)
        fields = forwardable(headers, REPLACED_IN_STREAMS if self.streams else REPLACED)
        self.fields = field_lines([*fields, *STREAM] if self.streams else fields)


def passed_on(head: ResponseHead) -> Passed:
    """Made once of a head that comes again and again. Raises ValueError, as `field_lines`."""
    found: Passed | None = head.note
    if found is None:
        found = head.note = Passed(head.headers)
    return found


def named(outcome: Outcome) -> tuple[bytes, bytes]:
    """The header that tells a client, or its operator, how the request ended."""
    return b"x-fairq-outcome", outcome.value.encode()


def error_reply(
    status: int,
    message: str,
    *,
    outcome: Outcome | None = None,
    code: str | None = None,
    param: str | None = None,
    retry_after: int | None = None,
) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """(headers, body) of an error. The body is OpenAI's, so that every client library can read it."""
    headers: list[tuple[bytes, bytes]] = [(b"content-type", b"application/json")]
    if outcome is not None:
        headers.append(named(outcome))
    if retry_after is not None:
        headers.append((b"retry-after", b"%d" % retry_after))
    kind = KINDS.get(status, "invalid_request_error" if status < 500 else "server_error")
    return headers, error_body(message, kind, param, code or (outcome.value if outcome else None))


def protocol_error(status: int, reason: str) -> tuple[Headers, bytes]:
    """For what the HTTP server refuses by itself: malformed messages and transport limits."""
    return error_reply(status, reason, code="protocol_error")
