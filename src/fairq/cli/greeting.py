"""What `fairq serve` says when it serves: what is where, and what to type next."""

import json
from collections.abc import Sequence

from fairq.gateway.config import Config


def greeting(
    config: Config, port: int, *, models: Sequence[str], simulated: int = 0, console_port: int | None = None
) -> str:
    """
    port       the API's, as it came out
    models     that may be asked for, as far as they are known
    simulated  how many of the upstreams are our own simulated servers
    """
    api = _address(config.listen.host, port)
    lines = [f"fairq serves {api}/v1"]
    if simulated:
        lines.append(f"  in front of {simulated} simulated servers (invented text, stated timing)")
    for pool in config.pools:
        slots = sum(upstream.max_inflight for upstream in pool.upstreams)
        names = ", ".join(upstream.label for upstream in pool.upstreams) or "no upstream yet"
        lines.append(f"  pool {pool.name}: {pool.policy}, {pool.settlement}; {slots} slots on {names}")
    lines.append(f"  ledger: {config.ledger.dir}")
    if console_port is not None:
        console = _address(config.console.host, console_port)
        lines += [f"  console: {console}", f"  lab: {console}/lab"]
    header = _identity(config)
    if not models:
        lines += ["What your servers are called, once they answer:", f"  curl {api}/v1/models{header}"]
    body = {"model": models[0] if models else "MODEL", "messages": [{"role": "user", "content": "Hello"}]}
    shown = json.dumps(body | {"max_tokens": 20}, ensure_ascii=False).replace("'", r"\u0027")
    lines += ["Try:", f"  curl {api}/v1/chat/completions -H 'content-type: application/json'{header} -d '{shown}'"]
    lines.append(f"  fairq audit {config.ledger.dir}")
    return "\n".join(lines)


def _identity(config: Config) -> str:
    """The header by which a client says who it is; what stands in capitals is to be filled in."""
    if config.anonymous_allowed:
        return ""
    by_header = config.identity.trusted_tenant_headers_from and not any(tenant.keys for tenant in config.tenants)
    return " -H 'x-fairq-tenant: TENANT'" if by_header else " -H 'authorization: Bearer KEY'"


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
