"""The command line. Each command is loaded when it is called, so that `fairq --help` is quick."""

import sys
from importlib import import_module

from fairq import __version__
from fairq.core.errors import FairqError, UnknownName

COMMANDS: dict[str, tuple[str, str]] = {
    "serve": ("fairq.cli.serve:serve", "the gateway and its console; with no upstream, in front of simulated servers"),
    "engine": ("fairq.cli.engine:engine", "simulated OpenAI-compatible servers alone"),
    "console": ("fairq.cli.console:console", "the console alone, beside a running gateway"),
    "lab": ("fairq.cli.lab:lab", "schedulers to play with, in the browser"),
    "load": ("fairq.cli.load:load", "replay a trace against a gateway, open loop"),
    "replay": ("fairq.cli.ledger:replay", "take a ledger's decisions again and compare"),
    "audit": ("fairq.cli.ledger:audit", "check every bound over a ledger; exit 1 on a violation"),
    "explain": ("fairq.cli.ledger:explain", "why a request waited, step by step"),
    "sim": ("fairq.cli.sim:app", "run schedulers on a CPU, a link, a cluster, a router or an engine"),
    "analyze": ("fairq.cli.analyze:analyze", "whether a periodic task set meets its deadlines"),
    "policies": ("fairq.cli.policies:policies", "the schedulers: what each is fair in, must know, and promises"),
    "choose": ("fairq.cli.choose:choose", "which scheduler fits what you want and know"),
    "trace": ("fairq.cli.trace:app", "look at recorded traffic"),
    "calibrate": ("fairq.cli.calibrate:calibrate", "fit a simulated engine's times to those of a real one"),
    "capacity": ("fairq.cli.capacity:find", "the highest load at which each policy holds your targets"),
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
    name, *rest = sys.argv[1:] or [""]
    if name in ("--help", "-h", "help", ""):
        width = max(map(len, COMMANDS))
        print(USAGE.format(commands="\n".join(f"  {c:{width}}  {text}" for c, (_, text) in COMMANDS.items())))  # noqa: T201
        sys.exit(0 if name else 2)
    if name in ("--version", "-V"):
        print(f"fairq {__version__}")  # noqa: T201
        return
    if name not in COMMANDS:
        sys.exit(complain("fairq", UnknownName("command", name, COMMANDS)))
    try:
        sys.exit(_run(name, rest))
    except BrokenPipeError:  # `fairq ... | head`
        sys.exit(141)
    except KeyboardInterrupt:
        sys.exit(130)


def _run(name: str, arguments: list[str]) -> int:
    module, _, attribute = COMMANDS[name][0].partition(":")
    command = getattr(import_module(module), attribute)
    from fairq.cli.usage import run, title

    try:
        return run(command, arguments, f"fairq {name}")
    except BrokenPipeError:
        raise
    except (FairqError, OSError) as error:
        return complain(title(command, arguments, f"fairq {name}"), error)


def complain(title: str, error: Exception) -> int:
    """Each broken rule on a line of its own; the exit status is 2."""
    if isinstance(error, OSError):
        error = FairqError(f"{error.filename or 'system'}: {error.strerror or error}")
    for line in str(error).splitlines():
        print(f"{title}: {line}", file=sys.stderr)  # noqa: T201
    return 2
