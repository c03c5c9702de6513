"""What the identity rules answer: who pays, or why nobody does."""

from dataclasses import dataclass

from msgspec import Struct

from fairq.core.lifecycle import Outcome


class Identity(Struct, frozen=True):
    """Who pays. `by` is "key", "header" or "anonymous"."""

    tenant: str
    by: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nobody does, and what the client is told. `code` and `message` go into OpenAI's error envelope."""

    outcome: Outcome
    code: str
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def status(self) -> int:
        return self.outcome.status


_ASK = ((b"www-authenticate", b'Bearer realm="fairq"'),)
NO_KEY = Refusal(
    Outcome.REFUSED_UNAUTHORIZED, "missing_api_key", "an API key is required: Authorization: Bearer KEY", _ASK
)
BAD_KEY = Refusal(
    Outcome.REFUSED_UNAUTHORIZED,
    "invalid_api_key",
    "this API key is not known here",
    ((b"www-authenticate", b'Bearer realm="fairq", error="invalid_token"'),),
)
TWO_KEYS = Refusal(
    Outcome.REFUSED_INVALID, "ambiguous_api_key", "Authorization and x-api-key must not differ or be repeated"
)
TWO_TENANTS = Refusal(Outcome.REFUSED_INVALID, "ambiguous_tenant", "tenant headers must not differ or be repeated")
BAD_TENANT = Refusal(
    Outcome.REFUSED_INVALID,
    "invalid_tenant",
    "a tenant is 1 to 128 letters, digits or ._@:+/- , beginning and ending with a letter or digit, and not `other`",
)
TOO_MANY_TENANTS = Refusal(
    Outcome.REFUSED_QUEUE_FULL,
    "too_many_tenants",
    "too many tenants have requests here at once",
    ((b"retry-after", b"1"),),
)
