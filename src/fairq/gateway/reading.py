"""What a request's head says to the gateway. Read once of a head that its client sends again and again."""

import secrets
from collections.abc import Callable
from itertools import count
from typing import Final

from fairq.gateway.backend import Backend
from fairq.gateway.http1.heads import RequestHead
from fairq.gateway.tenants import Identifier

MAX_ID: Final = 128
_RUN: Final = secrets.token_hex(5)
_number: Callable[[], int] = count(0x100000).__next__  # of six digits, as every id of a process should be


def new_id() -> str:
    """Unique in this process, and by 40 random bits among others: a random number each would cost a system call."""
    return _RUN + hex(_number())[2:]


def given_id(head: RequestHead) -> str | None:
    """The client's own x-request-id if it is at most 128 visible ASCII characters."""
    for name, value in head.headers:
        if name == b"x-request-id":
            value = value.rstrip(b" \t")
            if 0 < len(value) <= MAX_ID and value.isascii():
                text = value.decode("ascii")
                return text if text.isprintable() and " " not in text else None
            return None
    return None


class Reading:
    """
    identifier  the rules by which it was read; they change with a reload
    tenant      who is charged
    wait        how long it may wait, ns
    given       the id that its client gave it
    """

    __slots__ = ("_fields", "given", "identifier", "tenant", "wait")

    def __init__(self, identifier: Identifier, tenant: str, wait: int, given: str | None) -> None:
        self.identifier, self.tenant, self.wait, self.given = identifier, tenant, wait, given
        self._fields: dict[Backend, tuple[frozenset[bytes], bytes]] = {}

    def request_fields(self, backend: Backend, head: RequestHead) -> bytes:
        """`Backend.request_fields` of this head."""
        rules, fields = self._fields.get(backend, (None, b""))
        if rules is not backend.not_forwarded:
            rules, fields = self._fields[backend] = backend.not_forwarded, backend.request_fields(head)
        return fields
