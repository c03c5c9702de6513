"""Writes src/api.types.ts from the Python types of the APIs. A test compares; nobody edits the output."""

import sys
from pathlib import Path
from typing import Any

import msgspec

from fairq.console import views as console
from fairq.console.api import TenantPatch, UpstreamPatch
from fairq.lab import views as lab
from fairq.lab.describing import schema_of

TARGET = Path(__file__).parent / "src" / "api.types.ts"
KINDS = (lab.Order, lab.Answer, lab.Policies, lab.Scenarios, lab.LabFailure)
LIVE = (
    *(console.State, console.Tenants, console.Upstreams, console.Explained, console.Failure),
    *(console.Happened, console.Missed, TenantPatch, UpstreamPatch),
)
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def typescript() -> str:
    _, components = msgspec.json.schema_components((*KINDS, *LIVE), schema_hook=schema_of, ref_template="{name}")
    optional = _may_lack_fields((*KINDS, *LIVE))
    parts = ["// Made by web/typescript.py from the Python types. Do not edit.\n"]
    parts += [
        f"export interface {_name(name)} {_object(schema, name in optional)}\n"
        for name, schema in components.items()
        if _is_object(schema)
    ]
    parts += [
        f"export type {_name(name)} = {_type(schema)};\n"
        for name, schema in components.items()
        if not _is_object(schema)
    ]
    return "\n".join(parts)


def _name(name: str) -> str:
    """`fairq.sim.trace.Step`, where there are two of a name, becomes TraceStep."""
    parts = name.split(".")
    if name == "Record":  # TypeScript has a type of that name
        return "RecordView"
    return name if len(parts) == 1 else parts[-2].capitalize() + parts[-1]


def _is_object(schema: dict[str, Any]) -> bool:
    return "properties" in schema


def _may_lack_fields(kinds: tuple[type, ...]) -> set[str]:
    """Names of the types whose fields with a default may be missing: what is sent to us, and what is written without
    them. All others are always whole."""
    found, seen = set[str](), list(msgspec.inspect.multi_type_info(kinds))
    for each in seen:
        if isinstance(each, msgspec.inspect.StructType):
            if each.cls.__struct_config__.omit_defaults or each.forbid_unknown_fields:
                found.add(each.cls.__name__)
            seen += [field.type for field in each.fields if field.type not in seen]
        for name in ("types", "item_types"):
            seen += [other for other in getattr(each, name, ()) if other not in seen]
        for name in ("item_type", "value_type"):
            if (other := getattr(each, name, None)) is not None and other not in seen:
                seen.append(other)
    return found


def _object(schema: dict[str, Any], optional: bool) -> str:
    required = set(schema.get("required", ()))
    lines = [
        f"  {name}{'?' if optional and name not in required else ''}: {_type(value)};"
        for name, value in schema["properties"].items()
    ]
    return "{\n" + "\n".join(lines) + "\n}"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return _name(schema["$ref"])
    if "enum" in schema:
        return " | ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(map(_type, schema["anyOf"])))
    kind = schema.get("type")
    if kind == "array":
        if "prefixItems" in schema:
            return "[" + ", ".join(map(_type, schema["prefixItems"])) + "]"
        item = _type(schema["items"]) if schema.get("items") else "unknown"
        return f"({item})[]" if "|" in item else f"{item}[]"
    if kind == "object":
        value = schema.get("additionalProperties")
        return f"Record<string, {_type(value) if isinstance(value, dict) and value else 'any'}>"
    return PLAIN.get(kind or "", "any")


if __name__ == "__main__":
    TARGET.write_text(typescript())
    sys.stdout.write(f"{TARGET.name} written\n")
