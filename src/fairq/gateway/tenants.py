"""Who a request is charged to: an authenticated key's tenant, else a trusted header's, else `anonymous`, else nobody.

`Identifier.identify` runs for every request, when its headers are complete and before its body is read.
"""

import ipaddress
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from fairq.gateway.config import ANONYMOUS, Config
from fairq.gateway.config_names import is_tenant_id
from fairq.gateway.identity import (
    BAD_KEY,
    BAD_TENANT,
    NO_KEY,
    TOO_MANY_TENANTS,
    TWO_KEYS,
    TWO_TENANTS,
    Identity,
    Refusal,
)
from fairq.gateway.keys import fingerprint, key_table

Headers = Sequence[tuple[bytes, bytes]]

TENANT_HEADERS = frozenset((b"x-fairq-tenant", b"x-llm-d-inference-fairness-id", b"x-gateway-inference-fairness-id"))
KEY_HEADERS = frozenset((b"authorization", b"x-api-key"))
STEERING_HEADERS = frozenset((b"x-vllm-priority", b"x-session-id"))
OURS = frozenset((b"x-fairq-max-queue-wait",))
_WATCHED = TENANT_HEADERS | KEY_HEADERS

MAX_PEERS = 4096  # peer addresses whose trust is remembered; parsing one takes longer than all the rest
MAX_PROBES = 32  # tenants that may be found live before an automatic one is refused: not O(tenants) per request

_ANONYMOUS = Identity(ANONYMOUS, "anonymous")


class AutoTenants:
    """The tenants that trusted headers made, bounded: the least recently seen one that is idle gives way.

    live(tenant)    has it requests waiting or running? Such a one is never forgotten
    forget(tenant)  called when one gives way, so that others drop what they hold for it
    """

    def __init__(self, limit: int, live: Callable[[str], bool], forget: Callable[[str], None]) -> None:
        self.limit = limit
        self._live = live
        self._forget = forget
        self._seen: OrderedDict[str, None] = OrderedDict()

    def admit(self, tenant: str) -> bool:
        """Seen now. False: it is new, and no place could be made. O(1), amortised over MAX_PROBES live tenants."""
        if tenant in self._seen:
            self._seen.move_to_end(tenant)
            return True
        if len(self._seen) >= self.limit and not self._make_room():
            return False
        self._seen[tenant] = None
        return True

    def shrink(self, limit: int) -> None:
        """A reload set another limit. Live tenants above it stay until they are idle and others come."""
        self.limit = limit
        while len(self._seen) > limit and self._make_room():
            pass

    def __len__(self) -> int:
        return len(self._seen)

    def _make_room(self) -> bool:
        for _ in range(min(MAX_PROBES, len(self._seen))):
            oldest = next(iter(self._seen))
            if not self._live(oldest):
                del self._seen[oldest]
                self._forget(oldest)
                return True
            self._seen.move_to_end(oldest)  # it is live: the next look goes further
        return False


class Identifier:
    """The identity rules of one configuration. A reload makes another one, with the same AutoTenants."""

    def __init__(self, config: Config, auto: AutoTenants) -> None:
        table = key_table((tenant.id, tenant.keys) for tenant in config.tenants)
        by_tenant = {tenant.id: Identity(tenant.id, "key") for tenant in config.tenants}
        self._keys: Mapping[bytes, Identity] = {key: by_tenant[tenant] for key, tenant in table.items()}
        self._configured = frozenset(by_tenant)
        self._networks = tuple(ipaddress.ip_network(block) for block in config.identity.trusted_tenant_headers_from)
        self._trusted: dict[str, bool] = {}
        self._nobody: Identity | Refusal = _ANONYMOUS if config.anonymous_allowed else NO_KEY
        self._auto = auto

    def identify(self, headers: Headers, peer: str) -> Identity | Refusal:
        """`headers`: lower-case names, order kept; `peer`: the address of the other end of the connection."""
        watched = [field for field in headers if field[0] in _WATCHED]
        if not watched:
            return self._nobody
        key: bytes | None = None
        tenant: bytes | None = None
        names = set()
        for name, value in watched:
            if name in KEY_HEADERS:
                given = value.strip() if name == b"x-api-key" else _bearer(value)
                if name in names or (key is not None and key != given):
                    return TWO_KEYS
                key = given
            elif self._networks and self._trusts(peer):
                if name in names or (tenant is not None and tenant != value):
                    return TWO_TENANTS
                tenant = value
            names.add(name)
        # With no key in the configuration clients may send any: most libraries cannot be told to send none.
        if key is not None and self._keys:
            return self._keys.get(fingerprint(key), BAD_KEY)
        return self._nobody if tenant is None else self._named(tenant)

    def _named(self, value: bytes) -> Identity | Refusal:
        tenant = value.decode("latin-1")
        if not is_tenant_id(tenant):
            return BAD_TENANT
        if tenant not in self._configured and tenant != ANONYMOUS and not self._auto.admit(tenant):
            return TOO_MANY_TENANTS
        return Identity(tenant, "header")

    def _trusts(self, peer: str) -> bool:
        known = self._trusted.get(peer)
        if known is None:
            if len(self._trusted) >= MAX_PEERS:
                self._trusted.clear()
            known = self._trusted[peer] = _inside(peer, self._networks)
        return known


def _bearer(value: bytes) -> bytes:
    """The key in `Bearer KEY`; empty, which is nobody's key, for any other scheme."""
    scheme, _, key = value.strip().partition(b" ")
    return key.strip() if scheme.lower() == b"bearer" else b""


def _inside(peer: str, networks: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)  # a dual-stack socket shows ::ffff:10.0.0.1
    return any((mapped or address) in network for network in networks)


def not_forwarded(config: Config, *, own_credential: bool) -> frozenset[bytes]:
    """Client headers that an upstream must not see, for `http1.headers.forwardable`.

    Other spellings (`x_fairq_tenant`) are refused with the whole request before. The client's key passes only where the
    configuration says so and the upstream has no credential of its own.
    """
    allowed = {name.encode() for name in config.security.allow_headers}
    keep_key = config.identity.forward_client_key and not own_credential
    return TENANT_HEADERS | OURS | (STEERING_HEADERS - allowed) | (frozenset() if keep_key else KEY_HEADERS)
