"""Writes what is generated in docs/policies and examples/scenarios: rules, guarantees, parameters, numbers, pictures.

    python -m docs.build           rewrite what is stale
    python -m docs.build --check   say what is stale; exit status 1 if anything is
    python -m docs.build --redraw  and draw every picture anew, when what has changed is how they are drawn

A page's own words stand outside of the blocks `<!-- KIND ARGUMENTS -->` ... `<!-- end -->`, and are left alone. What is
inside is made of the code: rules and guarantees of the policy's docstring, numbers of runs of the gallery's scenarios.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from inspect import cleandoc
from pathlib import Path

from docs.tables import markdown, of_runs

from fairq.core.param import Param
from fairq.form import docstring
from fairq.locks import PROTOCOLS
from fairq.policies import POLICIES
from fairq.sim.catalogue import Entry, entry
from fairq.sim.scenario import Run, Scenario, load

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "policies"
SCENARIOS = ROOT / "examples" / "scenarios"
DRAWN = ("timeline", "tasks", "mean", "departures", "order", "fairness", "picks", "dominant_share", "used", "digest")
BLOCK = re.compile(r"<!-- (?!end )([a-z]+)([^\n]*) -->\n.*?<!-- end -->", re.S)

TEMPLATE = """# {name}

<!-- rule {name} -->
<!-- end -->

## Unit of fairness

<!-- fairness {name} -->
<!-- end -->

## What it must know

<!-- needs {name} -->
<!-- end -->

## Guarantees and assumptions

<!-- guarantees {name} -->
<!-- end -->

## Parameters

