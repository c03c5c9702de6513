"""`fairq config check FILE` and `fairq config schema`."""

import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Check a configuration; print its schema.", add_completion=False)


@app.command()
def check(file: Annotated[Path, typer.Argument(help="the YAML file", show_default=False)]) -> None:
    """Read FILE as `fairq serve -c FILE` would. Exit 2 with every broken rule, one per line."""
    from fairq.gateway.config import load
    from fairq.gateway.config_check import warnings
    from fairq.gateway.config_source import InvalidConfig

    try:
        config = load(file)
    except InvalidConfig as error:  # what was asked for: lines that start with their place, as editors read them
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    for warning in warnings(config):
        typer.echo(f"{file}: warning: {warning}", err=True)
    upstreams = sum(len(pool.upstreams) for pool in config.pools)
    engine = f"{len(config.pools)} pools, {upstreams} upstreams" if config.pools else "no pools: the embedded engine"
    typer.echo(f"{file}: good ({engine}, {len(config.tenants)} tenants, hash {config.hash()})")


@app.command()
def schema(
    markdown: Annotated[bool, typer.Option("--markdown", help="the reference of all keys, as in the docs")] = False,
) -> None:
    """The JSON Schema of the file, for editors (VS Code: `yaml.schemas`)."""
    if markdown:
        from fairq.gateway.config_docs import reference

        typer.echo(reference())
        return
    from fairq.gateway.config import Config

    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    typer.echo(json.dumps(dialect | Config.model_json_schema(), indent=2))
