"""The command line. Each command is loaded when it is called, so that `fairq --help` is quick."""

import sys
from importlib import import_module

from fairq import __version__
from fairq.core.errors import FairqError, UnknownName

COMMANDS: dict[str, tuple[str, str]] = {
    "serve": ("fairq.cli.serve:serve", "the gateway and its console; with no upstream, in front of simulated servers"),
    "engine": ("fairq.cli.engine:engine", "simulated OpenAI-compatible servers alone"),
    "console": ("fairq.cli.console:console", "the console alone, beside a running gateway"),
    "load": ("fairq.cli.load:load", "replay a trace against a gateway, open loop"),
    "replay": ("fairq.cli.ledger:replay", "take a ledger's decisions again and compare"),
    "audit": ("fairq.cli.ledger:audit", "check every bound over a ledger; exit 1 on a violation"),
    "explain": ("fairq.cli.ledger:explain", "why a request waited, step by step"),
    "sim": ("fairq.cli.sim:app", "run schedulers on a CPU, a link, a cluster, a router or an engine"),
    "analyze": ("fairq.cli.analyze:analyze", "whether a periodic task set meets its deadlines"),
    "trace": ("fairq.cli.trace:app", "look at recorded traffic"),
    "key": ("fairq.cli.key:app", "make API keys"),
    "config": ("fairq.cli.config:app", "check a configuration, print its schema"),
}

USAGE = """fairq decides whose work runs next.

Usage: fairq COMMAND [OPTIONS]

{commands}

Each has --help. Try:
  fairq serve                                                    a gateway with two simulated servers
  fairq serve --upstream http://127.0.0.1:8000 --max-inflight 8  in front of your own
  fairq audit ledger                                             what it promised, checked
"""


def main() -> None:
    """The `fairq` program. Exit status 2 for anything the user got wrong."""
    name, *rest = sys.argv[1:] or ["--help"]
    if name in ("--help", "-h", "help"):
        width = max(map(len, COMMANDS))
        print(USAGE.format(commands="\n".join(f"  {c:{width}}  {text}" for c, (_, text) in COMMANDS.items())))  # noqa: T201
        return
    if name in ("--version", "-V"):
        print(f"fairq {__version__}")  # noqa: T201
        return
    try:
        if name not in COMMANDS:
            raise UnknownName("command", name, COMMANDS)
        _run(name, rest)
    except FairqError as error:
        sys.exit(_complain(f"fairq: {error}"))
    except BrokenPipeError:  # `fairq ... | head`
        sys.exit(141)


def _run(name: str, arguments: list[str]) -> None:
    import typer

    module, _, attribute = COMMANDS[name][0].partition(":")
    command = getattr(import_module(module), attribute)
    if not isinstance(command, typer.Typer):
        app = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        app.command(context_settings={"help_option_names": ["--help", "-h"]})(command)
        command = app
    command(arguments, prog_name=f"fairq {name}")


def _complain(line: str) -> int:
    print(line, file=sys.stderr)  # noqa: T201
    return 2
