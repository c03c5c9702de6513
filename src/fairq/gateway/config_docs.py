"""The reference of all keys, in Markdown, from the schema itself. docs/configuration.md holds it; a test compares."""

import json
from typing import Any

from fairq.gateway.config import Config
from fairq.gateway.config_values import show_duration, show_size

_SHOW = {"duration": show_duration, "size": show_size}
_FORMATS = {"password": "secret", "sha256": "`sha256:` hash", "cidr": "CIDR"}


def reference() -> str:
    """One table per section: key, type, default, meaning. Keys marked with * need a restart."""
    schema = Config.model_json_schema()
    definitions = schema["$defs"]
    parts: list[str] = []
    _section(schema, "", definitions, parts, restart=False)
    return "\n".join(parts)


def _section(
    section: dict[str, Any], place: str, definitions: dict[str, Any], parts: list[str], *, restart: bool
) -> None:
    rows: list[str] = []
    inner: list[tuple[dict[str, Any], str, bool]] = []
    for name, field in section["properties"].items():
        inside = f"{place}.{name}" if place else name
        needs_restart = restart or field.get("x-restart", False)
        target = _target(field)
        if target is not None:
            many = "[]" if field.get("type") == "array" else ""
            inner.append((definitions[target], inside + many, needs_restart))
            if not many:
                continue
        default = "required" if name in section.get("required", ()) else f"`{_default(field)}`"
        mark = " *" if needs_restart else ""
        rows.append(f"| `{inside}`{mark} | {_type(field)} | {default} | {_cell(field.get('description', ''))} |")
    if place:
        parts += [f"### {place}", "", " ".join(section["description"].split()), ""]
    if rows:
        parts += ["| key | type | default | meaning |", "|---|---|---|---|", *rows, ""]
    for definition, inside, needs_restart in inner:
        _section(definition, inside, definitions, parts, restart=needs_restart)


def _target(field: dict[str, Any]) -> str | None:
    """The section that a field holds, or whose entries it lists."""
    reference = field.get("$ref") or field.get("items", {}).get("$ref")
    return reference and str(reference).rpartition("/")[2]


def _type(field: dict[str, Any]) -> str:
    choices = [choice for choice in field.get("anyOf", [field]) if choice.get("type") != "null"]
    kind = choices[0]
    if "enum" in kind:
        return "on, off" if True in kind["enum"] else ", ".join(f"`{value}`" for value in kind["enum"])
    if kind.get("type") == "array":
        return "list" if "$ref" in kind["items"] else f"list of {_type(kind['items'])}"
    if kind.get("type") == "object":
        return f"name: {_type(kind['additionalProperties'])}"
    if "format" in kind:
        return _FORMATS.get(kind["format"], str(kind["format"]))
    return {"integer": "integer", "string": "text"}[kind["type"]]


def _default(field: dict[str, Any]) -> str:
    value = field["default"]
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return json.dumps(value)
    show = _SHOW.get(field.get("format", ""), str)
    return "unset" if value is None else show(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
