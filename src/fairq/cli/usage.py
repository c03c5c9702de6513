"""What is wrong with a command line, in one line: `fairq serve: --port = 'x': must be a whole number`."""

import re
from collections.abc import Sequence
from typing import Any

import typer

from fairq.core.errors import FairqError, UnknownName

# Typer carries click within itself or imports it, by version; of the errors it exports only this leaf.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

HELP: dict[str, Any] = {"help_option_names": ["--help", "-h"]}


def run(command: Any, arguments: Sequence[str], name: str) -> int:
    """Run a Typer application, or a function as one, and give its exit status. A group alone: its help, and 2.

    Raises FairqError for a command line that breaks a rule, as the command does for what it finds wrong itself.
    """
    group = isinstance(command, typer.Typer)
    if group and not arguments:
        run(command, ["--help"], name)
        return 2
    if not group:
        app = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        app.command()(command)
        command = app
    try:
        return typer.main.get_command(command).main([*arguments], prog_name=name, standalone_mode=False, **HELP) or 0
    except UsageError as error:
        raise FairqError(_told(error, arguments)) from None


def title(command: Any, arguments: Sequence[str], name: str) -> str:
    """What stands before a message: `fairq trace describe`, as far as the words are commands."""
    if isinstance(command, typer.Typer) and arguments:
        known = getattr(typer.main.get_command(command), "commands", {})
        return f"{name} {arguments[0]}" if arguments[0] in known else name
    return name


def _told(error: Any, arguments: Sequence[str]) -> str:
    """The message of one of click's errors, whose own words differ by version."""
    text: str = error.message
    kind = type(error).__name__
    if kind == "NoSuchOption":
        near = " or ".join(error.possibilities or ())
        return f"{error.option_name}: no such option" + (f"; did you mean {near}?" if near else "")
    if kind == "BadOptionUsage":
        needs = "must be followed by a value" if "requires" in text else "takes no value"
        return f"{error.option_name}: {needs}"
    param = getattr(error, "param", None)
    if param is not None:
        option = param.param_type_name == "option"
        shown = max(param.opts, key=len) if option else param.metavar or param.name.upper()
        if kind == "MissingParameter":
            return f"{shown}: missing; {_purpose(param)}"
        value = _given(param.opts, arguments) if option else None
        return f"{shown}{'' if value is None else f' = {value!r}'}: {_rule(param, text)}"
    if unknown := re.match(r"No such command '(.*?)'", text):
        return str(UnknownName("command", unknown[1], error.ctx.command.commands))
    if extra := re.search(r"unexpected extra arguments?(?:\(s\))? \((.*)\)", text):
        return f"{extra[1]!r}: too many arguments; quote what holds spaces"
    return text


def _purpose(param: Any) -> str:
    return str(param.help or "it must be given").rstrip(".")


def _given(names: Sequence[str], arguments: Sequence[str]) -> str | None:
    """The value that stands after the option, the last time it is given."""
    found = None
    for place, argument in enumerate(arguments):
        option, sign, value = argument.partition("=")
        if option in names:
            found = value if sign else next(iter(arguments[place + 1 :]), None)
    return found


def _rule(param: Any, text: str) -> str:
    limits = getattr(param, "type", param)  # of old versions the type has them
    least, most = getattr(limits, "min", None), getattr(limits, "max", None)
    bounds = "" if least is None else f" of at least {least:g}" if most is None else f" from {least:g} to {most:g}"
    words = text.lower()
    if "integer" in words or isinstance(least, int):
        return f"must be a whole number{bounds}"
    if "number" in words or "float" in words or least is not None:
        return f"must be a number{bounds}"
    return text.replace("Input should", "must").rstrip(".")
