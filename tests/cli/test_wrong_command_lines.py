"""What is typed wrong is answered in one line that names command, option, value and rule; the status is 2."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import pytest
import typer
from tests.cli.program import Said, fairq

from fairq.cli import COMMANDS


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """The words of every command, and Typer's object of it."""
    for name, (place, _) in COMMANDS.items():
        module, _, attribute = place.partition(":")
        found = getattr(import_module(module), attribute)
        if isinstance(found, typer.Typer):
            yield from (((name, inner), command) for inner, command in group(found).items())
        else:
            app = typer.Typer(add_completion=False)
            app.command()(found)
            yield (name,), typer.main.get_command(app)


def group(app: typer.Typer) -> dict[str, Any]:
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return commands


EVERY = list(commands())
GROUPS = [name for name, (place, _) in COMMANDS.items() if place.endswith(":app")]


def numbers(command: Any) -> Iterator[tuple[str, type]]:
    hints = get_type_hints(inspect.unwrap(command.callback))
    for param in command.params:
        kinds = {*get_args(hints.get(param.name)), hints.get(param.name)} - {NoneType}
        for kind in kinds & {int, float}:
            if param.param_type_name == "option":
                yield max(param.opts, key=len), kind


def refused(said: Said, words: tuple[str, ...]) -> str:
    """The message behind the command's name."""
    title = f"fairq {' '.join(words)}: "
    assert (said.status, said.out, said.err.count("\n")) == (2, "", 1), said
    assert said.err.startswith(title)
    return said.err.removeprefix(title).rstrip()


@pytest.mark.parametrize(
    ("words", "command"), EVERY, ids=lambda each: " ".join(each) if isinstance(each, tuple) else ""
)
def test_every_command_refuses_what_it_does_not_know(words: tuple[str, ...], command: Any) -> None:
    assert refused(fairq(*words, "--no-such-thing"), words) == "--no-such-thing: no such option"
    places = [param for param in command.params if param.param_type_name == "argument"]
    valued = next((param for param in command.params if param.param_type_name == "option" and not param.is_flag), None)
    if valued is not None:
        option = max(valued.opts, key=len)
        assert refused(fairq(*words, option), words) == f"{option}: must be followed by a value"
    if any(param.required for param in command.params):
        assert ": missing; " in refused(fairq(*words), words)
    if not any(param.required and param.param_type_name == "option" for param in command.params):
        given = ["one"] * len(places)
        assert refused(fairq(*words, *given, "more"), words) == "'more': too many arguments; quote what holds spaces"


@pytest.mark.parametrize(
    ("words", "option", "kind"), [(words, *number) for words, command in EVERY for number in numbers(command)]
)
def test_every_number_must_be_one(words: tuple[str, ...], option: str, kind: type) -> None:
    whole = "whole " if kind is int else ""
    assert refused(fairq(*words, option, "x"), words).startswith(f"{option} = 'x': must be a {whole}number")
    assert refused(fairq(*words, f"{option}=1.x"), words).startswith(f"{option} = '1.x': must be a {whole}number")


@pytest.mark.parametrize(
    ("words", "arguments", "message"),
    [
        (("serve",), ["--prot", "1"], "--prot: no such option; did you mean --port"),
        (("serve",), ["--quiet=1"], "--quiet: takes no value"),
        (("console",), ["--port", "70000"], "--port = '70000': must be a whole number from 0 to 65535"),
        (("load",), ["t", "--target", "http://x", "--timeout=0"], "--timeout = '0': must be a number of at least 0.1"),
        (("config",), ["chekc"], "command = 'chekc': unknown; did you mean check?"),
        (("config",), ["other"], "command = 'other': unknown; known are check, schema"),
        ((), ["serv"], "command = 'serv': unknown; did you mean serve?"),
        ((), ["--port"], "command = '--port': unknown; known are"),
    ],
)
def test_near_misses_are_told_what_is_near(words: tuple[str, ...], arguments: list[str], message: str) -> None:
    title = " ".join(("fairq", *words))
    said = fairq(*words, *arguments)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"{title}: {message}")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("words", [(), *((name,) for name in GROUPS)], ids=" ".join)
def test_a_group_alone_shows_its_help_and_fails(words: tuple[str, ...]) -> None:
    alone, asked = fairq(*words), fairq(*words, "--help")
    assert (alone.status, asked.status) == (2, 0)
    assert alone.out == asked.out
    assert "--install-completion" not in alone.out
    assert alone.err == ""
    assert len(alone.out.splitlines()) > 5


@pytest.mark.parametrize(
    ("words", "command"), EVERY, ids=lambda each: " ".join(each) if isinstance(each, tuple) else ""
)
def test_every_command_has_help_in_both_spellings(words: tuple[str, ...], command: Any) -> None:
    long, short = fairq(*words, "--help"), fairq(*words, "-h")
    assert (long.status, long.err) == (0, "")
    assert long.out == short.out
    assert f"fairq {' '.join(words)}" in long.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("audit", "FOLDER/none"), "FOLDER/none: No such file or directory"),
        (("audit", "FOLDER"), "FOLDER: holds no segment"),
        (("audit", "FOLDER/empty"), "FOLDER/empty: holds no segment that can be read"),
        (("replay", "FOLDER/empty"), "FOLDER/empty: holds no segment that can be read"),
        (("replay", "FOLDER/none"), "FOLDER/none: No such file or directory"),
        (("explain", "FOLDER/none", "r"), "FOLDER/none: No such file or directory"),
        (("console", "--ledger", "FOLDER/empty"), "--ledger = 'FOLDER/empty': is not a directory"),
        (("serve", "-c", "FOLDER/none.yaml"), "FOLDER/none.yaml: cannot be read: No such file or directory"),
        (("load", "FOLDER/none.csv", "--target", "http://x"), "FOLDER/none.csv: cannot be read: No such file"),
    ],
)
def test_a_file_that_is_not_there_is_named(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    (tmp_path / "empty").touch()
    said = fairq(*(word.replace("FOLDER", str(tmp_path)) for word in words))
    assert refused(said, words[:1]).startswith(message.replace("FOLDER", str(tmp_path)))
