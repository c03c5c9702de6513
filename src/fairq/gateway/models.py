"""`GET /v1/models`: what a tenant may ask for, as far as it is known."""

from collections.abc import Iterable
from urllib.parse import unquote

import msgspec

from fairq.gateway.pool import Pool

PATH = "/v1/models"
CREATED = 1_700_000_000  # `created` of a model is part of the format; what it says has no use here


def allowed_models(pools: Iterable[Pool], tenant: str) -> list[str]:
    """Each name once, in order."""
    found: set[str] = set()
    for pool in pools:
        allowed = pool.terms(tenant).models
        found.update(name for name in pool.models() if allowed is None or name in allowed)
    return sorted(found)


def listing(names: Iterable[str]) -> bytes:
    return msgspec.json.encode({"object": "list", "data": [_entry(name) for name in names]})


def asked_for(path: str) -> str:
    """The name in a path below `PATH`; a slash in it may be escaped or not."""
    return unquote(path.removeprefix(PATH + "/"))


def description(name: str) -> bytes:
    return msgspec.json.encode(_entry(name))


def _entry(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "fairq"}
