"""What is wrong with a configuration, in our words, and where."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from fairq.gateway.config_source import Place, Problem, Source, show_place

_RULES = {
    "missing": "required, but not given",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "string_type": "must be text (quote a number)",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping of names to values",
    "model_type": "must be a mapping of keys to values (leave it out for its defaults)",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be one of {expected}",
    "too_short": "must not be empty",
}


def problems_of(detail: ErrorDetails, source: Source, root: type[BaseModel]) -> Iterator[Problem]:
    """What one of pydantic's errors says of the file that `root` describes."""
    place, kind = tuple(detail["loc"]), detail["type"]
    context: dict[str, Any] = detail.get("ctx", {})
    if kind == "joined":
        for inside, rule in context["broken"]:
            yield Problem(source.line(inside), show_place(inside), _shown(source, inside), rule)
    elif kind == "extra_forbidden":
        yield Problem(source.line(place), show_place(place), None, _unknown(root, place))
    else:
        shown = None if kind in ("hidden", "missing") else source.text(place)
        if kind == "hidden":
            shown = "***"
        yield Problem(source.line(place), show_place(place), shown, rule_of(detail))


def rule_of(detail: ErrorDetails) -> str:
    """The broken rule in our words."""
    context: dict[str, Any] = detail.get("ctx", {})
    kind = detail["type"]
    return _RULES[kind].format(**context) if kind in _RULES else detail["msg"]


def _shown(source: Source, place: Place) -> str | None:
    """Hashes of keys are no secrets, but nothing is gained by showing them."""
    return None if "keys" in place else source.text(place)


def _unknown(root: type[BaseModel], place: Place) -> str:
    known = list(_section_at(root, place[:-1]).model_fields)
    near = get_close_matches(str(place[-1]), known, n=3, cutoff=0.5)
    return f"unknown key; did you mean {' or '.join(near)}?" if near else f"unknown key; known are {', '.join(known)}"


def _section_at(root: type[BaseModel], place: Place) -> type[BaseModel]:
    section = root
    for step in place:
        if isinstance(step, str):
            section = _section_in(section.model_fields[step].annotation)
    return section


def _section_in(annotation: Any) -> type[BaseModel]:
    """The section in ``S``, ``tuple[S, ...]`` or ``S | None``."""
    for inner in (annotation, *get_args(annotation)):
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            return inner
    raise TypeError(f"{annotation} holds no section")
