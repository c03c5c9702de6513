"""In which of its two forms fairq runs, compiled or interpreted; and what it says of itself in both.

A compiled module is a library beside its source, and has no docstring.
"""

import ast
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path


def form() -> str:
    """`compiled` or `interpreted`. Does not load what it asks about."""
    found = find_spec("fairq.core.scheduler")
    origin = found.origin if found else None
    return "compiled" if origin and origin.endswith(tuple(EXTENSION_SUFFIXES)) else "interpreted"


def source(module: str) -> Path:
    """The file in which a loaded or loadable module of fairq is written."""
    found = find_spec(module)
    assert found is not None
    assert found.origin is not None, f"{module} is no module of a file"
    return Path(found.origin).parent / f"{module.rpartition('.')[2]}.py"


@cache
def docstring(module: str) -> str:
    """Of a module of fairq, without its indentation; empty if it has none."""
    return ast.get_docstring(ast.parse(source(module).read_bytes())) or ""
