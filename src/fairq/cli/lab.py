"""`fairq lab`: the lab alone, without a gateway."""

from __future__ import annotations

from typing import Annotated

import typer


def lab(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8082,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A further Host name that it answers to.")
    ] = None,
    token: Annotated[
        str, typer.Option(envvar="FAIRQ_CONSOLE_TOKEN", help="Asked for off loopback, as password in the browser.")
    ] = "",
) -> None:
    """Every scheduler, step by step, in the browser. `fairq serve` has it too, at /lab of its console.

    Example: fairq lab --port 9000
    """
    from fairq.console.alone import run
    from fairq.console.guard import Access
    from fairq.console.server import address_of, bind

    access = Access(host, tuple(allow_host or ()), token)
    access.check()
    listener = bind(host, port)
    typer.echo(f"fairq lab: {address_of(listener)}/lab")
    run(access, listener)
