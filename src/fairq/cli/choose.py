"""`fairq choose`: from what one wants and what one knows to a scheduler."""

import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
import typer

from fairq.cli.advice import Advice, advise
from fairq.cli.checklist import checklist
from fairq.cli.questions import OF_LAYER, QUESTIONS, Question, settled
from fairq.cli.sim_output import AsJson
from fairq.core.errors import ConfigError
from fairq.placements import BY_PREFIX
from fairq.policies import POLICIES

EXAMPLES = """
Examples:

    fairq choose                                     asks, in a terminal

    fairq choose --layer router --objective share

    fairq choose --layer cpu --objective completion --sizes unknown --json
"""
BESIDE = (
    "admission limits what anybody may send; the fair scheduler divides what there is when it is short; "
    "placement looks after locality and load; the engine's scheduler charges real tokens"
)


def option(key: str) -> Any:
    question = next(one for one in QUESTIONS if one.key == key)
    return typer.Option(f"--{key}", metavar="|".join(question.answers), help=question.ask)


Answer = str | None


def choose(
    layer: Annotated[Answer, option("layer")] = None,
    objective: Annotated[Answer, option("objective")] = None,
    subject: Annotated[Answer, option("subject")] = None,
    sizes: Annotated[Answer, option("sizes")] = None,
    preemption: Annotated[Answer, option("preemption")] = None,
    resources: Annotated[Answer, option("resources")] = None,
    locality: Annotated[Answer, option("locality")] = None,
    deadlines: Annotated[Answer, option("deadlines")] = None,
    as_json: AsJson = False,
) -> None:
    """Which scheduler fits: asks what is wanted and known, or takes it as options; says why, and what to beware of.

    Only the layer and the objective have to be given.
    """
    given: dict[str, Answer] = {
        "layer": layer,
        "objective": objective,
        "subject": subject,
        "sizes": sizes,
        "preemption": preemption,
        "resources": resources,
        "locality": locality,
        "deadlines": deadlines,
    }
    settled(given)  # what was given is right, before anything is asked
    if not as_json and not any(given.values()) and sys.stdin.isatty():
        given = ask(typer.prompt)
    for question in QUESTIONS[:2]:
        if not given[question.key]:
            raise ConfigError(f"--{question.key}", None, f"missing; one of {', '.join(question.answers)}")
    answers = settled(given)
    found = advise(answers)
    if as_json:
        document = {
            "answers": answers,
            "recommended": [told(advice) for advice in found],
            "checklist": checklist(answers, found[0]),
        }
        typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())
    else:
        _print(answers, found)


def ask(prompt: Callable[..., str]) -> dict[str, Answer]:
    """Every question in turn. What the layer settles is offered as the answer."""
    found: dict[str, Answer] = {}
    for question in QUESTIONS:
        offered = OF_LAYER.get(found.get("layer") or "", {}).get(question.key, question.default)
        if question.key == "deadlines" and found["objective"] == "deadlines":
            offered = "hard"
        typer.echo(f"\n{question.ask}", err=True)
        for answer, meaning in question.answers.items():
            typer.echo(f"    {answer:13} {meaning}", err=True)
        found[question.key] = _answer(question, prompt, offered)
    return found


def _answer(question: Question, prompt: Callable[..., str], offered: str | None) -> str:
    """A beginning is enough where only one answer begins so."""
    while True:
        said = prompt("answer", default=offered, err=True).strip().lower()
        near = (
            [said] if said in question.answers else [one for one in question.answers if said and one.startswith(said)]
        )
        if len(near) == 1:
            return near[0]
        typer.echo(f"one of {', '.join(question.answers)}", err=True)


def told(advice: Advice) -> dict[str, Any]:
    """`command` is None where this version has none of the policies."""
    here = [spec for spec in advice.policies if is_here(spec)]
    return {
        "row": advice.row,
        "policies": list(advice.policies),
        "available": here,
        "why": advice.why,
        "assumes": list(advice.assumes),
        "beware": list(advice.beware),
        "command": command(advice, here) if here else None,
    }


def command(advice: Advice, here: list[str]) -> str:
    """Placements stand in the advice's command already."""
    policies = [spec for spec in here if spec.partition(":")[0] in POLICIES]
    return advice.command.format(policies=" ".join(f"--policy {spec}" for spec in policies))


def is_here(spec: str) -> bool:
    return spec.partition(":")[0] in POLICIES.keys() | BY_PREFIX.keys()


def _print(answers: Mapping[str, str], found: list[Advice]) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)

    def say(title: str, text: str) -> None:
        console.print(f"  {title:9} {escape(text)}", soft_wrap=True)

    console.print(", ".join(f"{key} {answer}" for key, answer in answers.items()), style="dim", soft_wrap=True)
    for index, advice in enumerate(found):
        one = told(advice)
        names = ", ".join(spec if is_here(spec) else f"{spec} (not in this version)" for spec in advice.policies)
        console.print(f"\n{'or: ' if index else ''}[bold]{escape(names)}[/bold]", soft_wrap=True)
        say("why", advice.why)
        for title, lines in (("assumes", advice.assumes), ("beware", advice.beware)):
            for number, line in enumerate(lines):
                say("" if number else title, line)
        if one["command"]:
            say("try", one["command"])
    if answers["layer"] in ("router", "engine"):
        console.print(f"\nOne layer does not do it all: {BESIDE}.", soft_wrap=True)
    console.print("\nBefore it goes into use:")
    for item in checklist(answers, found[0]):
        answer = item["answer"] or "to be settled"
        console.print(
            f"  {item['number']:>2}  {escape(str(item['question']))}  [dim]{escape(str(answer))}[/dim]", soft_wrap=True
        )