<!-- parameters {name} -->
<!-- end -->
"""


# Blocks
def rule(name: str) -> str:
    one = entry(name)
    cited = f" *({one.citation})*" if one.citation else ""
    return f"**{one.title}**{cited}" + code(one.text)


def code(text: str) -> str:
    """The indented paragraphs of a docstring: its formulas."""
    paragraphs = [part for part in text.split("\n\n") if part.startswith("    ")]
    return f"\n\n```text\n{cleandoc(chr(10).join(paragraphs))}\n```" if paragraphs else ""


def fairness(name: str) -> str:
    one = entry(name)
    return f"{one.fairness[:1].upper()}{one.fairness[1:]}."


def needs(name: str) -> str:
    one = entry(name)
    known = f"It must be given: {', '.join(one.needs)}." if one.needs else "Nothing: it runs wherever jobs come."
    runs = f" It runs on: {', '.join(one.layers)}." if one.layers else ""
    return known + runs + (" Jobs of one flow keep their order." if one.keeps_order else "")


def guarantees(name: str) -> str:
    return entry(name).guarantees


def parameters(name: str) -> str:
    params = entry(name).params
    if not params:
        return "None."
    rows = [[f"`{p.name.replace('_', '-')}`", f"`{shown(p)}`", allowed(p)] for p in params]
    return markdown(["parameter", "default", "allowed"], rows)


def shown(param: Param) -> str:
    if isinstance(param.default, bool):
        return "on" if param.default else "off"
    return str(param.default) or " "


def allowed(param: Param) -> str:
    if param.choices:
        return ", ".join(f"`{choice}`" for choice in param.choices)
    kind = {bool: "`on`, `off`", int: "whole number", str: "text"}.get(type(param.default), "number")
    low = "" if param.low is None else f", at least {param.low}"
    return kind + low + ("" if param.high is None else f", at most {param.high}")


def protocol(name: str) -> str:
    """Of a lock protocol: all that its file says, its formulas as code."""
    text = docstring(PROTOCOLS[name].__module__)
    if name == "none":
        text = cleandoc(PROTOCOLS[name].__doc__ or "")
    paragraphs = [f"```text\n{cleandoc(p)}\n```" if p.startswith("    ") else p for p in text.split("\n\n")]
    return "\n\n".join(paragraphs)


def example(page: Path, file: str, specs: list[str]) -> str:
    scenario, runs = ran(file, specs)
    where = f"examples/scenarios/{file}.yaml"
    up = "../" * len(page.relative_to(ROOT).parent.parts)
    asked = "".join(f' --policy "{spec}"' if "," in spec else f" --policy {spec}" for spec in specs)
    return "\n\n".join(
        [
            f"[{scenario.title}]({up}{where}). {scenario.look_for} *Source: {scenario.source}.*",
            f"```sh\nfairq sim {scenario.layer} {where}{asked} --plot picture.svg\n```",
            markdown(*of_runs(scenario, runs)),
            f"![{scenario.title}: {', '.join(specs)}]({page.stem}.svg)",
        ]
    )


def index() -> str:
    rows = []
    for name in POLICIES:
        one: Entry = entry(name)
        rows.append([f"[`{name}`]({name}.md)", one.title, one.unit, ", ".join(one.layers) or "engine"])
    return markdown(["policy", "rule", "fair in", "runs on"], rows)


def locks() -> str:
    rows = [[f"[`{name}`](locks/{name}.md)", first_sentence(protocol(name))] for name in PROTOCOLS]
    return markdown(["protocol", "rule"], rows)


def gallery() -> str:
    parts = []
    for file in sorted(SCENARIOS.glob("*/*.yaml")):
        scenario = load(file)
        named = f"{file.parent.name}/{file.name}"
        parts.append(
            f"### [{scenario.title}]({named})\n\n{scenario.look_for} *Source: {scenario.source}.*\n\n"
            f"```sh\nfairq sim {scenario.layer} examples/scenarios/{named}\n```"
        )
    return "\n\n".join(parts)


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.:])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(":")


KINDS: dict[str, Callable[..., str]] = {
    **{one.__name__: one for one in (rule, fairness, needs, guarantees, parameters, protocol)},
    **{one.__name__: one for one in (index, locks, gallery)},
}


# Pages
def ran(file: str, specs: list[str]) -> tuple[Scenario, list[Run]]:
    scenario = load(SCENARIOS / f"{file}.yaml", tuple(specs))
    return scenario, [run(file, spec) for spec in specs]


@cache
def run(file: str, spec: str) -> Run:
    """Pages share runs, and a page and its picture do."""
    found: Run = load(SCENARIOS / f"{file}.yaml", (spec,)).run(spec)
    return found


def filled(page: Path, text: str) -> str:
    def block(found: re.Match[str]) -> str:
        kind, arguments = found[1], found[2].split()
        made = example(page, arguments[0], arguments[1:]) if kind == "example" else KINDS[kind](*arguments)
        return f"<!-- {found[1]}{found[2]} -->\n{made}\n<!-- end -->"

    return BLOCK.sub(block, text)


def pages() -> Iterator[tuple[Path, str]]:
    """Every page and what it should say."""
    missing = [PAGES / f"{name}.md" for name in POLICIES if not (PAGES / f"{name}.md").exists()]
    for page in [*sorted(PAGES.rglob("*.md")), SCENARIOS / "README.md"]:
        yield page, filled(page, page.read_text(encoding="utf-8"))
    for page in missing:
        yield page, filled(page, TEMPLATE.format(name=page.stem))


def examples() -> Iterator[tuple[Path, str, list[str]]]:
    """Every page with an example, the scenario and the policies of it."""
    for page in sorted(PAGES.rglob("*.md")):
        for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
            if found[1] == "example":
                file, *specs = found[2].split()
                yield page, file, specs


# Pictures
def digest(scenario: Scenario, runs: list[Run]) -> str:
    """Of all that a picture is drawn from."""
    plain = [{key: value for key, value in run.as_json().items() if key in DRAWN} for run in runs]
    told = json.dumps([scenario.title, plain], default=str, sort_keys=True)
    return sha256(told.encode()).hexdigest()[:16]


def drawn(scenario: Scenario, runs: list[Run]) -> str:
    """An SVG, made smaller, with the digest in it."""
    import io

    import matplotlib as mpl

    from fairq.plot import figure
    from fairq.plot.style import SETTINGS

    file = io.StringIO()
    with mpl.rc_context(SETTINGS):
        figure(scenario, runs).savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    text = re.sub(r"(\d+\.\d\d)\d+", r"\1", file.getvalue())
    return text.replace("</svg>", f"<!-- runs {digest(scenario, runs)} -->\n</svg>")


def stale(pictures: bool = True, redraw: bool = False) -> Iterator[tuple[Path, str | None]]:
    """What should be written where; of a picture None unless `pictures` are to be drawn. redraw: all of them."""
    for page, text in pages():
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            yield page, text
    for page, file, specs in examples():
        picture = page.with_suffix(".svg")
        mark = f"<!-- runs {digest(*ran(file, specs))} -->"
        if redraw or not picture.exists() or mark not in picture.read_text(encoding="utf-8"):
            yield picture, drawn(*ran(file, specs)) if pictures else None


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    found = list(stale(pictures=not check, redraw="--redraw" in arguments))
    for path, text in found:
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
        if not check and text is not None:
            path.write_text(text, encoding="utf-8")
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
