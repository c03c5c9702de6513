"""`fairq key new TENANT`."""

from pathlib import Path
from typing import Annotated

import typer

from fairq.core.errors import ConfigError

app = typer.Typer(help="Make API keys.", add_completion=False)


@app.callback()
def _group() -> None:
    """Make API keys."""


@app.command()
def new(
    tenant: Annotated[str, typer.Argument(help="whose key it is", show_default=False)],
    config: Annotated[Path | None, typer.Option("--config", "-c", help="say where in this file it goes")] = None,
) -> None:
    """Print a new key, then the line that goes under the tenant's `keys`. The key itself is kept nowhere."""
    from fairq.gateway.config_names import is_tenant_id
    from fairq.gateway.keys import config_line, new_key

    if not is_tenant_id(tenant):
        rule = "must be 1 to 128 letters, digits or ._@:+/- , first and last a letter or digit, and not `other`"
        raise ConfigError("TENANT", tenant, rule)
    place = f"tenant {tenant}'s `keys` in the configuration" if config is None else _place(config, tenant)
    key = new_key()
    typer.echo(key)
    typer.echo(config_line(key))
    typer.echo(f"line 1: the key, for {tenant}; it is shown only now\nline 2: for {place}", err=True)


def _place(path: Path, tenant: str) -> str:
    from fairq.gateway.config_source import Source

    try:
        source = Source(path.read_text(encoding="utf-8"), str(path), environ=None)
    except OSError as error:
        raise ConfigError("--config", str(path), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError("--config", str(path), "is not UTF-8") from None
    tenants = source.value.get("tenants") if isinstance(source.value, dict) else None
    for i, entry in enumerate(tenants if isinstance(tenants, tuple) else ()):
        if isinstance(entry, dict) and entry.get("id") == tenant:
            at = ("tenants", i, "keys") if "keys" in entry else ("tenants", i)
            return f"{path}:{source.line(at)}: tenants[{i}].keys"
    return f"{path}:{source.line(('tenants',))}: tenants: a new entry `- {{id: {tenant}, keys: [sha256:...]}}`"
