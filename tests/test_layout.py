"""The layout of the code: which part may import which, what the core may never import, how long files and names are."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "fairq"
FILES = sorted(SOURCE.rglob("*.py"))

# Each part and what it may import of fairq besides itself. Arrows point one way; nobody imports cli.
CORE = {"core"}
RULES = {"policies", "locks", "placements", "measure", "traces"}
BUILT = {"sim", "ledger", "load"}
MAY_IMPORT: dict[str, set[str]] = {
    "core": set(),
    "policies": CORE,
    "locks": CORE,
    "placements": CORE,
    "measure": CORE,
    "traces": CORE,
    "workloads": CORE | {"traces"},
    "sim": CORE | RULES | {"workloads"},
    "plot": CORE | RULES | {"sim"},
    "ledger": CORE | RULES,
    "load": CORE | RULES | {"gateway"},  # its HTTP client
    "engines": CORE | RULES | BUILT | {"gateway"},
    "gateway": CORE | RULES | {"ledger"},
    "lab": CORE | RULES | {"sim", "ledger"},
    "console": CORE | RULES | BUILT | {"gateway", "lab"},
    "testing": CORE | RULES | BUILT,
    "cli": CORE | RULES | BUILT | {"workloads", "engines", "gateway", "console", "testing", "plot"},
}
# A clock, a loop, a log or chance inside these would end determinism: each is passed in.
DETERMINISTIC = {"core", "policies", "locks", "placements"}
FORBIDDEN = {"time", "datetime", "asyncio", "logging", "random", "secrets", "socket", "threading", "os", "uuid"}
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
LONGEST = 360  # about 300


def imports(path: Path) -> Iterator[str]:
    """Every module that the file imports anywhere, at its top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            module = node.module or ""
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def part(path: Path) -> str:
    inside = path.relative_to(SOURCE).parts
    return inside[0] if len(inside) > 1 else ""


def parts_of_fairq(path: Path) -> set[str]:
    modules = (module.split(".") for module in imports(path))
    return {names[1] for names in modules if names[0] == "fairq" and len(names) > 1 and names[1] in MAY_IMPORT}


def test_every_part_has_its_place_in_the_order() -> None:
    assert {part(path) for path in FILES} - {""} <= set(MAY_IMPORT)


def test_the_order_has_no_circle() -> None:
    done: set[str] = set()
    while ready := {name for name, needs in MAY_IMPORT.items() if needs <= done} - done:
        done |= ready
    assert done == set(MAY_IMPORT)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path: Path) -> None:
    here = part(path)
    if here:
        assert parts_of_fairq(path) - {here} <= MAY_IMPORT[here]


@pytest.mark.parametrize("path", [path for path in FILES if part(path) in DETERMINISTIC], ids=lambda path: path.stem)
def test_the_core_has_no_clock_no_loop_no_log_and_no_chance(path: Path) -> None:
    used = {module.split(".")[0] for module in imports(path)}
    assert not used & FORBIDDEN


def test_the_core_needs_the_standard_library_and_msgspec_only() -> None:
    import sys

    used = {module.split(".")[0] for path in FILES if part(path) in DETERMINISTIC for module in imports(path)}
    assert used <= set(sys.stdlib_module_names) | {"fairq", "msgspec"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_are_short_and_names_say_something(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST
    assert not VAGUE & {path.stem, *path.relative_to(SOURCE).parts}


def test_one_algorithm_is_one_short_file() -> None:
    for path in (SOURCE / "placements").glob("*.py"):
        assert len(path.read_text().splitlines()) <= 80
    for path in (SOURCE / "policies").glob("*.py"):
        assert len(path.read_text().splitlines()) <= 200, path


def test_light_parts_are_imported_without_heavy_libraries() -> None:
    """`import fairq.testing` must not need hypothesis, nor the core anything but msgspec."""
    import subprocess
    import sys

    program = "import sys, fairq.testing, fairq.core.snapshot, fairq.policies; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"hypothesis", "pydantic", "rich", "typer", "matplotlib", "polars", "starlette"} & set(loaded)
