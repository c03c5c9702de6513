"""Scenario text: plain values that remember the line they stand on.

Every scalar stays the text that was written; the scenario's types decide what it means. So `id: 1`, `id: no` and
`id: 007` are names, and `burst: 1e3` is not a number by accident. Empty, `~` and `null` are None.
"""

from pathlib import Path
from typing import Any

import yaml

from fairq.core.errors import FairqError

Place = tuple[int | str, ...]
NODES = 1_000_000  # a task is about ten; an alias of aliases would never end


MOST_TOLD = 3  # problems


class InvalidScenario(FairqError):
    """A scenario breaks rules. One line: where, key, value, rule, of the first few."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        more = [f"and {len(problems) - MOST_TOLD} more"] if len(problems) > MOST_TOLD else []
        super().__init__("; ".join(problems[:MOST_TOLD] + more))


class Source:
    """`value`, and where each part of it was written."""

    def __init__(self, name: str, value: Any, lines: dict[Place, int]) -> None:
        self.name, self.value, self._lines = name, value, lines

    def where(self, place: Place) -> str:
        while place not in self._lines and place:
            place = place[:-1]
        line = self._lines.get(place)
        return f"{self.name}:{line}" if line else self.name


def read_yaml(path: Path) -> Source:
    """Raises InvalidScenario: not readable, not YAML, a key given twice."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidScenario([f"{path}: {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise InvalidScenario([f"{path}: not UTF-8 text"]) from None
    return read_text(path.name, text)


def read_text(name: str, text: str) -> Source:
    """The same from text; messages say that it stands in `name`."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        lines: dict[Place, int] = {}
        value = {} if root is None else _read(root, (), lines, name, set())
    except RecursionError:
        raise InvalidScenario([f"{name}: nested too deeply"]) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InvalidScenario([f"{name}:{line}: not YAML: {error.problem or error.context}"]) from None
    except yaml.YAMLError as error:
        raise InvalidScenario([f"{name}: not YAML: {str(error).splitlines()[0]}"]) from None
    if not isinstance(value, dict):
        raise InvalidScenario([f"{name}: must be keys and values, such as `layer: cpu`"])
    return Source(name, value, lines)


def _read(node: yaml.Node, place: Place, lines: dict[Place, int], name: str, open_: set[int]) -> Any:
    lines.setdefault(place, node.start_mark.line + 1)
    if len(lines) > NODES or id(node) in open_:
        raise InvalidScenario([f"{name}:{node.start_mark.line + 1}: too large, or an alias that holds itself"])
    if isinstance(node, yaml.ScalarNode):
        return None if not node.style and node.value in ("", "~", "null") else node.value
    open_.add(id(node))
    value: Any
    if isinstance(node, yaml.SequenceNode):
        value = [_read(child, (*place, i), lines, name, open_) for i, child in enumerate(node.value)]
    else:
        value = {}
        for key, child in node.value:
            if key.value in value:
                raise InvalidScenario([f"{name}:{key.start_mark.line + 1}: {key.value}: given twice"])
            value[key.value] = _read(child, (*place, key.value), lines, name, open_)
    open_.discard(id(node))
    return value
