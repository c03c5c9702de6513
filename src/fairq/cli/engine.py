"""`fairq engine`: simulated LLM servers alone."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Annotated

import typer

from fairq.core.errors import ConfigError
from fairq.engines.settings import EngineSettings


def engine(
    port: Annotated[int, typer.Option(help="Port of the first server; 0 takes free ones.")] = 8000,
    count: Annotated[int, typer.Option(help="How many servers, on consecutive ports.")] = 1,
    host: Annotated[str, typer.Option(help="Address to bind.")] = "127.0.0.1",
    preset: Annotated[str, typer.Option(help="Timing and limits of a measured engine.")] = "a10g-llama2-7b",
    speed: Annotated[float, typer.Option(help="10: every step ten times shorter.")] = 1.0,
    model: Annotated[str, typer.Option(help="The model name that clients ask for.")] = "simulated",
    max_sequences: Annotated[int | None, typer.Option(help="Sequences in the batch at once.")] = None,
    pool_tokens: Annotated[int | None, typer.Option(help="Tokens in the key-value cache.")] = None,
    context_length: Annotated[int | None, typer.Option(help="Longest prompt and answer together.")] = None,
    median_output: Annotated[int, typer.Option(help="Tokens of a typical answer that nothing cuts off.")] = 150,
    prefix_cache: Annotated[bool, typer.Option(help="Repeated prefixes are not prefilled again.")] = True,
    seed: Annotated[int, typer.Option(help="Another seed says other things.")] = 0,
) -> None:
    """Run simulated LLM servers with OpenAI's interface: real timing of a stated model, invented text.

    Prints one line of JSON with the addresses when they answer. Ends on SIGINT or SIGTERM.
    """
    try:
        settings = EngineSettings(
            count=count,
            host=host,
            port=port,
            preset=preset,
            speed=speed,
            model=model,
            max_sequences=max_sequences,
            pool_tokens=pool_tokens,
            context_length=context_length,
            median_output=median_output,
            prefix_cache=prefix_cache,
            seed=seed,
        )
        _run(settings)
    except ConfigError as wrong:
        option = wrong.key.replace("engine.", "--").replace("_", "-")
        raise ConfigError(option, wrong.value, wrong.rule) from None


def _run(settings: EngineSettings) -> None:
    from fairq.engines.process import new_event_loop, serve  # loads the servers: not for `fairq --help`

    async def until_signal() -> None:
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        await serve(settings, _print, stopped)

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(until_signal())


def _print(line: bytes) -> None:
    sys.stdout.write(line.decode())
    sys.stdout.flush()
