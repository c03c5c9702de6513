"""The names a configuration holds: tenants, models, origins, networks, files, policies, hashes of keys, secrets."""

import ipaddress
import re
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator, SecretStr, ValidationInfo

from fairq import placements, policies
from fairq.core.errors import ConfigError
from fairq.core.policy import Need, Policy
from fairq.gateway.config_values import broken, kind

_TENANT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._@:+/-]{0,126}[A-Za-z0-9])?")
_KEY_HASH = re.compile(r"sha256:([0-9a-f]{64})")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_VISIBLE = re.compile(r"[!-~]{1,4096}")
_NAME = re.compile(r"[!-~]{1,256}")
_MODEL = re.compile(r"[^\x00-\x1f\x7f]{1,256}")
_PATH = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@/-]*")


def secret(value: object) -> object:
    """Text that can stand in a header: visible ASCII, not empty. Its errors never show it."""
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not isinstance(text, str) or not _VISIBLE.fullmatch(text):
        raise broken("must be text of visible ASCII characters, best given as ${NAME} (quote digits)", hidden=True)
    return value


def is_tenant_id(text: str) -> bool:
    """1 to 128 ASCII characters, letters, digits and ``._@:+/-``, beginning and ending with a letter or digit.

    ``other`` is the label under which metrics count the tenants that have none of their own.
    """
    return _TENANT.fullmatch(text) is not None and text != "other"


def tenant_id(value: object) -> str:
    """A valid tenant id."""
    if not isinstance(value, str) or not is_tenant_id(value):
        raise broken(
            "must be 1 to 128 letters, digits or ._@:+/- , beginning and ending with a letter or digit,"
            " and not `other` (quote a number)"
        )
    return str(value)


def key_hash(value: object) -> str:
    """``sha256:`` and 64 hexadecimal digits. Whatever else stands here may be a key itself, so it is never shown."""
    if not isinstance(value, str) or not _KEY_HASH.fullmatch(value):
        raise broken(
            "must be sha256: and 64 hexadecimal digits, never the key itself; `fairq key new TENANT` prints it",
            hidden=True,
        )
    return str(value)


def name(value: object) -> str:
    """Visible ASCII: it becomes a metrics label and stands in logs."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise broken("must be 1 to 256 visible ASCII characters without spaces (quote a number)")
    return str(value)


def model_name(value: object) -> str:
    """What a request's `model` may be."""
    if not isinstance(value, str) or not _MODEL.fullmatch(value):
        raise broken("must be a model's name, 1 to 256 characters (quote a number)")
    return str(value)


def url_path(value: object) -> str:
    """A normalised absolute path: no escapes, no empty or dot segments, no query."""
    if (
        not isinstance(value, str)
        or not _PATH.fullmatch(value)
        or any(step in ("", ".", "..") for step in value.split("/")[1:])
    ):
        raise broken("must be a plain path such as /v1/rerank, without query, %, //, . or .. and without a final /")
    return str(value)


def gateway_policy(spec: str) -> Policy:
    """A policy that needs no more than a gateway knows. Raises ConfigError."""
    return policies.make_for(spec, frozenset({Need.SIZE}))


def policy_spec(value: object) -> str:
    """NAME or NAME:key=value,key=value of a policy that fits a gateway, or {policy: NAME, key: value}."""
    try:
        return _registered(policies.spec_of(value) if isinstance(value, Mapping) else value, gateway_policy)
    except ConfigError as error:
        raise broken(error.rule) from None


def placement_name(value: object) -> str:
    """The name of a registered placement."""
    return _registered(value, placements.make)


def _registered(value: object, make: Callable[[str], object]) -> str:
    if not isinstance(value, str):
        raise broken("must be a name")
    try:
        make(value)
    except ConfigError as error:
        about = "" if error.key in ("policy", "placement") else f"{error.key} "
        raise broken(about + error.rule) from None
    return str(value)


def local_path(value: object, info: ValidationInfo) -> Path:
    """A path of this machine, relative to the configuration file's directory when that is known."""
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise broken("must be a path")
    base = (info.context or {}).get("base")
    return Path(value) if base is None else Path(base, value)


def certificates(value: object, info: ValidationInfo) -> Path:
    """A PEM file with at least one CA certificate, read now: a reload must find it wrong before it changes anything."""
    path = local_path(value, info)
    try:
        ssl.create_default_context(cafile=path)
    except ssl.SSLError:
        raise broken("holds no PEM certificate") from None
    except OSError as error:
        raise broken(f"cannot be read: {error.strerror}") from None
    return path


def network(value: object) -> str:
    """A CIDR block or an address, in canonical form."""
    rule = "must be an address or a CIDR block such as 10.0.0.0/8 or ::1"
    if not isinstance(value, str):
        raise broken(rule)
    try:
        return str(ipaddress.ip_network(value))
    except ValueError as error:
        host_bits = " (host bits are set)" if "host bits" in str(error) else ""
        raise broken(rule + host_bits) from None


def origin(value: object) -> str:
    """``http://host:port`` or ``https://host:port``; the path of a request is appended to it."""
    rule = "must be http://HOST:PORT or https://HOST:PORT, without path, query or credentials"
    if not isinstance(value, str):
        raise broken(rule, hidden=True)
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise broken(rule, hidden="@" in value) from None
    host = parts.hostname or ""
    if "@" in parts.netloc:
        raise broken(rule + "; give the key as `credential`", hidden=True)
    named = bool(_HOST.fullmatch(host)) or _is_address(host)
    if parts.scheme not in ("http", "https") or not named or port == 0:
        raise broken(rule)
    if parts.path not in ("", "/") or parts.query or parts.fragment or "?" in value or "#" in value:
        raise broken(rule + (" (leave out /v1: clients send it)" if parts.path.rstrip("/") == "/v1" else ""))
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}:{port or (443 if parts.scheme == 'https' else 80)}"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


TenantId = Annotated[str, *kind(tenant_id, {"type": "string", "format": "tenant"})]
KeyHash = Annotated[str, *kind(key_hash, {"type": "string", "format": "sha256", "pattern": "^sha256:[0-9a-f]{64}$"})]
Network = Annotated[str, *kind(network, {"type": "string", "format": "cidr"})]
Origin = Annotated[str, *kind(origin, {"type": "string", "format": "origin"})]
Name = Annotated[str, *kind(name, {"type": "string", "format": "name"})]
ModelName = Annotated[str, *kind(model_name, {"type": "string", "format": "model"})]
UrlPath = Annotated[str, *kind(url_path, {"type": "string", "format": "path"})]
PolicySpec = Annotated[str, *kind(policy_spec, {"type": "string", "format": "policy"})]
PlacementName = Annotated[str, *kind(placement_name, {"type": "string", "format": "placement"})]
LocalPath = Annotated[Path, *kind(local_path, {"type": "string", "format": "file"}, str)]
Certificates = Annotated[Path, *kind(certificates, {"type": "string", "format": "file"}, str)]
Secret = Annotated[SecretStr, BeforeValidator(secret)]
