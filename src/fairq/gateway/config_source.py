"""From YAML text to plain values, keeping for every value the line it stands on and the text it was written as.

Plain scalars are read by the core schema of YAML 1.2, not by PyYAML's 1.1 (where ``no`` is false and ``1:30`` is 90).
Sequences become tuples. ``${NAME}`` inside any scalar takes text from the environment; ``$${`` stands for ``${``.
"""

import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from fairq.core.errors import FairqError
from fairq.gateway.config_values import FromEnvironment

Place = tuple[int | str, ...]

_PLAIN: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("null", re.compile(r"~|null|Null|NULL|")),
    ("bool", re.compile(r"true|True|TRUE|false|False|FALSE")),
    ("int", re.compile(r"[-+]?[0-9]+")),
    ("float", re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")),
    ("float", re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")),
)
_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")}
_VARIABLE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{")
_MAX_NODES = 2_000_000  # a tenant is about ten; aliases of aliases would otherwise never end
_SHOWN = 80  # characters of a wrong value in a message


@dataclass(frozen=True, slots=True)
class Problem:
    """A broken rule: its line (0: the whole file), what was written there (None: not to be shown), and the rule."""

    line: int
    key: str
    value: str | None
    rule: str

    def __str__(self) -> str:
        shown = "" if self.value is None else f" = {self.value}"
        parts = (str(self.line) if self.line else "", f" {self.key}{shown}" if self.key else "", f" {self.rule}")
        return ":".join(filter(None, parts))


class InvalidConfig(FairqError):
    """A configuration breaks rules. `str()` has one line ``FILE:LINE: key = value: rule`` for each, in file order."""

    def __init__(self, name: str, problems: list[Problem]) -> None:
        self.name = name
        self.problems = sorted(problems, key=lambda problem: problem.line)
        super().__init__("\n".join(f"{name}:{problem}" for problem in self.problems))


class _Scalars(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Composes nodes only: PyYAML neither resolves nor constructs anything of ours."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 -- PyYAML's own name and shape


def show_place(place: Place) -> str:
    """``pools[0].upstreams[1].url``."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


class Source:
    """A parsed file: `value` for the schema, and the way back from a place in it to line and text.

    `problems`: what is wrong with single values; something stands in for each, so that the others can be checked too.
    """

    def __init__(self, text: str, name: str, environ: Mapping[str, str] | None) -> None:
        """Without `environ` ``${NAME}`` stays. Raises InvalidConfig for what is not YAML, or has no end."""
        self.name = name
        self.problems: list[Problem] = []
        self._environ = environ
        self._lines: dict[Place, int] = {(): 1}
        self._texts: dict[Place, str] = {}
        self._open: set[int] = set()
        self._nodes = 0
        try:
            root = yaml.compose(text, Loader=_Scalars)
            self.value: Any = None if root is None else self._read(root, ())
        except RecursionError:
            raise InvalidConfig(name, [Problem(1, "", None, "nested too deeply")]) from None
        except yaml.MarkedYAMLError as error:  # its own text quotes the file, which may hold secrets
            mark = error.problem_mark or error.context_mark
            line = mark.line if mark else 0
            rule = f"not YAML: {error.problem or error.context}"
            if "${" in "".join(text.splitlines()[line : line + 1]):
                rule += " (inside { } or [ ] write '${NAME}' in quotes)"
            raise InvalidConfig(name, [Problem(line + 1, "", None, rule)]) from None
        except yaml.YAMLError as error:
            raise InvalidConfig(name, [Problem(1, "", None, f"not YAML: {error}".splitlines()[0])]) from None
        if self.value is None:
            self.value = {}

    def line(self, place: Place) -> int:
        """The line of the value at `place`, or of the nearest value around it."""
        while place not in self._lines:
            place = place[:-1]
        return self._lines[place]

    def text(self, place: Place) -> str | None:
        """The value at `place` as written, shortened; None when nothing is there."""
        text = self._texts.get(place)
        return text if text is None or len(text) <= _SHOWN else text[:_SHOWN] + "..."

    def _refuse(self, node: yaml.Node, place: Place, value: str | None, rule: str) -> None:
        self.problems.append(Problem(node.start_mark.line + 1, show_place(place), value, rule))

    def _read(self, node: yaml.Node, place: Place) -> Any:
        self._lines.setdefault(place, node.start_mark.line + 1)
        self._nodes += 1
        if self._nodes > _MAX_NODES or id(node) in self._open:
            self._refuse(node, place, None, "aliases must not repeat themselves without end")
            raise InvalidConfig(self.name, self.problems)
        if node.tag not in _TAGS:
            self._refuse(node, place, None, "YAML tags (!name) mean nothing here")
            return None
        if isinstance(node, yaml.ScalarNode):
            self._texts[place] = repr(node.value) if node.style else node.value
            return self._scalar(node, place)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                self._texts[place] = "[...]"
                return tuple(self._read(child, (*place, i)) for i, child in enumerate(node.value))
            self._texts[place] = "{...}"
            assert isinstance(node, yaml.MappingNode)
            return self._mapping(node, place)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        values: dict[str, Any] = {}
        first: dict[Hashable, int] = {}
        # Merged keys are read first, so that lines and texts of keys given beside them are the ones that stay.
        pairs = sorted(node.value, key=lambda pair: pair[0].value != "<<")
        for key, child in pairs:
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(key, place, None, "a key must be a plain word")
                continue
            if key.value == "<<" and not key.style:
                for merged in self._merged(child, place):
                    values = {**merged, **values}
                continue
            inside = (*place, key.value)
            if key.value in first:
                self._refuse(key, inside, None, f"already given on line {first[key.value]}")
                continue
            first[key.value] = key.start_mark.line + 1
            self._lines[inside] = key.start_mark.line + 1
            values[key.value] = self._read(child, inside)
        return values

    def _merged(self, node: yaml.Node, place: Place) -> Iterator[dict[str, Any]]:
        """``<<: *defaults``: keys given beside it win; of several, earlier ones win."""
        for child in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if isinstance(child, yaml.MappingNode):
                yield self._read(child, place) or {}
            else:
                self._refuse(child, place, None, "<< takes a mapping or a list of mappings")

    def _scalar(self, node: yaml.ScalarNode, place: Place) -> Any:
        if "${" in node.value and self._environ is not None:
            return self._substituted(node, place, self._environ)
        return node.value if node.style else _plain(node.value)

    def _substituted(self, node: yaml.ScalarNode, place: Place, environ: Mapping[str, str]) -> str:
        shown = self._texts[place]

        def value(match: re.Match[str]) -> str:
            if match[0] == "$${":
                return "${"
            if match[1] is None:
                self._refuse(node, place, shown, "write ${NAME} for an environment variable, or $${ for the text ${")
                return ""
            found = environ.get(match[1], "")
            if not found:
                self._refuse(node, place, shown, f"environment variable {match[1]} is not set or empty")
            return found or match[1]

        return FromEnvironment(_VARIABLE.sub(value, node.value))


def _plain(text: str) -> Any:
    for kind, pattern in _PLAIN:
        if pattern.fullmatch(text):
            if kind == "null":
                return None
            if kind == "bool":
                return text.lower() == "true"
            if kind == "int":
                return int(text)
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text
