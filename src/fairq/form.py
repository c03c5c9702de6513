"""In which of its two forms fairq runs: compiled, as its wheels are, or interpreted."""

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec


def form() -> str:
    """`compiled` or `interpreted`. Does not load what it asks about."""
    found = find_spec("fairq.core.scheduler")
    origin = found.origin if found else None
    return "compiled" if origin and origin.endswith(tuple(EXTENSION_SUFFIXES)) else "interpreted"
