"""The command line. Each command is loaded when it is called, so that `fairq --help` is quick.

`main` runs before anything else is loaded: Ctrl-C while Python loads would be a traceback, inside of it it is none.
"""

import sys

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
    try:
        sys.exit(_main())
    except BrokenPipeError:  # `fairq ... | head`
        sys.exit(141)
    except KeyboardInterrupt:
        sys.exit(130)


def _main() -> int:
    name, *rest = sys.argv[1:] or [""]
    if name in ("--help", "-h", "help", ""):
        width = max(map(len, COMMANDS))
        print(USAGE.format(commands="\n".join(f"  {c:{width}}  {text}" for c, (_, text) in COMMANDS.items())))  # noqa: T201
        return 0 if name else 2
    if name in ("--version", "-V"):
        from fairq import __version__
        from fairq.form import form

        print(f"fairq {__version__}, {form()}")  # noqa: T201
        return 0
    if name not in COMMANDS:
        from fairq.core.errors import UnknownName

        return complain("fairq", UnknownName("command", name, COMMANDS))
    return _run(name, rest)


def _run(name: str, arguments: list[str]) -> int:
    from importlib import import_module

    from fairq.cli.usage import run, title
    from fairq.core.errors import FairqError

    module, _, attribute = COMMANDS[name][0].partition(":")
    command = getattr(import_module(module), attribute)

    try:
        return run(command, arguments, f"fairq {name}")
    except BrokenPipeError:
        raise
    except (FairqError, OSError) as error:
        return complain(title(command, arguments, f"fairq {name}"), error)


def complain(title: str, error: Exception) -> int:
    """Each broken rule on a line of its own; the exit status is 2."""
    text = f"{error.filename or 'system'}: {error.strerror or error}" if isinstance(error, OSError) else str(error)
    for line in text.splitlines():
        print(f"{title}: {line}", file=sys.stderr)  # noqa: T201
    return 2
