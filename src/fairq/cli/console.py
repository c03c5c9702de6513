"""`fairq console`: the console alone, beside a gateway that was started with `console.enabled: false`, or elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairq.core.errors import ConfigError


def console(
    ledger: Annotated[Path | None, typer.Option(help="Ledger directory of the gateway; ./ledger by default.")] = None,
    socket: Annotated[Path | None, typer.Option(help="Its control socket; LEDGER/control.sock by default.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8081,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A further Host name that it answers to.")
    ] = None,
    tenants: Annotated[int, typer.Option(min=1, max=10_000, help="So many tenants are counted on their own.")] = 200,
    token: Annotated[
        str, typer.Option(envvar="FAIRQ_CONSOLE_TOKEN", help="The admin token; without one nothing can be changed.")
    ] = "",
) -> None:
    """Metrics, JSON API and status page of a running gateway.

    It stays when the gateway goes, says since when it is disconnected, and connects again when the gateway is back.
    Give the admin token in FAIRQ_CONSOLE_TOKEN: other users of this machine can read command lines.

    Example: fairq console --ledger ledger --port 9000
    """
    from fairq.console.guard import Access
    from fairq.console.server import Settings, address_of, bind, run
    from fairq.gateway.config_check import token_warnings

    folder = ledger or (None if socket else Path("ledger"))
    if folder is not None and not folder.is_dir():
        raise ConfigError("--ledger", str(folder), "is not a directory")
    path = socket or (folder or Path()) / "control.sock"
    access = Access(host, tuple(allow_host or ()), token)
    access.check()
    listener = bind(host, port)
    for warning in token_warnings("FAIRQ_CONSOLE_TOKEN", token):
        typer.echo(f"fairq console: warning: {warning}", err=True)
    typer.echo(f"fairq console: {address_of(listener)}")
    run(Settings(path=path, access=access, listen=listener.detach(), labels=tenants, ledger=folder))
