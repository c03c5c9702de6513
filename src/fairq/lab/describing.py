"""The parts of an OpenAPI document, made from typed answers."""

from collections.abc import Collection
from fractions import Fraction
from typing import Any

import msgspec

from fairq import __version__

REF = "#/components/schemas/{name}"
RATIONAL = {"type": "string", "pattern": r"^-?[0-9]+(/[0-9]+)?$", "description": "an exact rational: 3, 7/2"}


def assemble(title: str, paths: dict[str, Any], kinds: Collection[type], **more: Any) -> dict[str, Any]:
    """`kinds`: the types that `paths` names. `more`: further components."""
    _, schemas = msgspec.json.schema_components(kinds, schema_hook=schema_of, ref_template=REF)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__},
        "paths": paths,
        "components": {"schemas": dict(schemas), **more},
    }


def schema_of(kind: type) -> dict[str, Any]:
    """Of the types that msgspec does not know."""
    if kind is Fraction:
        return RATIONAL
    raise NotImplementedError


def content(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": REF.format(name=name)}}}


def told(text: str, name: str) -> dict[str, Any]:
    """An answer of this type."""
    return {"description": text, "content": content(name)}


def text(description: str, kind: str) -> dict[str, Any]:
    """An answer that is no JSON."""
    return {"description": description, "content": {kind: {"schema": {"type": "string"}}}}
