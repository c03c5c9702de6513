"""`fairq serve`: the data plane in this process, the console and the simulated engine as its children."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer


def serve(
    config: Annotated[Path | None, typer.Option("--config", "-c", help="The YAML file. See `fairq config`.")] = None,
    upstream: Annotated[
        list[str] | None, typer.Option(help="An OpenAI-compatible server, http://HOST:PORT. May be repeated.")
    ] = None,
    max_inflight: Annotated[
        int | None, typer.Option(help="How many requests each --upstream runs at once: its slots.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; 127.0.0.1 by default.")] = None,
    port: Annotated[int | None, typer.Option(help="Port of the API; 8080 by default, 0 takes a free one.")] = None,
    console_port: Annotated[int | None, typer.Option(help="Port of the console; 8081 by default.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="Directory of the ledger; ./ledger by default.")] = None,
    policy: Annotated[str | None, typer.Option(help="sfq by default; NAME or NAME:key=value, for every pool.")] = None,
    settlement: Annotated[str | None, typer.Option(help="fixed by default, or forward, for every pool.")] = None,
    log_json: Annotated[bool, typer.Option("--log-json", help="One JSON object per request.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No line per request.")] = False,
) -> None:
    """Run the gateway. Without --config and --upstream it stands in front of two simulated servers.

    SIGTERM and Ctrl-C drain it; SIGHUP reads the configuration again.

    Examples:

        fairq serve

        fairq serve --upstream http://127.0.0.1:8000 --upstream http://127.0.0.1:8001 --max-inflight 8

        fairq serve -c fairq.yaml
    """
    from fairq.cli.serving import Options, Serving
    from fairq.engines.process import new_event_loop

    options = Options(
        config=config,
        upstreams=upstream or [],
        max_inflight=max_inflight,
        settings={"--host": host, "--port": port, "--console-port": console_port, "--ledger": ledger},
        pool={"policy": policy, "settlement": settlement},
        log="off" if quiet else "json" if log_json else None,
    )
    loaded = options.load()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(Serving(options, loaded).run())
